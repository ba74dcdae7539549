/**
 * How the flows tell the loops that there is something to do, and how those who wait (drain,
 * durable close) hear that something was done.
 */
export interface Activity {
  /** The write-back loop should look at the table: now, or at this time of the wall clock, when the change is due. */
  wake(at?: number): void;
  onWake(listener: (at: number) => void): () => void;
  /** Something was acknowledged, adopted, parked, opened or closed. */
  progressed(): void;
  /** A local copy is kept beside a remote change. */
  conflicted(): void;
  readonly conflicts: number;
  /** Resolves at the next progress, or when the signal aborts. */
  nextProgress(signal?: AbortSignal): Promise<void>;
}

export function createActivity(): Activity {
  const wakers = new Set<(at: number) => void>();
  let waiting: (() => void)[] = [];
  let conflicts = 0;
  return {
    get conflicts() {
      return conflicts;
    },
    conflicted() {
      conflicts += 1;
    },
    wake(at = 0) {
      for (const listener of wakers) listener(at);
    },
    onWake(listener) {
      wakers.add(listener);
      return () => wakers.delete(listener);
    },
    progressed() {
      const resolvers = waiting;
      waiting = [];
      for (const resolve of resolvers) resolve();
    },
    nextProgress(signal) {
      return new Promise((resolve) => {
        if (signal?.aborted === true) return resolve();
        const done = () => {
          signal?.removeEventListener("abort", done);
          resolve();
        };
        waiting.push(done);
        signal?.addEventListener("abort", done, { once: true });
      });
    },
  };
}
