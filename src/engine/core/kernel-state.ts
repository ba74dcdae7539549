/** What the kernel was told and may remember, as far as a change has to invalidate it; see invalidate.ts. */
import type { InodeId } from "../../metadata/ids.ts";
import type { KernelCache } from "../api/index.ts";

/** A negative entry of the kernel. */
export interface NegativeName {
  readonly folder: InodeId;
  readonly name: string;
  /** When the kernel was told, by Runtime.elapsed(). */
  readonly at: number;
}

export interface KernelCacheState {
  readonly cache: KernelCache;
  /** Counts invalidations. An answer that was begun before one may be old. */
  changes: number;
  /** Folders whose present listing the kernel may keep. */
  readonly listed: Set<InodeId>;
  /** Negative entries, the oldest first; by negativeKey. */
  readonly absent: Map<string, NegativeName>;
  /** Until then, by Runtime.elapsed(), the kernel may hold negative entries of an earlier daemon. */
  negativeUnknownUntil: number;
}

export function createKernelCacheState(cache: KernelCache): KernelCacheState {
  return {
    cache,
    changes: 0,
    listed: new Set(),
    absent: new Map(),
    negativeUnknownUntil: Number.NEGATIVE_INFINITY,
  };
}

export function negativeKey(folder: InodeId, name: string): string {
  return `${folder}/${name}`;
}
