/** So many times within a period and no more. It knows nothing of what happens. */

/** The result is asked each time before the event. True: the event may happen, and counts. */
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
