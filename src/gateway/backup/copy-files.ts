/**
 * Copies blobs: as a hard link if the file system can do that, because a blob never changes; otherwise byte by byte.
 */
import { constants, copyFile, link, mkdir, open } from "node:fs/promises";
import path from "node:path";
import { hasCode } from "../../lib/system-error.ts";
import { blobPath } from "../disk-blobs.ts";

export interface Taken {
  blobs: number;
  /** The number of blobs that were copied byte by byte. */
  copied: number;
}

/**
 * `from`: blob folders in the order in which a link is tried. As the last resort the blob is copied from the first one.
 */
export function blobTaker(
  from: readonly [string, ...string[]],
  to: string,
): { take(blob: string): Promise<void>; readonly taken: Taken } {
  const taken: Taken = { blobs: 0, copied: 0 };
  const made = new Set<string>();

  async function isLinked(source: string, target: string): Promise<boolean> {
    try {
      await link(source, target);
      return true;
    } catch (error) {
      // The blob is on another disk, has as many names as allowed or is missing, or this file system has no links.
      if (hasCode(error, "EXDEV", "EMLINK", "ENOENT", "EPERM", "EOPNOTSUPP")) return false;
      throw error;
    }
  }

  return {
    taken,
    async take(blob) {
      const target = blobPath(to, blob);
      const folder = path.dirname(target);
      if (!made.has(folder)) await mkdir(folder, { recursive: true, mode: 0o700 });
      made.add(folder);
      taken.blobs += 1;
      for (const source of from) if (await isLinked(blobPath(source, blob), target)) return;
      taken.copied += 1;
      await copyWhole(blobPath(from[0], blob), target);
    },
  };
}

/** Copies a file durably. */
export async function copyWhole(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  await syncPath(to);
}

/** Makes a file's bytes, or a folder's names, durable. */
export async function syncPath(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
