/** Programs that ask for the same at the same time share one answer. One that gives up does not stop the others. */
import { FsError } from "../api/index.ts";

interface SharedAnswers {
  /** Rejects as `work` does, or with EINTR when the signal aborts; the others go on waiting. */
  get<T>(key: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export function createSharedAnswers(): SharedAnswers {
  const underWay = new Map<string, Promise<unknown>>();
  return {
    get<T>(key: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
      let running = underWay.get(key) as Promise<T> | undefined;
      if (running === undefined) {
        running = work().finally(() => underWay.delete(key));
        // All callers may have given up.
        running.catch(() => {});
        underWay.set(key, running);
      }
      return orInterrupted(running, signal);
    },
  };
}

async function orInterrupted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw new FsError("EINTR", "interrupted");
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(new FsError("EINTR", "interrupted"));
    signal.addEventListener("abort", stop, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
