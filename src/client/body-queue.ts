/**
 * A short queue of chunks between the connection, which pushes the body of an answer, and the reader, which pulls it.
 * The connection pauses when the queue is full. It knows no HTTP.
 */
const FULL_BYTES = 1024 * 1024;
const LOW_BYTES = 256 * 1024;

interface BodyQueue {
  /** False: the queue is full, and the connection must push no more until `onLow`. */
  push(chunk: Uint8Array): boolean;
  /** True if the reader waits: it then gets the next chunk in the turn in which it is pushed. */
  isReaderWaiting(): boolean;
  end(): void;
  /** The reader gets the queued chunks, then the error. */
  fail(error: Error): void;
  /** The chunks, for one reader only. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

interface BodyQueueEvents {
  /** A full queue has room again. */
  onLow(): void;
  /** The reader returned before the end. */
  onReturn(): void;
}

interface Waiter {
  resolve(result: IteratorResult<Uint8Array>): void;
  reject(error: Error): void;
}

export function createBodyQueue(events: BodyQueueEvents): BodyQueue {
  let chunks: Uint8Array[] = [];
  let first = 0;
  let queuedBytes = 0;
  let isFull = false;
  let isEnded = false;
  let failure: Error | undefined;
  let waiter: Waiter | undefined;

  const take = (): Uint8Array | undefined => {
    const chunk = chunks[first];
    if (chunk === undefined) return undefined;
    first += 1;
    if (first === chunks.length) {
      chunks = [];
      first = 0;
    }
    queuedBytes -= chunk.length;
    return chunk;
  };

  // Not a generator: return() must reach the connection also when next() was never called.
  const iterator: AsyncIterator<Uint8Array> = {
    next() {
      const chunk = take();
      if (isFull && queuedBytes <= LOW_BYTES) {
        isFull = false;
        events.onLow();
      }
      if (chunk !== undefined) return Promise.resolve({ done: false, value: chunk });
      if (failure !== undefined) return Promise.reject(failure);
      if (isEnded) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve, reject) => {
        waiter = { resolve, reject };
      });
    },
    return() {
      const wasOpen = !isEnded && failure === undefined;
      isEnded = true;
      failure = undefined;
      chunks = [];
      first = 0;
      queuedBytes = 0;
      waiter?.resolve({ done: true, value: undefined });
      waiter = undefined;
      if (wasOpen) events.onReturn();
      return Promise.resolve({ done: true, value: undefined });
    },
  };

  return {
    push(chunk) {
      if (isEnded || failure !== undefined) return true;
      if (waiter !== undefined) {
        const { resolve } = waiter;
        waiter = undefined;
        resolve({ done: false, value: chunk });
        return true;
      }
      chunks.push(chunk);
      queuedBytes += chunk.length;
      isFull ||= queuedBytes >= FULL_BYTES;
      return !isFull;
    },
    isReaderWaiting: () => waiter !== undefined,
    end() {
      isEnded = true;
      waiter?.resolve({ done: true, value: undefined });
      waiter = undefined;
    },
    fail(error) {
      if (isEnded || failure !== undefined) return;
      failure = error;
      waiter?.reject(error);
      waiter = undefined;
    },
    bytes: { [Symbol.asyncIterator]: () => iterator },
  };
}
