/**
 * How the flows tell the loops that there is something to do, and how those who wait (drain,
 * durable close) hear that something was done.
 */
import type { InodeId } from "../../metadata/ids.ts";
export interface Activity {
  /** The write-back loop should look at the table: now, or at this time of the rows (even-time.ts), when the change is due. */
  wake(at?: number): void;
  onWake(listener: (at: number) => void): () => void;
  /** Dirty rows, all or those in one folder (an inode), need not wait for their time: the loop looks at them in turn. */
  expedite(folder?: InodeId): void;
  onExpedite(listener: (folder: InodeId | undefined) => void): () => void;
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
  const expediters = new Set<(folder: InodeId | undefined) => void>();
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
    expedite(folder) {
      for (const listener of expediters) listener(folder);
    },
    onExpedite(listener) {
      expediters.add(listener);
      return () => expediters.delete(listener);
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
