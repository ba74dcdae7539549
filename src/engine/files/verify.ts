/**
 * Verifies changed content: the bytes that it still has of its origin must be right before the content is sent. A part
 * of a version has no hash, so the whole origin is hashed once. Unverified bytes come from the file, and only the bytes
 * that a program has overwritten or truncated come from the gateway. If the gateway's part is larger than the
 * unverified bytes plus WORTH, nothing is verified.
 */
import { createHash } from "node:crypto";
import { RemoteError } from "../../client/errors.ts";
import { containsRange, missingWithin, partsWithin, totalBytes } from "../../lib/ranges.ts";
import { FsError, fromDisk } from "../api/index.ts";
import { type Host, hasVersion, type Remote, type Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { Download } from "./download.ts";
import { launch, readError, requestContent, WRONG, watch } from "./fetch.ts";
import type { LocalFiles } from "./room.ts";
import { isLastTry } from "./unreadable.ts";

/** Bytes. */
const WORTH = 64 * 1024 * 1024;
const CHUNK = 256 * 1024;

/**
 * Resolves when the bytes of the origin that are here are known to be right, or cannot be checked. Rejects as
 * requireRange does.
 */
export async function verify(
  context: Rows & LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  signal: AbortSignal,
): Promise<void> {
  if (cacheFile.ranges.missing.length > 0 || cacheFile.ranges.unverified.length === 0) return;
  // Content that came in one piece was checked before it was used.
  if (cacheFile.ranges.isChecked) return cacheFile.ranges.markVerified();
  const interest = watch(context, cacheFile, signal);
  // Two verifications at a time could each take bytes for right that the other has found wrong.
  const download = cacheFile.ranges.verification ?? begin(context, cacheFile);
  try {
    while (cacheFile.ranges.downloads.has(download)) {
      if (signal.aborted) throw new FsError("EINTR", "interrupted while a version was checked");
      if (interest.isOutOfPatience()) throw new FsError("EIO", "the gateway does not answer");
      await interest.next();
    }
    // If all unverified bytes were truncated or overwritten meanwhile, the failure does not matter.
    if (download.failure !== undefined && cacheFile.ranges.unverified.length > 0) throw readError(download.failure);
  } finally {
    interest.end();
  }
}

interface VerificationProgress {
  readonly hash: ReturnType<typeof createHash>;
  /** Bytes hashed so far. */
  position: number;
}

function begin(context: Rows & LocalFiles & Remote & Host, cacheFile: OpenCacheFile): Download {
  const progress: VerificationProgress = { hash: createHash("sha256"), position: 0 };
  const verification = launch(context, cacheFile, new Download("nothing", false), {
    ask: (download) => goOn(context, cacheFile, download, progress),
    reached: () => progress.position,
  });
  cacheFile.ranges.verifyBy(verification);
  return verification;
}

async function goOn(
  context: LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  download: Download,
  progress: VerificationProgress,
): Promise<void> {
  if (!isWorthIt(cacheFile) || !(await readAll(context, cacheFile, download, progress)))
    return cacheFile.ranges.markVerified();
  const hash = progress.hash.digest("hex");
  if (hash !== cacheFile.ranges.originHash) {
    const fields = {
      inode: cacheFile.inode,
      version: cacheFile.ranges.origin?.version,
      expected: cacheFile.ranges.originHash,
      got: hash,
    };
    // The bytes arrived damaged, or a crash came in the middle of a write that the rows do not have yet.
    context.log.warn(fields, "the local bytes are not those of their version, which is fetched again");
    context.fileState.distrusted.add(cacheFile.kernelNodeId);
    cacheFile.ranges.lost(cacheFile.ranges.unverified);
    throw new FsError("EIO", WRONG);
  }
  // Bytes that arrived before the first change by a program may not be synced yet.
  await cacheFile.disk.sync();
  context.runtime.step("verify: synced");
  cacheFile.ranges.markVerified();
  cacheFile.ranges.setChecked(true);
}

function isWorthIt({ ranges: { originSize, unverified } }: OpenCacheFile): boolean {
  const here = totalBytes(unverified);
  return originSize - here <= here + WORTH;
}

/** Hashes the whole origin. False: that version is gone. */
async function readAll(
  context: LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  download: Download,
  progress: VerificationProgress,
): Promise<boolean> {
  while (progress.position < cacheFile.ranges.originSize) {
    download.signal.throwIfAborted();
    if (await readHere(cacheFile, progress, cacheFile.ranges.originSize)) continue;
    try {
      await readThere(context, cacheFile, download, progress);
    } catch (error) {
      if (!(error instanceof RemoteError) || error.code !== "notFound") throw error;
      if (!(await isGone(context, cacheFile, download))) throw error;
      context.log.warn(
        { err: error, inode: cacheFile.inode },
        "the local bytes of a version that is gone cannot be checked",
      );
      return false;
    }
  }
  return true;
}

/**
 * True: the version counts as gone. A gateway may for a moment not find a version that it has, so it is asked whether
 * the version is still listed. At the last try that does not count: a version that is listed for ever and not there
 * must not keep the content from being sent.
 */
async function isGone(
  context: LocalFiles & Remote,
  { kernelNodeId, ranges: { origin } }: OpenCacheFile,
  { signal }: Download,
): Promise<boolean> {
  if (origin === undefined || isLastTry(context, kernelNodeId)) return true;
  return (await hasVersion(context, origin.node, origin.version, signal)) !== true;
}

/**
 * Hashes the next bytes if they are here. True: they were here, or must be looked at again. A program's write to these
 * bytes waits for the lock, so they are hashed as they were before it or not at all.
 */
async function readHere(cacheFile: OpenCacheFile, progress: VerificationProgress, until: number): Promise<boolean> {
  const { position } = progress;
  const [part] = partsWithin(cacheFile.ranges.unverified, position, Math.min(until, position + CHUNK));
  if (part?.start !== position) return false;
  const free = await cacheFile.ranges.lock.hold(position, part.end);
  try {
    // The bytes were overwritten during the wait: the caller looks again.
    if (!containsRange(cacheFile.ranges.unverified, position, part.end)) return true;
    const buffer = Buffer.allocUnsafe(part.end - position);
    const length = await cacheFile.disk.file.read(buffer, 0, buffer.length, position);
    if (length < buffer.length)
      throw new FsError("EIO", `cache file ${cacheFile.kernelNodeId} ends at byte ${position + length}`);
    progress.hash.update(buffer);
    progress.position = part.end;
    return true;
  } catch (error) {
    throw fromDisk(error, "the local file cannot be read");
  } finally {
    free();
  }
}

/**
 * Hashes the next bytes from the gateway. If the answer has more bytes than were asked for, they are used up to the
 * last byte that is not here; bytes that are here are still taken from the file.
 */
async function readThere(
  context: LocalFiles & Remote,
  cacheFile: OpenCacheFile,
  download: Download,
  progress: VerificationProgress,
): Promise<void> {
  const { position: start } = progress;
  const [gap] = missingWithin(cacheFile.ranges.unverified, start, cacheFile.ranges.originSize);
  const end = gap?.end ?? cacheFile.ranges.originSize;
  const range = { start, end: context.fileState.ignoresRanges ? undefined : end };
  const content = await requestContent(context, cacheFile, download, range);
  if (content.start < start) context.fileState.ignoresRanges = true;
  let at = content.start;
  for await (const chunk of content.bytes) {
    download.signal.throwIfAborted();
    const until = Math.min(at + chunk.length, cacheFile.ranges.originSize);
    while (progress.position < until) {
      if (await readHere(cacheFile, progress, until)) continue;
      const to = partsWithin(cacheFile.ranges.unverified, progress.position, until)[0]?.start ?? until;
      progress.hash.update(chunk.subarray(progress.position - at, to - at));
      progress.position = to;
    }
    at += chunk.length;
    if (missingWithin(cacheFile.ranges.unverified, progress.position, cacheFile.ranges.originSize).length === 0) return;
  }
  if (at < end) throw new RemoteError("malformed", `ended at byte ${at} of ${end}`);
}
