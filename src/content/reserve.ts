/**
 * The reserve: a real file that is given up when the disk is full, so that rows and renames still work, and made again
 * when there is room. This file does not know which write failed, nor when to try again.
 */
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import type { Files, OpenFile } from "../lib/files.ts";
import { hasCode, isUnsupported } from "../lib/system-error.ts";

export interface Reserve {
  /** Bytes that are reserved now: `size` or 0. */
  reservedBytes(): number;
  /** The size of the whole reserve, in bytes. */
  readonly size: number;
  /** The free bytes from which on the reserve is made again, so that making it does not fill the disk. */
  readonly room: number;
  /**
   * Makes the reserve, unless less than `room` is free. True: it is whole now. Rejects with a system error, not for a
   * full disk.
   */
  restore(): Promise<boolean>;
  /** Removes the reserve. True: this call freed space. Rejects with a system error. */
  giveUp(): Promise<boolean>;
  /** Like `giveUp`, but synchronous and without waiting for other calls: for the time between two tries of a commit. */
  giveUpNow(): boolean;
}

/**
 * `size` in bytes; 0 reserves nothing. Calls may overlap: they are carried out one after the other. `removeNow` removes
 * a file synchronously; true: there was one. Throws a RangeError for a wrong size.
 */
export function createReserve(
  files: Files,
  path: string,
  size: number,
  removeNow: (path: string) => boolean = () => false,
): Reserve {
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`expected a reserve in bytes, got ${size}`);
  const room = 2 * size;
  let isReserved = false;
  /** Counts calls of giveUpNow. A file that was being built during such a call has no name any more. */
  let emptied = 0;
  let last: Promise<unknown> = Promise.resolve();

  function afterOthers(work: () => Promise<boolean>): Promise<boolean> {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  }

  async function restore(): Promise<boolean> {
    if (isReserved || size === 0) return true;
    const before = emptied;
    if (!(await isWhole(files, path, size))) {
      const { available } = await files.space(dirname(path));
      if (available < room) return false;
      try {
        await build(files, path, size);
      } catch (error) {
        await files.remove(path);
        if (hasCode(error, "ENOSPC", "EDQUOT")) return false;
        throw error;
      }
    }
    isReserved = emptied === before;
    return isReserved;
  }

  /** Also removes a reserve of an earlier process, whole or not: it frees space as well. */
  async function giveUp(): Promise<boolean> {
    const wasReserved = isReserved;
    isReserved = false;
    const had = wasReserved || (await allocatedAt(files, path)) > 0;
    await files.remove(path);
    return had;
  }

  return {
    size,
    room,
    reservedBytes: () => (isReserved ? size : 0),
    restore: () => afterOthers(restore),
    giveUp: () => afterOthers(giveUp),
    giveUpNow() {
      emptied += 1;
      isReserved = false;
      return removeNow(path);
    },
  };
}

/** False also for a file whose process died while it built it: fewer bytes are allocated. */
async function isWhole(files: Files, path: string, size: number): Promise<boolean> {
  return (await allocatedAt(files, path)) >= size;
}

async function allocatedAt(files: Files, path: string): Promise<number> {
  try {
    return (await files.stat(path)).allocated;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return 0;
    throw error;
  }
}

async function build(files: Files, path: string, size: number): Promise<void> {
  await files.remove(path);
  const file = await files.open(path, "wx+");
  try {
    try {
      await file.allocate(0, 0, size);
    } catch (error) {
      if (!isUnsupported(error)) throw error;
      await fill(file, size);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Random bytes, because a disk that compresses would keep no space for zeros. */
async function fill(file: OpenFile, size: number): Promise<void> {
  const noise = randomBytes(Math.min(size, 1 << 20));
  for (let position = 0; position < size; position += noise.length) {
    await file.write(noise.subarray(0, size - position), position);
  }
}
