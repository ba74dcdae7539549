/**
 * Fetches missing ranges of a cache file from its origin. Many readers share a download, and each waits only for its
 * own bytes. A chunk is written only into ranges that are still missing. The range lock makes chunks and programs'
 * writes into missing ranges take turns, so bytes of the origin never overwrite those of a program.
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
import type { OpenCacheFile } from "./cache-file.ts";
import { despiteFullDisk } from "./disk-room.ts";
import { Download } from "./download.ts";
import { evictSoon } from "./evict.ts";
import { closeCacheFile } from "./open-close.ts";
import type { LocalFiles } from "./room.ts";

/** Bytes. Content up to this size comes in one piece and is checked before a byte of it is used. */
export const SMALL = 1024 * 1024;
/** Bytes. Readers of files up to this size wait for the check of the complete file. */
const CHECKED_AT_ONCE = 64 * 1024 * 1024;
const EVERYTHING = Number.MAX_SAFE_INTEGER;
export const WRONG = "downloaded bytes are not the version's";

/**
 * Resolves when all of [start, end) is here. A download that this begins may go on to `reach`. Rejects with EINTR when
 * `signal` aborts (the download goes on for other readers), with EACCES when the gateway refuses the bytes, with ENOSPC
 * when the disk has no room, and with EIO when the bytes cannot be had.
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
      // The failure of a prefetch is not the reader's: the bytes are requested once more.
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
 * Waits until the complete file was checked against its hash, if it is no larger than CHECKED_AT_ONCE. Rejects with
 * EINTR when `signal` aborts, and with EIO when the bytes are wrong.
 */
export async function untilChecked(cacheFile: OpenCacheFile, signal: AbortSignal): Promise<void> {
  if (cacheFile.ranges.check === undefined || cacheFile.ranges.isChecked) return;
  const interrupted = () => new FsError("EINTR", "interrupted while a download was checked");
  const check = cacheFile.ranges.check;
  const result =
    (await cacheFile.disk.file.stat()).size <= CHECKED_AT_ONCE ? await unlessAborted(check, signal, interrupted) : true;
  if (!result) throw new FsError("EIO", WRONG);
}

/** Begins a prefetch of the missing bytes from `start` on. Returns the end of its download. */
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
    if (download.start <= position && position < download.end && !download.signal.aborted) return download;
  }
  return undefined;
}

export function readError(failure: unknown): FsError {
  if (failure instanceof FsError) return failure;
  if (!(failure instanceof RemoteError)) return new FsError("EIO", String(failure), { cause: failure });
  const { code, message } = toFsError(failure);
  // Never ENOENT: the file exists, and only its bytes cannot be had.
  return new FsError(code === "EACCES" ? code : "EIO", message, { cause: failure });
}

/**
 * Wakes one reader: when missing ranges or downloads of the file change, when `signal` aborts, and when the gateway has
 * been offline for too long. Call `end` at last.
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
  cacheFile.ranges.watch(ring);
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
      cacheFile.ranges.unwatch(ring);
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
  if (context.fileState.ignoresRanges) return launchFetch(context, cacheFile, new Download("everything", isPrefetch));
  let [start, end] = [from, wantedEnd];
  if (last <= SMALL) [start, end] = isCheckedWhole(cacheFile) ? [0, cacheFile.ranges.originSize] : [first, last];
  else end = Math.min(wantedEnd, partsWithin(cacheFile.ranges.missing, from, wantedEnd)[0]?.end ?? wantedEnd);
  // Bytes that another download is fetching are not requested twice.
  for (const other of cacheFile.ranges.downloads) {
    if (other.start > from) end = Math.min(end, other.start);
    else if (other.end <= from) start = Math.max(start, other.end);
  }
  return launchFetch(context, cacheFile, new Download({ start, end }, isPrefetch));
}

function launchFetch(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  download: Download,
): Download {
  return launch(context, cacheFile, download, {
    ask: () => requestGap(context, cacheFile, download),
    reached: () => firstGap(cacheFile, download),
  });
}

/**
 * True: a program has changed the file, and the origin is small. Then the origin is requested as a whole, because only
 * the whole has a hash.
 */
function isCheckedWhole({ ranges: { unverified, originSize } }: OpenCacheFile): boolean {
  return unverified.length > 0 && originSize <= SMALL;
}

/** The requests of a download. */
interface Course {
  /** Makes one request for the rest of the download. */
  ask(download: Download): Promise<void>;
  /** A position that changes when bytes have arrived. */
  reached(download: Download): number | undefined;
}

export function launch(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  download: Download,
  course: Course,
): Download {
  const { fileState, runtime } = context;
  cacheFile.ranges.beginDownload(download);
  fileState.downloadBegins();
  download.runs(
    carryOut(context, cacheFile, download, course).finally(() => {
      fileState.downloadEnded(runtime.elapsed());
      cacheFile.ranges.endDownload(download);
    }),
  );
  return download;
}

/** Never rejects: `download.failure` keeps the failure for the flows that wait. */
async function carryOut(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  download: Download,
  course: Course,
): Promise<void> {
  const { signal } = download;
  try {
    for (let tries = 1; ; tries += 1) {
      const before = course.reached(download);
      try {
        await course.ask(download);
        break;
      } catch (error) {
        if (signal.aborted) throw error;
        context.network.failed(error);
        const hasProgressed = course.reached(download) !== before;
        if (hasProgressed) tries = 1;
        const wait = download.isPrefetch ? undefined : retryAfter(context, error, tries, hasProgressed);
        if (wait === undefined) throw error;
        await sleep(context.runtime, wait, signal);
      }
    }
  } catch (error) {
    download.fail(error);
    if (!signal.aborted) {
      const fields = { err: error, inode: cacheFile.inode, start: download.start, end: download.end };
      if (download.isPrefetch) context.log.debug(fields, "fetching ahead failed");
      else context.log.warn(fields, "fetching failed");
    }
  }
  await written(context, cacheFile, async () => {
    const isGone = download.failure instanceof RemoteError && download.failure.code === "notFound";
    // The node has other content by now, and the journal has not told it yet.
    if (isGone && cacheFile.ranges.origin !== undefined) context.metadata.rereads.add(cacheFile.ranges.origin.node);
    // If the file is being closed, the close records the arrived bytes.
    if (cacheFile.use.opens === 0 || cacheFile.ranges.missing === cacheFile.ranges.persistedMissing) return;
    await cacheFile.ranges.recordArrived(cacheFile.disk);
    evictSoon(context);
  });
}

/**
 * Runs work that records arrived bytes in the row. Readers do not depend on it. If it fails, the row names bytes as
 * missing that are here, and they are fetched again after a restart.
 */
async function written(context: Host, cacheFile: OpenCacheFile, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    context.log.debug({ err: error, inode: cacheFile.inode }, "fetched ranges could not be recorded");
  }
}

function firstGap(cacheFile: OpenCacheFile, download: Download): number | undefined {
  return partsWithin(cacheFile.ranges.missing, download.start, download.end)[0]?.start;
}

/** Milliseconds until the next try; undefined: there is none, because the failure will not pass by itself. */
function retryAfter(context: Host, error: unknown, tries: number, hasProgressed: boolean): number | undefined {
  if (!(error instanceof RemoteError)) return undefined;
  const { code } = error;
  if (!isRetryable(error) && !(hasProgressed && (code === "silent" || code === "malformed"))) return undefined;
  return retryDelay(context, error, tries);
}

/** Makes one request for the bytes of the download that are still missing, and stores the answer in the file. */
async function requestGap(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  download: Download,
): Promise<void> {
  const [gap] = partsWithin(cacheFile.ranges.missing, download.start, download.end);
  if (gap === undefined) return;
  const start = isCheckedWhole(cacheFile) ? download.start : gap.start;
  const content = await requestContent(context, cacheFile, download, {
    start,
    end: download.isOfEverything ? undefined : download.end,
    takesLoans: true,
  });
  if (content.start < start && !takesWhole(context, cacheFile, download)) return discard(content);
  await store(context, cacheFile, download, content);
}

/**
 * Requests bytes of the origin. The answer begins at `start` or before it. Without `end`, all of the content is
 * requested. Rejects with a RemoteError, or with EIO when there is no origin.
 */
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
  if (origin === undefined) throw new FsError("EIO", `cache file ${cacheFile.kernelNodeId} misses bytes of no version`);
  const { signal } = download;
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

/**
 * The gateway ignores ranges and sends everything. True: this download takes the whole answer. False: another download
 * does.
 */
function takesWhole(context: LocalFiles, cacheFile: OpenCacheFile, download: Download): boolean {
  context.fileState.ignoresRanges = true;
  for (const other of cacheFile.ranges.downloads) {
    if (other !== download && other.isOfEverything && !other.signal.aborted) return false;
  }
  download.takeEverything();
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
      download.signal.throwIfAborted();
      const end = position + chunk.length;
      if (end > content.size) throw new RemoteError("malformed", `more than the ${content.size} bytes announced`);
      // The answer goes beyond the requested end, so the gateway ignores ranges.
      if (end > download.end && !takesWhole(context, cacheFile, download)) return;
      if (isGathered) gathered.push(Buffer.from(chunk));
      else if (!fillNow(context, cacheFile, chunk, position)) {
        // The chunk is lent for this turn only.
        const copy = Buffer.from(chunk);
        await writing;
        writing = fill(context, cacheFile, copy, position);
        // `writing` is awaited with the next chunk. Until then its failure must not count as unhandled.
        writing.catch(() => {});
      }
      position = end;
    }
    await writing;
  } finally {
    await writing?.catch(() => {});
  }
  // Without this check, an answer that ends too early would be requested again and again.
  const expected = Math.min(download.end, Math.max(content.size, cacheFile.ranges.missing.at(-1) ?? 0));
  if (position < expected) throw new RemoteError("malformed", `ended at byte ${position} of ${expected}`);
  if (!isGathered) return;
  const bytes = Buffer.concat(gathered);
  if (bytes.length === content.size) {
    requireHash(context, cacheFile, createHash("sha256").update(bytes).digest("hex"));
    const { isOriginal, missing, unverified } = cacheFile.ranges;
    cacheFile.ranges.setChecked(isOriginal || isSameRanges(missing, unverified));
  }
  await fill(context, cacheFile, bytes, 0).catch((error: unknown) => {
    cacheFile.ranges.setChecked(false);
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

/** Does the same as `fill` without a wait. False: nothing was done, because it would have to wait. */
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

/** Writes those parts of the chunk that are still missing. Rejects with an FsError as fromDisk says. */
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
  // The last room of a full disk is for the rows, and that of a nearly full disk is for programs' writes.
  if (disk.trouble !== undefined || (!disk.mayKeep && cacheFile.ranges.isOriginal)) {
    throw new FsError("ENOSPC", "the disk has no room for fetched bytes");
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
      // A program wrote during setTimes, which may have set back the time of that write too.
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

/**
 * Bytes of the origin are in the file. With the last of them the check of the file begins, before any reader goes on.
 */
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
  cacheFile.ranges.arrived(start, end);
  cacheFile.ranges.hashArrived(() => context.runtime.files.beginHash(cacheFile.path));
}

function beginCheck(context: Rows & LocalFiles & Kernel & Remote & Uploads & Host, cacheFile: OpenCacheFile): void {
  if (!cacheFile.ranges.isOriginal || cacheFile.ranges.originHash === null || cacheFile.ranges.isChecked) return;
  cacheFile.use.open();
  const check = checkWhole(context, cacheFile);
  cacheFile.ranges.beginCheck(check);
  context.background("the check of a download", () =>
    check.then(() => {}).finally(() => closeCacheFile(context, cacheFile, { write: false })),
  );
}

/**
 * Resolves when the complete file agrees with the hash of its version, and the row says that all is here. A check that
 * failed to run is repeated. Rejects with EINTR when `signal` aborts, with EIO when the bytes are wrong, with the
 * disk's error as fromDisk says, or with errors of recording.
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
  await cacheFile.ranges.recordArrived(cacheFile.disk);
}

/**
 * Compares the complete file with the hash of its version. False: they differ, and all of the file is missing again.
 */
async function checkWhole(context: LocalFiles & Host, cacheFile: OpenCacheFile): Promise<boolean> {
  // The caller first removes the last bytes from the missing ranges, in this turn.
  await undefined;
  const {
    changes: { writes },
  } = cacheFile;
  const signal = context.fileState.stopped;
  const whole = () => context.runtime.files.hash(cacheFile.path, signal);
  // A running hash that failed with its thread says nothing about the file.
  const { hash, size } = await (cacheFile.ranges.takeHash()?.finish(signal).catch(whole) ?? whole());
  // A program has changed the file, so the hash says nothing any more.
  if (!cacheFile.ranges.isOriginal || cacheFile.changes.writes !== writes) return true;
  if (hash === cacheFile.ranges.originHash) {
    cacheFile.ranges.setChecked(true);
    context.runtime.step("fetch: whole checked");
    await written(context, cacheFile, () => cacheFile.ranges.recordArrived(cacheFile.disk));
    return true;
  }
  const fields = {
    inode: cacheFile.inode,
    version: cacheFile.ranges.origin?.version,
    expected: cacheFile.ranges.originHash,
    got: hash,
  };
  context.log.error(fields, "downloaded bytes are not the version's, they are fetched again");
  context.fileState.distrusted.add(cacheFile.kernelNodeId);
  cacheFile.ranges.forgetCheck();
  cacheFile.ranges.lost(rangeOf(0, size));
  return false;
}
