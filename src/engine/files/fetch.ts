/**
 * Fetches missing ranges of a cache file from its origin. Many readers share a download, and each waits only for its
 * own bytes. A chunk is written only where the file still misses it. Programs' writes into missing ranges and chunks
 * take turns, so bytes of the origin never overwrite those of a program.
 */
import { createHash } from "node:crypto";
import type { Content } from "../../client/client.ts";
import { RemoteError } from "../../client/errors.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import { containsRange, isSameRanges, partsWithin, rangeOf, touchesRange } from "../../lib/ranges.ts";
import { sleep } from "../../lib/runtime.ts";
import { unlessAborted } from "../../lib/single-flight.ts";
import { FsError, fromDisk } from "../api/index.ts";
import {
  type Host,
  isRetryable,
  type Kernel,
  type Remote,
  type Rows,
  retryDelay,
  type Uploads,
} from "../core/index.ts";
import { toFsError } from "../host/index.ts";
import type { Download, OpenCacheFile } from "./cache-file.ts";
import { despiteFullDisk } from "./disk-room.ts";
import { evictSoon } from "./evict.ts";
import { lost, rangeFetched, recordArrived, wakeReaders } from "./missing-ranges.ts";
import { closeCacheFile } from "./open-close.ts";
import type { LocalFiles } from "./room.ts";
import { hashArrived, takeHash } from "./running-hash.ts";

/** Bytes. Content up to this size comes in one piece and is checked before a byte of it is used. */
export const SMALL = 1024 * 1024;
/** Bytes. Up to this size readers wait for the check of the complete file. */
const CHECKED_AT_ONCE = 64 * 1024 * 1024;
const EVERYTHING = Number.MAX_SAFE_INTEGER;
export const WRONG = "downloaded bytes are not the version's";

/**
 * Resolves when all of [start, end) is here. A download begun for it may go on to `reach`. Rejects with EINTR when
 * interrupted (the download goes on for others), with EACCES when the gateway refuses it, with ENOSPC when the disk has
 * no room, and with EIO when the bytes cannot be had.
 */
export async function requireRange(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  start: number,
  end: number,
  signal: AbortSignal,
  reach = end,
): Promise<void> {
  if (!touchesRange(cacheFile.ranges.missing, start, end)) return;
  const interest = watch(context, cacheFile, signal);
  try {
    let watched: Download | undefined;
    for (let [gap] = partsWithin(cacheFile.ranges.missing, start, end); gap !== undefined; ) {
      if (signal.aborted) throw new FsError("EINTR", "interrupted while bytes were fetched");
      const isOurs = watched !== undefined && watched.start <= gap.start && gap.start < watched.end;
      // A failed prefetch is no reader's failure: now that a reader asks, the bytes are requested once more.
      if (isOurs && watched?.failure !== undefined && !watched.isPrefetch) throw readError(watched.failure);
      if (interest.isOutOfPatience()) throw new FsError("EIO", "the gateway does not answer");
      watched =
        downloadOf(cacheFile, gap.start) ?? begin(context, cacheFile, gap.start, Math.max(gap.end, reach), false);
      await interest.next();
      [gap] = partsWithin(cacheFile.ranges.missing, start, end);
    }
  } finally {
    interest.end();
  }
}

/**
 * A complete file up to CHECKED_AT_ONCE is read only once it is known to be what the gateway said. Rejects with EINTR
 * or EIO.
 */
export async function untilChecked(cacheFile: OpenCacheFile, signal: AbortSignal): Promise<void> {
  if (cacheFile.ranges.check === undefined || cacheFile.ranges.isChecked) return;
  const interrupted = () => new FsError("EINTR", "interrupted while a download was checked");
  const check = cacheFile.ranges.check;
  const result =
    (await cacheFile.disk.file.stat()).size <= CHECKED_AT_ONCE ? await unlessAborted(check, signal, interrupted) : true;
  if (!result) throw new FsError("EIO", WRONG);
}

/** Fetches what is missing from `start` on before a reader asks for it. Returns where the download ends. */
export function prefetchRange(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  start: number,
  end: number,
): number {
  const running = downloadOf(cacheFile, start);
  if (running !== undefined) return running.end;
  return begin(context, cacheFile, start, end, true).end;
}

function downloadOf(cacheFile: OpenCacheFile, position: number): Download | undefined {
  for (const download of cacheFile.ranges.downloads) {
    if (download.start <= position && position < download.end && !download.controller.signal.aborted) return download;
  }
  return undefined;
}

export function readError(failure: unknown): FsError {
  if (failure instanceof FsError) return failure;
  if (!(failure instanceof RemoteError)) return new FsError("EIO", String(failure), { cause: failure });
  const { code, message } = toFsError(failure);
  // The file is there, only its bytes cannot be had: so never ENOENT.
  return new FsError(code === "EACCES" ? code : "EIO", message, { cause: failure });
}

/**
 * A bell for one reader. It rings when something of the file changed, when the reader is interrupted, and when the
 * gateway has been known to be offline for too long.
 */
export function watch(context: Remote, cacheFile: OpenCacheFile, signal: AbortSignal) {
  let hasRung = false;
  let isOut = false;
  let resolve = () => {};
  const ring = () => {
    hasRung = true;
    resolve();
  };
  const runOut = () => {
    isOut = true;
    ring();
  };
  const patience = context.network.patience(runOut);
  cacheFile.ranges.waiting.add(ring);
  signal.addEventListener("abort", ring, { once: true });
  return {
    isOutOfPatience: () => isOut,
    async next() {
      if (!hasRung) {
        await new Promise<void>((done) => {
          resolve = done;
        });
      }
      hasRung = false;
    },
    end() {
      patience?.cancel();
      cacheFile.ranges.waiting.delete(ring);
      signal.removeEventListener("abort", ring);
    },
  };
}

function begin(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  from: number,
  wantedEnd: number,
  isPrefetch: boolean,
): Download {
  const first = cacheFile.ranges.missing[0] ?? from;
  const last = cacheFile.ranges.missing.at(-1) ?? from;
  let [start, end] = [from, wantedEnd];
  if (context.fileState.ignoresRanges) [start, end] = [0, EVERYTHING];
  else if (last <= SMALL) [start, end] = isCheckedWhole(cacheFile) ? [0, cacheFile.ranges.originSize] : [first, last];
  else end = Math.min(wantedEnd, partsWithin(cacheFile.ranges.missing, from, wantedEnd)[0]?.end ?? wantedEnd);
  // Bytes that another download fetches already are not requested twice.
  for (const other of cacheFile.ranges.downloads) {
    if (other.start > from) end = Math.min(end, other.start);
    else if (other.end <= from) start = Math.max(start, other.end);
  }
  return launch(
    context,
    cacheFile,
    { start, end, isPrefetch },
    {
      ask: (download) => requestGap(context, cacheFile, download),
      reached: (download) => firstGap(cacheFile, download),
    },
  );
}

/**
 * A small origin is requested whole also when a program has changed other bytes of the file: only the whole has a hash.
 */
function isCheckedWhole({ ranges: { unverified, originSize } }: OpenCacheFile): boolean {
  return unverified.length > 0 && originSize <= SMALL;
}

/** The course of a download. */
interface Course {
  /** Makes one request for the rest of the download. */
  ask(download: Download): Promise<void>;
  /** A position that changes when bytes came. */
  reached(download: Download): number | undefined;
}

export function launch(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  what: Pick<Download, "start" | "end" | "isPrefetch">,
  course: Course,
): Download {
  const download: Download = {
    ...what,
    failure: undefined,
    controller: new AbortController(),
    done: Promise.resolve(),
  };
  cacheFile.ranges.downloads.add(download);
  download.done = carryOut(context, cacheFile, download, course).finally(() => {
    cacheFile.ranges.downloads.delete(download);
    wakeReaders(cacheFile);
  });
  return download;
}

/** Never rejects: the failure is kept for the flows that wait. */
async function carryOut(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  download: Download,
  course: Course,
): Promise<void> {
  const { controller } = download;
  try {
    for (let tries = 1; ; tries += 1) {
      const before = course.reached(download);
      try {
        await course.ask(download);
        break;
      } catch (error) {
        if (controller.signal.aborted) throw error;
        context.network.failed(error);
        const hasProgressed = course.reached(download) !== before;
        if (hasProgressed) tries = 1;
        const wait = download.isPrefetch ? undefined : retryAfter(context, error, tries, hasProgressed);
        if (wait === undefined) throw error;
        await sleep(context.runtime, wait, controller.signal);
      }
    }
  } catch (error) {
    download.failure = error instanceof Error ? error : new Error(String(error));
    if (!controller.signal.aborted) {
      const fields = { err: error, inode: cacheFile.inode, start: download.start, end: download.end };
      if (download.isPrefetch) context.log.debug(fields, "fetching ahead failed");
      else context.log.warn(fields, "fetching failed");
    }
  }
  await written(context, cacheFile, async () => {
    const isGone = download.failure instanceof RemoteError && download.failure.code === "notFound";
    // The node has moved on, and the journal has not told it yet.
    if (isGone && cacheFile.ranges.origin !== undefined) context.metadata.rereads.add(cacheFile.ranges.origin.node);
    // If no handle has the file open any more, closing it records the bytes that came.
    if (cacheFile.use.opens === 0 || cacheFile.ranges.missing === cacheFile.ranges.persistedMissing) return;
    await recordArrived(context, cacheFile);
    evictSoon(context);
  });
}

/** Readers do not depend on it. If it fails, the row says that more is missing than is, and that is fetched again. */
async function written(context: Host, cacheFile: OpenCacheFile, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    context.log.debug({ err: error, inode: cacheFile.inode }, "what was fetched could not be written down");
  }
}

function firstGap(cacheFile: OpenCacheFile, download: Download): number | undefined {
  return partsWithin(cacheFile.ranges.missing, download.start, download.end)[0]?.start;
}

/** Milliseconds; undefined: the failure will not pass by itself. */
function retryAfter(context: Host, error: unknown, tries: number, hasProgressed: boolean): number | undefined {
  if (!(error instanceof RemoteError)) return undefined;
  const { code } = error;
  if (!isRetryable(error) && !(hasProgressed && (code === "silent" || code === "malformed"))) return undefined;
  return retryDelay(context, error, tries);
}

/** Makes one request for what is still missing of the download, and stores its answer in the file. */
async function requestGap(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  download: Download,
): Promise<void> {
  const [gap] = partsWithin(cacheFile.ranges.missing, download.start, download.end);
  if (gap === undefined) return;
  const start = isCheckedWhole(cacheFile) ? download.start : gap.start;
  const isWhole = download.end === EVERYTHING;
  const content = await requestContent(context, cacheFile, download, {
    start,
    end: isWhole ? undefined : download.end,
    takesLoans: true,
  });
  if (content.start < start && !takesWhole(context, cacheFile, download)) return discard(content);
  await store(context, cacheFile, download, content);
}

/** The answer begins at `start` or before. Without an end, all of the content is requested. */
export async function requestContent(
  context: Remote,
  cacheFile: OpenCacheFile,
  download: Download,
  {
    start,
    end,
    takesLoans,
  }: { readonly start: number; readonly end: number | undefined; readonly takesLoans?: boolean },
): Promise<Content> {
  const {
    ranges: { origin },
  } = cacheFile;
  if (origin === undefined) throw new FsError("EIO", `cache file ${cacheFile.lineage} misses bytes of no version`);
  const { signal } = download.controller;
  const { version } = origin;
  const range = end === undefined ? {} : { range: { start, end } };
  const content = await context.client.getContent(origin.node, { version, signal, takesLoans, ...range });
  context.network.answered(OPERATIONS.getContent.scopes);
  const problem =
    content.version !== version
      ? `answered with version ${content.version}`
      : content.start > start
        ? `answered from byte ${content.start}, asked from ${start}`
        : end !== undefined && content.size < end
          ? `has ${content.size} bytes, expected at least ${end}`
          : undefined;
  if (problem === undefined) return content;
  await discard(content);
  throw new RemoteError("malformed", `version ${version} ${problem}`);
}

async function discard(content: Content): Promise<void> {
  await content.bytes[Symbol.asyncIterator]().return?.();
}

/** The gateway ignores ranges and sends everything. One such answer is read and kept. */
function takesWhole(context: LocalFiles, cacheFile: OpenCacheFile, download: Download): boolean {
  context.fileState.ignoresRanges = true;
  for (const other of cacheFile.ranges.downloads) {
    if (other !== download && other.end === EVERYTHING && !other.controller.signal.aborted) return false;
  }
  download.start = 0;
  download.end = EVERYTHING;
  return true;
}

async function store(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  download: Download,
  content: Content,
): Promise<void> {
  const isGathered = content.start === 0 && content.size <= SMALL && cacheFile.ranges.originHash !== null;
  const gathered: Uint8Array[] = [];
  let position = content.start;
  let writing: Promise<void> | undefined;
  try {
    for await (const chunk of content.bytes) {
      download.controller.signal.throwIfAborted();
      const end = position + chunk.length;
      if (end > content.size) throw new RemoteError("malformed", `more than the ${content.size} bytes announced`);
      // More than was asked for: the gateway ignored the range.
      if (end > download.end && !takesWhole(context, cacheFile, download)) return;
      if (isGathered) gathered.push(Buffer.from(chunk));
      else if (!fillNow(context, cacheFile, chunk, position)) {
        // The chunk is a loan for this turn.
        const copy = Buffer.from(chunk);
        await writing;
        writing = fill(context, cacheFile, copy, position);
        // Awaited with the next chunk. Until then a failure must not count as unhandled.
        writing.catch(() => {});
      }
      position = end;
    }
    await writing;
  } finally {
    await writing?.catch(() => {});
  }
  // An answer that ends before the file does would be requested again and again.
  const expected = Math.min(download.end, Math.max(content.size, cacheFile.ranges.missing.at(-1) ?? 0));
  if (position < expected) throw new RemoteError("malformed", `ended at byte ${position} of ${expected}`);
  if (!isGathered) return;
  const bytes = Buffer.concat(gathered);
  if (bytes.length === content.size) {
    requireHash(context, cacheFile, createHash("sha256").update(bytes).digest("hex"));
    cacheFile.ranges.isChecked =
      cacheFile.ranges.isOriginal || isSameRanges(cacheFile.ranges.missing, cacheFile.ranges.unverified);
  }
  await fill(context, cacheFile, bytes, 0).catch((error: unknown) => {
    cacheFile.ranges.isChecked = false;
    throw error;
  });
}

function requireHash(context: Host, cacheFile: OpenCacheFile, hash: string): void {
  if (hash === cacheFile.ranges.originHash) return;
  const fields = {
    inode: cacheFile.inode,
    version: cacheFile.ranges.origin?.version,
    expected: cacheFile.ranges.originHash,
    got: hash,
  };
  context.log.error(fields, WRONG);
  throw new FsError("EIO", WRONG);
}

/** The same as `fill`, in this turn. False: it is not done, because it would have to wait. */
function fillNow(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  chunk: Uint8Array,
  position: number,
): boolean {
  const end = position + chunk.length;
  const {
    ranges: { missing, lock },
    use: { keepsTimes },
    disk: { file },
  } = cacheFile;
  const { disk } = context;
  if (keepsTimes || disk.trouble !== undefined || !disk.mayKeep) return false;
  if (!containsRange(missing, position, end) || !lock.isFree(position, end)) return false;
  if (file.writeNow?.(chunk, position) !== true) return false;
  disk.took(chunk.length);
  context.runtime.step("fetch: part written");
  arrivedAndChecked(context, cacheFile, position, end);
  return true;
}

/** Writes those parts of the chunk that are still missing. */
async function fill(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  chunk: Uint8Array,
  position: number,
): Promise<void> {
  const end = position + chunk.length;
  if (!touchesRange(cacheFile.ranges.missing, position, end)) return;
  const {
    use: { keepsTimes },
    disk: { file },
  } = cacheFile;
  const { disk } = context;
  // The rest of a full disk is for the rows; the rest of a nearly full one is for what programs write.
  if (disk.trouble !== undefined || (!disk.mayKeep && cacheFile.ranges.isOriginal)) {
    throw new FsError("ENOSPC", "the disk has no room for what is read");
  }
  const free = keepsTimes
    ? await cacheFile.ranges.lock.hold(0, EVERYTHING)
    : await cacheFile.ranges.lock.hold(position, end);
  try {
    const parts = partsWithin(cacheFile.ranges.missing, position, end);
    if (parts.length === 0) return;
    const writes = cacheFile.changes.writes;
    const mtime = keepsTimes ? (await file.stat()).mtime : undefined;
    for (const part of parts) {
      const bytes = chunk.subarray(part.start - position, part.end - position);
      await despiteFullDisk(context, bytes.length, () => file.write(bytes, part.start));
      disk.took(bytes.length);
      context.runtime.step("fetch: part written");
    }
    if (mtime !== undefined) {
      const isUnchanged = () => cacheFile.changes.writes === writes && cacheFile.changes.inFlight === 0;
      if (isUnchanged()) await file.setTimes(mtime);
      // A program wrote meanwhile, and setTimes may have taken back its time together with ours.
      if (!isUnchanged()) await file.setTimes(context.runtime.files.currentTime());
    }
    arrivedAndChecked(context, cacheFile, position, end);
  } catch (error) {
    disk.refused(error);
    throw fromDisk(error, "downloaded bytes could not be kept");
  } finally {
    free();
  }
}

/** The check of the whole begins with the last missing byte, before any reader goes on. */
function arrivedAndChecked(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  start: number,
  end: number,
): void {
  const isLast = partsWithin(cacheFile.ranges.missing, 0, EVERYTHING).every(
    (part) => part.start >= start && part.end <= end,
  );
  if (isLast && cacheFile.use.opens > 0) beginCheck(context, cacheFile);
  rangeFetched(cacheFile, start, end);
  hashArrived(context, cacheFile);
}

function beginCheck(context: Rows & LocalFiles & Kernel & Remote & Uploads & Host, cacheFile: OpenCacheFile): void {
  if (!cacheFile.ranges.isOriginal || cacheFile.ranges.originHash === null || cacheFile.ranges.isChecked) return;
  cacheFile.use.opens += 1;
  const check = checkWhole(context, cacheFile);
  cacheFile.ranges.check = check;
  check.catch(() => {
    cacheFile.ranges.check = undefined;
  });
  context.background("the check of a download", () =>
    check.then(() => {}).finally(() => closeCacheFile(context, cacheFile, { write: false })),
  );
}

/**
 * Resolves when the complete file is known to be what the gateway said, and the row says that all is here. If an
 * earlier check could not be made, it is made again. Rejects with EINTR or EIO.
 */
export async function requireChecked(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  signal: AbortSignal,
): Promise<void> {
  if (cacheFile.ranges.check === undefined) beginCheck(context, cacheFile);
  const interrupted = () => new FsError("EINTR", "interrupted while a download was checked");
  const check =
    cacheFile.ranges.check === undefined ? true : unlessAborted(cacheFile.ranges.check, signal, interrupted);
  const isRight = await Promise.resolve(check).catch((error: unknown) => {
    throw fromDisk(error, "downloaded bytes could not be checked");
  });
  if (!isRight) throw new FsError("EIO", WRONG);
  await recordArrived(context, cacheFile);
}

/** Compares the complete file with the hash of its version. If they differ, all of the file is missing again. */
async function checkWhole(context: Rows & LocalFiles & Host, cacheFile: OpenCacheFile): Promise<boolean> {
  // The caller first records in this turn that the last bytes came.
  await undefined;
  const {
    changes: { writes },
  } = cacheFile;
  const { signal } = context.fileState.stopped;
  const whole = () => context.runtime.files.hash(cacheFile.path, signal);
  // A hash that is lost with its thread says nothing of the file.
  const { hash, size } = await (takeHash(cacheFile.ranges)?.finish(signal).catch(whole) ?? whole());
  // A program has changed the file, so the hash tells nothing any more.
  if (!cacheFile.ranges.isOriginal || cacheFile.changes.writes !== writes) return true;
  if (hash === cacheFile.ranges.originHash) {
    cacheFile.ranges.isChecked = true;
    context.runtime.step("fetch: whole checked");
    await written(context, cacheFile, () => recordArrived(context, cacheFile));
    return true;
  }
  const fields = {
    inode: cacheFile.inode,
    version: cacheFile.ranges.origin?.version,
    expected: cacheFile.ranges.originHash,
    got: hash,
  };
  context.log.error(fields, "downloaded bytes are not the version's, they are fetched again");
  context.fileState.distrusted.add(cacheFile.lineage);
  cacheFile.ranges.check = undefined;
  lost(context, cacheFile, rangeOf(0, size));
  return false;
}
