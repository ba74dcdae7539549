/** How fast something goes, and how long it will take yet, by what was seen in the last seconds. */

export interface Pace {
  note(atMs: number, seen: { readonly dirty: number; readonly bytesSent: number }): void;
  readonly bytesPerSecond: number;
  /** Undefined while nothing can be said. */
  readonly leftMs: number | undefined;
}

const WINDOW_MS = 10_000;
const MEANINGFUL_MS = 1_000;

export function createPace(): Pace {
  const seen: { at: number; dirty: number; bytesSent: number }[] = [];
  const span = () => {
    const [first, last] = [seen[0], seen.at(-1)];
    if (first === undefined || last === undefined || last.at - first.at < MEANINGFUL_MS) return undefined;
    const seconds = (last.at - first.at) / 1000;
    return {
      bytes: (last.bytesSent - first.bytesSent) / seconds,
      items: (first.dirty - last.dirty) / seconds,
      dirty: last.dirty,
    };
  };
  return {
    note(at, { dirty, bytesSent }) {
      seen.push({ at, dirty, bytesSent });
      while (seen.length > 2 && at - (seen[0]?.at ?? at) > WINDOW_MS) seen.shift();
    },
    get bytesPerSecond() {
      return span()?.bytes ?? 0;
    },
    get leftMs() {
      const now = span();
      // Items, not bytes: of bytes the last sum may be old, and most of the work is per item.
      return now === undefined || now.items <= 0 ? undefined : (now.dirty / now.items) * 1000;
    },
  };
}
