/** What the kernel was told and may remember, as far as it matters when something changes; see tell-kernel.ts. */
import type { KernelCache } from "./kernel-cache.ts";

export interface ToldKernel {
  readonly cache: KernelCache;
  /** How often it was told of something: an answer that was begun before that may be old. */
  changes: number;
  /** Folders whose listing, as it is now, the kernel may keep. */
  readonly listed: Set<number>;
  /** Folders of which it was told that some name is not in them, and when. */
  readonly absentIn: Map<number, number>;
}

export function createToldKernel(cache: KernelCache): ToldKernel {
  return { cache, changes: 0, listed: new Set(), absentIn: new Map() };
}
