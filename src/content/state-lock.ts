/**
 * One daemon per state dir: an flock on its lock file, which the kernel releases however the holder ends. The content
 * of the file, the holder's process id, is only for messages. Only the holder removes the file, together with the
 * folder. A process that opened the file just before that gets the lock of a file without a name. It does not have the
 * folder, so it compares the file with the path.
 */
import fs from "node:fs";
import { dirname } from "node:path";
import { makeFolders } from "../lib/make-folders.ts";
import type { SystemCalls } from "./disk-files.ts";

export interface StateLock {
  /** True if the path still leads to this lock, so that another daemon would meet it. */
  isThere(): boolean;
  /** Releases the folder. Calling it again does nothing. */
  release(): void;
}

export class StateFolderBusy extends Error {
  override readonly name = "StateFolderBusy";
  /** The holder's process id. Undefined: it had not written the id yet. */
  readonly pid: number | undefined;

  constructor(folder: string, pid: number | undefined) {
    super(`the state folder ${folder} is in use by ${pid === undefined ? "another process" : `process ${pid}`}`);
    this.pid = pid;
  }
}

/**
 * Takes the folder of the lock file at `path` for this process. Throws `StateFolderBusy` or a system error. The folder
 * becomes owner-only if it is missing or empty. A folder with content keeps its mode, because each of our files is
 * owner-only by itself. Synchronous, because it happens once and before anything else.
 */
export function lockStateFolder(systemCalls: Pick<SystemCalls, "lockFile">, path: string): StateLock {
  const folder = dirname(path);
  makeFolders(folder, 0o700);
  if (fs.readdirSync(folder).length === 0) fs.chmodSync(folder, 0o700);

  const fd = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
  let locked = false;
  let isThere: () => boolean;
  try {
    isThere = comparison(path, fd);
    if (!systemCalls.lockFile(fd) || !isThere()) throw new StateFolderBusy(folder, readPid(fd));
    locked = true;
    try {
      const text = `${process.pid}\n`;
      // Overwriting needs no room on a full disk.
      fs.writeSync(fd, text, 0);
      fs.ftruncateSync(fd, text.length);
    } catch {
      // Nothing depends on the id.
    }
  } finally {
    if (!locked) fs.closeSync(fd);
  }

  return {
    isThere,
    release() {
      if (!locked) return;
      locked = false;
      try {
        // The id stays if the disk takes no change any more.
        fs.ftruncateSync(fd);
      } catch {
        // Nothing depends on the id.
      } finally {
        fs.closeSync(fd);
      }
    },
  };
}

/**
 * Returns a function that is true if the path leads to the open file. While the file is open, no other file gets its
 * inode number.
 */
function comparison(path: string, fd: number): () => boolean {
  const { dev, ino } = fs.fstatSync(fd);
  return () => {
    const found = fs.statSync(path, { throwIfNoEntry: false });
    return found !== undefined && found.ino === ino && found.dev === dev;
  };
}

function readPid(fd: number): number | undefined {
  const buffer = Buffer.alloc(16);
  const text = buffer.toString("latin1", 0, fs.readSync(fd, buffer, 0, buffer.length, 0)).trim();
  return /^[1-9]\d*$/.test(text) ? Number(text) : undefined;
}
