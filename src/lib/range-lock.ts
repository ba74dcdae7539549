/**
 * Exclusive use of byte ranges within one process. First come, first served: a request waits for every earlier one that
 * overlaps it, so that a large one does not wait for ever. A holder must not ask for another range of the same lock: it
 * could wait for itself.
 */
import { deferred } from "./deferred.ts";

export interface RangeLock {
  /** Resolves to the function that releases [start, end). `end` may be Infinity. */
  hold(start: number, end: number): Promise<() => void>;
  /** True if no part of [start, end) is held or waited for. Work that ends in the same turn then needs no hold. */
  isFree(start: number, end: number): boolean;
}

interface Hold {
  readonly start: number;
  readonly end: number;
  readonly freed: Promise<void>;
}

export function createRangeLock(): RangeLock {
  const holds = new Set<Hold>();
  const overlapping = (start: number, end: number) =>
    [...holds].filter((other) => other.start < end && start < other.end);
  return {
    isFree: (start, end) => holds.size === 0 || overlapping(start, end).length === 0,
    async hold(start, end) {
      const earlier = overlapping(start, end);
      const { promise: freed, resolve: free } = deferred<void>();
      const hold = { start, end, freed };
      holds.add(hold);
      for (const other of earlier) await other.freed;
      return () => {
        holds.delete(hold);
        free();
      };
    },
  };
}
