/** Speed and remaining time, from the progress of the last seconds. */
import { DAY_MS } from "../lib/time.ts";

interface Sample {
  readonly dirty: number;
  readonly bytesPending: number;
  readonly bytesSent: number;
}

export interface Pace {
  note(atMs: number, sample: Sample): void;
  readonly bytesPerSecond: number;
  /** More than zero. Undefined while nothing can be said. */
  readonly leftMs: number | undefined;
}

const WINDOW_MS = 10_000;
const MEANINGFUL_MS = 1_000;
/** When nothing has moved for this long, the remaining time is unknown. */
const QUIET_MS = 3_000;
/** A longer estimate is meaningless: a few small changes went out while a large one was prepared. */
const LONGEST_MS = 2 * DAY_MS;

export function createPace(): Pace {
  const window: (Sample & { readonly at: number })[] = [];
  let movedAt = 0;
  /** Speeds per second. */
  const speeds = () => {
    const [first, last] = [window[0], window.at(-1)];
    if (first === undefined || last === undefined || last.at - first.at < MEANINGFUL_MS) return undefined;
    const seconds = (last.at - first.at) / 1000;
    return {
      bytes: Math.max(0, last.bytesSent - first.bytesSent) / seconds,
      items: Math.max(0, first.dirty - last.dirty) / seconds,
      last,
    };
  };
  return {
    note(at, sample) {
      const before = window.at(-1);
      if (before?.dirty !== sample.dirty || before.bytesSent !== sample.bytesSent) movedAt = at;
      window.push({ at, ...sample });
      while (window.length > 2 && at - (window[0]?.at ?? at) > WINDOW_MS) window.shift();
    },
    get bytesPerSecond() {
      return speeds()?.bytes ?? 0;
    },
    get leftMs() {
      const now = speeds();
      if (now === undefined || now.last.at - movedAt >= QUIET_MS) return undefined;
      // For many small changes their number tells, for a large one its bytes.
      const byItems = now.items > 0 ? now.last.dirty / now.items : 0;
      const byBytes = now.last.bytesPending > 0 ? now.last.bytesPending / now.bytes : 0;
      const leftMs = Math.max(byItems, byBytes) * 1000;
      return leftMs > 0 && leftMs <= LONGEST_MS ? leftMs : undefined;
    },
  };
}
