/** Does many pieces of work, a few at a time. */

/**
 * Does `work` for each of `items`, at most `most` at a time, in their order. After the first failure none is begun any
 * more, and it rejects with that failure once those under way have ended.
 */
export async function forEachAtOnce<T>(
  items: Iterable<T>,
  most: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const failures: unknown[] = [];
  async function worker(): Promise<void> {
    for (let next = left.next(); !next.done; next = left.next()) {
      await work(next.value).catch((error: unknown) => failures.push(error));
      if (failures.length > 0) return;
    }
  }
  await Promise.all(Array.from({ length: most }, worker));
  if (failures.length > 0) throw failures[0];
}
