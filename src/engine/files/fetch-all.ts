/** Fetches a file whole: before it is sent, and a small one before a program reads it. */
import { partsWithin } from "../../lib/ranges.ts";
import { unlessAborted } from "../../lib/single-flight.ts";
import { FsError } from "../api/index.ts";
import type { Host, Kernel, Remote, Rows, Uploads } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { prefetchRange, requireChecked, SMALL } from "./fetch.ts";
import { createWholeReader, fetchAround } from "./readahead.ts";
import type { LocalFiles } from "./room.ts";
import { verify } from "./verify.ts";

/** Missing ranges are fetched in pieces of this many bytes. */
const PIECE = 8 * 1024 * 1024;

/**
 * Fetches every missing byte, verifies the bytes of the origin, and records both in the row. Rejects as requireRange
 * does, or with errors of the disk or the rows.
 */
export async function fetchAll(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  signal: AbortSignal,
): Promise<void> {
  do {
    await fetchMissing(context, cacheFile, signal);
    await requireChecked(context, cacheFile, signal);
    await verify(context, cacheFile, signal);
    // Another flow may have found meanwhile that bytes must be fetched again.
  } while (cacheFile.ranges.missing.length > 0 || cacheFile.ranges.unverified.length > 0);
}

async function fetchMissing(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  signal: AbortSignal,
): Promise<void> {
  const reader = createWholeReader();
  for (let [start] = cacheFile.ranges.missing; start !== undefined; [start] = cacheFile.ranges.missing) {
    const last = cacheFile.ranges.missing.at(-1) ?? start;
    reader.next = start;
    await fetchAround(context, cacheFile, reader, start, Math.min(last, start + PIECE), signal);
  }
}

/** Fetches a file of up to SMALL bytes, unless the disk has no room. Rejects with EIO when `signal` aborts. */
export async function prefetchSmall(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  signal: AbortSignal,
): Promise<void> {
  const [gap] = partsWithin(cacheFile.ranges.missing, 0, SMALL);
  if (gap === undefined || !cacheFile.disk.isKept) return;
  prefetchRange(context, cacheFile, gap.start, SMALL);
  const done = Promise.all([...cacheFile.ranges.downloads].map((download) => download.done));
  await unlessAborted(done, signal, () => new FsError("EIO", "the mount ends"));
}
