/** The disk of a state dir, with as much free space as a test says. */
import { createReserve } from "../../../src/content/reserve.ts";
import type { StateDisk } from "../../../src/content/state-disk.ts";
import type { MemoryFiles } from "../../support/memory-files.ts";

/** Kept back for rows, and left free by the cache. */
export const RESERVE = 64 * 1024;
const KEEP_FREE = 2 ** 20;
export const ROOMY = 2 ** 30;

/** What an engine is started with on such a disk. */
export function onDisk(files: MemoryFiles, available: () => number, isReadOnly: () => boolean = () => false) {
  const stateDisk: StateDisk = {
    reserve: createReserve(files, "/state/reserve", RESERVE, files.removeNow),
    isThere: () => true,
    look: () => ({ problem: isReadOnly() ? "readOnly" : undefined, total: ROOMY, available: available() }),
  };
  return { stateDisk, limits: { keepFree: KEEP_FREE } };
}
