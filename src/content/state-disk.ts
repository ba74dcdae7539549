/**
 * The disk below a state folder, as it is at this moment: what is free, whether the folder can be
 * written and is still the one that was locked. Synchronous, as it is also asked between two tries of
 * a commit: a few calls the kernel answers from memory. It must not know what is done about it.
 */
import fs from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "../lib/system-error.ts";
import type { Reserve } from "./reserve.ts";
import type { StateLock } from "./state-lock.ts";

export interface DiskLook {
  /** gone: the folder, or its database, is no longer where it was. */
  readonly problem: "readOnly" | "gone" | undefined;
  readonly total: number;
  /** Bytes one may still write. */
  readonly available: number;
}

export interface StateDisk {
  readonly reserve: Reserve;
  look(): DiskLook;
  /** Whether folder and database are where they were. Throws where nobody may look. */
  isThere(): boolean;
}

/** `database`: a file in the folder that must be there by now. */
export function createStateDisk(needs: {
  readonly lock: Pick<StateLock, "isThere">;
  readonly lockPath: string;
  readonly database: string;
  readonly reserve: Reserve;
}): StateDisk {
  const { lock, lockPath, database, reserve } = needs;
  const folder = dirname(lockPath);
  const opened = fs.statSync(database);
  let last = { total: 0, available: 0 };

  function isThere(): boolean {
    const found = fs.statSync(database, { throwIfNoEntry: false });
    return lock.isThere() && found?.ino === opened.ino && found.dev === opened.dev;
  }

  return {
    reserve,
    isThere,
    look() {
      try {
        if (!isThere()) return { ...last, problem: "gone" };
        last = spaceAt(folder);
        return { ...last, problem: isReadOnly(lockPath) ? "readOnly" : undefined };
      } catch (error) {
        // No folder is there. One that may not be looked into is the same one, and may be again.
        if (hasCode(error, "ENOENT", "ENOTDIR", "ESTALE")) return { ...last, problem: "gone" };
        throw error;
      }
    },
  };
}

export function spaceAt(folder: string): { total: number; available: number } {
  const { bsize, blocks, bavail } = fs.statfsSync(folder);
  return { total: blocks * bsize, available: bavail * bsize };
}

/** Opening for writing changes nothing, and says it. Closing again leaves the lock alone: it is the other descriptor's. */
function isReadOnly(path: string): boolean {
  try {
    fs.closeSync(fs.openSync(path, "r+"));
    return false;
  } catch (error) {
    if (hasCode(error, "EROFS")) return true;
    // No descriptor is left to look with: that says nothing of the disk, and who closes a file needs none.
    if (hasCode(error, "EMFILE", "ENFILE")) return false;
    throw error;
  }
}

/** Removes a file at once: whether there was one, and it is gone. */
export function removeNow(path: string): boolean {
  try {
    fs.unlinkSync(path);
    return true;
  } catch {
    return false;
  }
}
