/**
 * The present state of the disk below a state dir: its free space, whether it can be written, and whether the folder is
 * still the locked one. It is synchronous, because it is also needed between two tries of a commit. The kernel answers
 * its few calls from memory. This file does not know the consequences of a full or failing disk.
 */
import fs from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "../lib/system-error.ts";
import type { Reserve } from "./reserve.ts";
import type { StateLock } from "./state-lock.ts";

export interface DiskLook {
  /** gone: the folder or its database was removed or replaced. */
  readonly problem: "readOnly" | "gone" | undefined;
  readonly total: number;
  /** Bytes that this user may still write. */
  readonly available: number;
}

export interface StateDisk {
  readonly reserve: Reserve;
  look(): DiskLook;
  /** True if folder and database are where they were. Throws a system error (EACCES) if the folder may not be read. */
  isThere(): boolean;
}

/** `database`: a file in the folder, which must exist. Throws a system error. */
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
        // Only these errors mean that the folder is gone. A folder that may not be read is still there.
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
 * An open for writing changes nothing, and shows whether the disk is read-only. The close does not release the lock,
 * which belongs to another open file description.
 */
function isReadOnly(path: string): boolean {
  try {
    fs.closeSync(fs.openSync(path, "r+"));
    return false;
  } catch (error) {
    if (hasCode(error, "EROFS")) return true;
    // No descriptor is left for this check. That says nothing about the disk.
    if (hasCode(error, "EMFILE", "ENFILE")) return false;
    throw error;
  }
}

/** Removes a file synchronously. False: there was none, or it could not be removed. */
export function removeNow(path: string): boolean {
  try {
    fs.unlinkSync(path);
    return true;
  } catch {
    return false;
  }
}
