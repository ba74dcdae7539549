/**
 * Signals between flows and loops. Flows tell the loops that there is work. Flows that wait (drain, a close that waits
 * for the gateway) hear of progress.
 */
import type { RowTime } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
export interface Activity {
  /** The write-back loop looks at the table at this row time, at which a change is due; by default at once. */
  wake(at?: RowTime): void;
  /** Returns a function that ends the calls of `listener`. So does `onExpedite`. */
  onWake(listener: (at: RowTime | undefined) => void): () => void;
  /** Dirty rows are due at once: all, or those in one folder (an inode). The loop takes them in order. */
  expedite(folder?: InodeId): void;
  onExpedite(listener: (folder: InodeId | undefined) => void): () => void;
  /** Something was acknowledged, adopted, parked, opened or closed: flows that wait look again. */
  progressed(): void;
  /** A conflict copy was made. */
  conflicted(): void;
  /** Conflict copies since the mount began. */
  readonly conflicts: number;
  /** Resolves at the next progress, or when the signal aborts. Never rejects. */
  nextProgress(signal?: AbortSignal): Promise<void>;
}

export function createActivity(): Activity {
  const wakers = new Set<(at: RowTime | undefined) => void>();
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
    wake(at) {
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
