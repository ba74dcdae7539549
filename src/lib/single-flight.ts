/** One piece of work per key at a time: whoever asks while it runs gets the same result. */
export interface SingleFlight<Key, Result> {
  /** Pieces of work under way. */
  readonly size: number;
  isRunning(key: Key): boolean;
  run(key: Key, work: () => Promise<Result>): Promise<Result>;
}

export function createSingleFlight<Key, Result>(): SingleFlight<Key, Result> {
  const flights = new Map<Key, Promise<Result>>();
  return {
    get size() {
      return flights.size;
    },
    isRunning: (key) => flights.has(key),
    run(key, work) {
      const running = flights.get(key);
      if (running !== undefined) return running;
      const flight = work().finally(() => flights.delete(key));
      flights.set(key, flight);
      return flight;
    },
  };
}

/** The promise's result, or a rejection with `reason()` as soon as the signal aborts; the work itself goes on. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal, reason: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(reason());
    if (signal.aborted) {
      promise.catch(() => undefined);
      return abort();
    }
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
