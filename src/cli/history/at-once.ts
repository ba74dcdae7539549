/** Many requests: several under way at a time, and how far it is where somebody looks on. */
import { formatCount } from "../wording.ts";

const UNDER_WAY_MAX = 8;

/** In the order of `items`, so many at a time. After one that fails none is begun. */
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

export interface Progress {
  step(): void;
  end(): void;
}

const LINE_INTERVAL_MS = 100;

/** Nothing where standard error is no terminal. */
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
