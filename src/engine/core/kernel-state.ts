/** What the kernel was told and may remember, as far as it matters when something changes; see tell-kernel.ts. */
import type { InodeId } from "../../metadata/ids.ts";
import type { KernelCache } from "../api/index.ts";

export interface NegativeName {
  readonly folder: InodeId;
  readonly name: string;
  /** When it was told, by `elapsed`. */
  readonly at: number;
}

export interface KernelCacheState {
  readonly cache: KernelCache;
  /** How often it was told of something: an answer that was begun before that may be old. */
  changes: number;
  /** Folders whose listing, as it is now, the kernel may keep. */
  readonly listed: Set<InodeId>;
  /** Names of which it was told that they are not there, the oldest word first. */
  readonly absent: Map<string, NegativeName>;
  /** Until then it may remember absent names that a daemon before this one told. */
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
