/** So often within a time, and no more. Knows nothing of what it is that happens. */

/** Asked each time before it happens: whether it may, which then counts. */
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
