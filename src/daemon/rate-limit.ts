/** Limits the number of events within a period. It does not know the events. */

/** Returns a function that must be called before each event. True: the event may happen, and counts. */
export function rateLimit(count: number, milliseconds: number, elapsed: () => number): () => boolean {
  let recent: number[] = [];
  return () => {
    const now = elapsed();
    recent = recent.filter((at) => now - at < milliseconds);
    if (recent.length >= count) return false;
    recent.push(now);
    return true;
  };
}
