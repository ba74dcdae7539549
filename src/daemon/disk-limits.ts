/** Defaults for the state dir's disk: how much is reserved, how much stays free, how much may be unsent. Bytes. */
import type { DiskLimits } from "../engine/start/index.ts";
import type { DaemonSettings } from "./settings.ts";

const BLOCK = 4096;
const RESERVE_MAX = 64 * 1024 ** 2;
const KEEP_FREE_MAX = 1024 ** 3;

/** Enough for the rows of thousands of renames and deletions, and small enough for a small disk. */
export function reserveSize(total: number): number {
  return Math.min(RESERVE_MAX, Math.floor(total / 32 / BLOCK) * BLOCK);
}

export function diskLimits({ keepFree, unsentLimit }: DaemonSettings, total: number): DiskLimits {
  return {
    keepFree: keepFree ?? Math.min(KEEP_FREE_MAX, Math.floor(total / 20)),
    ...(unsentLimit === undefined ? {} : { unsentLimit }),
  };
}
