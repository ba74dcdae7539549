/** Many requests: several under way at a time, with progress for a person who watches. */
import { formatCount } from "../wording.ts";

const UNDER_WAY_MAX = 8;

/** Takes the items in order, several at a time. After a failure no further one is begun. Rejects with that failure. */
export async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = items[Symbol.iterator]();
  let isOver = false;
  const worker = async () => {
    for (const item of waiting) {
      if (isOver) return;
      try {
        await act(item);
      } catch (error) {
        isOver = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(UNDER_WAY_MAX, items.length) }, worker));
}

interface Progress {
  step(): void;
  end(): void;
}

const LINE_INTERVAL_MS = 100;

/** Shows nothing when standard error is no terminal. */
export function showProgress(total: number, what: string): Progress {
  const isShown = process.stderr.isTTY === true;
  let done = 0;
  let shownAt = 0;
  return {
    step() {
      done += 1;
      const now = performance.now();
      if (!isShown || now - shownAt < LINE_INTERVAL_MS) return;
      shownAt = now;
      process.stderr.write(`\r\x1b[K${done} of ${formatCount(total, "change")} ${what}`);
    },
    end() {
      if (isShown && shownAt > 0) process.stderr.write("\r\x1b[K");
    },
  };
}
