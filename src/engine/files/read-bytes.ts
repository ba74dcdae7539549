/**
 * read(2) and lseek(2) from the cache file. For a read, missing ranges are fetched first. For lseek they count as data.
 */
import { listRanges, partsWithin, touchesRange } from "../../lib/ranges.ts";
import { type Caller, FsError, fromDisk, type HandleId } from "../api/index.ts";
import type { Host, Kernel, Remote, Rows, Uploads } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { grantRead } from "./fast-path.ts";
import { untilChecked } from "./fetch.ts";
import { fetchAround, type SequentialReader } from "./readahead.ts";
import type { LocalFiles } from "./room.ts";
import { fetchUncached, layOver } from "./uncached-read.ts";

/**
 * Bytes of [offset, offset + size), fewer at the end of the file. Undefined: the caller has its answer. Rejects with an
 * FsError: EINTR, EIO, EACCES, or as fromDisk says.
 */
export async function readBytes(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  handle: HandleId,
  cacheFile: OpenCacheFile,
  reader: SequentialReader,
  offset: number,
  size: number,
  caller: Pick<Caller, "signal" | "answerFrom">,
): Promise<Uint8Array | undefined> {
  const { signal } = caller;
  const end = offset + size;
  if (!(await isKept(context, cacheFile, reader, offset, end, signal))) {
    return readUncached(context, cacheFile, offset, end, signal);
  }
  await untilChecked(cacheFile, signal);
  if (answerFromFile(context, caller, cacheFile, offset, size)) return undefined;
  const buffer = Buffer.allocUnsafe(size);
  const length = await readFile(cacheFile, buffer, offset);
  // The check has just found these bytes wrong: they are never shown.
  if (touchesRange(cacheFile.ranges.missing, offset, end))
    throw new FsError("EIO", "downloaded bytes are not the version's");
  grantRead(context, handle, cacheFile);
  return length === size ? buffer : buffer.subarray(0, length);
}

/**
 * True: the caller was answered straight from the file. Not while a truncate is pending: a read that it made short must
 * not be shown (pending-truncate.ts).
 */
function answerFromFile(
  { fileState }: LocalFiles,
  { answerFrom }: Pick<Caller, "answerFrom">,
  cacheFile: OpenCacheFile,
  offset: number,
  size: number,
): boolean {
  const { descriptor } = cacheFile.disk.file;
  if (answerFrom === undefined || descriptor === undefined) return false;
  if (touchesRange(cacheFile.ranges.missing, offset, offset + size)) return false;
  return !fileState.pendingTruncates.has(cacheFile.kernelNodeId) && answerFrom(descriptor, offset, size);
}

/** True: the range is in the file now. False: the disk has no room for it. */
async function isKept(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  reader: SequentialReader,
  offset: number,
  end: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { disk } = context;
  if ((!cacheFile.disk.isKept || !disk.mayKeep) && touchesRange(cacheFile.ranges.missing, offset, end)) return false;
  try {
    await fetchAround(context, cacheFile, reader, offset, end, signal);
    return true;
  } catch (error) {
    if (disk.mayKeep) throw error;
    return false;
  }
}

/** A write into a missing range during this read may or may not show, as if it came before or after the read. */
async function readUncached(
  context: LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  offset: number,
  end: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const window = await fetchUncached(context, cacheFile, offset, end, signal);
  const {
    ranges: { missing },
  } = cacheFile;
  const buffer = Buffer.alloc(end - offset);
  const shown = buffer.subarray(0, await readFile(cacheFile, buffer, offset));
  if (window !== undefined) layOver(missing, window, shown, offset);
  return shown;
}

async function readFile(cacheFile: OpenCacheFile, buffer: Uint8Array, offset: number): Promise<number> {
  try {
    return await cacheFile.disk.file.read(buffer, 0, buffer.length, offset);
  } catch (error) {
    throw fromDisk(error, "the local file cannot be read");
  }
}

/**
 * Undefined: there is nothing of that kind at or after the offset. Missing ranges count as data. Bytes that a program
 * stores through a writable mapping are in the kernel's pages alone, and a handle does not tell whether it is mapped.
 * So nothing counts as a hole while there is a writer. With passthrough the pages are those of the cache file itself.
 * Rejects as fromDisk says.
 */
export async function seekBytes(
  cacheFile: OpenCacheFile,
  kind: "data" | "hole",
  offset: number,
): Promise<number | undefined> {
  const mayBeMapped = cacheFile.use.writers > 0 && cacheFile.passthrough.backingId === undefined;
  try {
    if (mayBeMapped) return await seekWithoutHoles(cacheFile, kind, offset);
    return kind === "data" ? await seekData(cacheFile, offset) : await seekHole(cacheFile, offset);
  } catch (error) {
    throw fromDisk(error, "lseek");
  }
}

async function seekWithoutHoles(
  cacheFile: OpenCacheFile,
  kind: "data" | "hole",
  offset: number,
): Promise<number | undefined> {
  const { size } = await cacheFile.disk.file.stat();
  if (offset >= size) return undefined;
  return kind === "data" ? offset : size;
}

async function seekData(cacheFile: OpenCacheFile, offset: number): Promise<number | undefined> {
  const here = await cacheFile.disk.file.seek("data", offset);
  const [missing] = partsWithin(
    cacheFile.ranges.missing,
    offset,
    Math.max(offset, cacheFile.ranges.missing.at(-1) ?? 0),
  );
  if (here === undefined || missing === undefined) return here ?? missing?.start;
  return Math.min(here, missing.start);
}

async function seekHole(cacheFile: OpenCacheFile, offset: number): Promise<number | undefined> {
  let position = offset;
  for (;;) {
    const hole = await cacheFile.disk.file.seek("hole", position);
    if (hole === undefined) return position > offset ? position : undefined;
    const missing = [...listRanges(cacheFile.ranges.missing)].find((range) => range.start <= hole && hole < range.end);
    if (missing === undefined) return hole;
    position = missing.end;
  }
}
