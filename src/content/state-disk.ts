/**
 * The present state of the disk below a state folder: its free space, and whether the folder can be written and is
 * still the locked one. It is synchronous, because it is also asked between two tries of a commit. The kernel answers
 * its few calls from memory. This file does not know what is done about a full or failing disk.
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
  /** Bytes that this user may still write. */
  readonly available: number;
}

export interface StateDisk {
  readonly reserve: Reserve;
  look(): DiskLook;
  /** True if folder and database are where they were. Throws a system error where the folder may not be looked into. */
  isThere(): boolean;
}

/** `database`: a file in the folder. It must exist by now. */
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
        // There is no folder any more. A folder that may not be looked into is still the same one, and may become
        // readable again.
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

/**
 * Opening for writing changes nothing, and shows whether the disk is read-only. Closing again leaves the lock alone,
 * because the lock belongs to the other descriptor.
 */
function isReadOnly(path: string): boolean {
  try {
    fs.closeSync(fs.openSync(path, "r+"));
    return false;
  } catch (error) {
    if (hasCode(error, "EROFS")) return true;
    // There is no descriptor left to look with. That says nothing about the disk, and closing a file needs none.
    if (hasCode(error, "EMFILE", "ENFILE")) return false;
    throw error;
  }
}

/** Removes a file at once. True: there was one, and it is gone. */
export function removeNow(path: string): boolean {
  try {
    fs.unlinkSync(path);
    return true;
  } catch {
    return false;
  }
}
