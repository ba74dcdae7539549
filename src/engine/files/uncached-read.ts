/**
 * Uncached reads: while the disk has no room for missing ranges, they are fetched for one reader and not kept. A window
 * of bytes stays in memory for the next read.
 */
import { createHash } from "node:crypto";
import { RemoteError } from "../../client/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import { partsWithin, type Ranges } from "../../lib/ranges.ts";
import { sleep } from "../../lib/runtime.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import type { Origin } from "./origin-ranges.ts";
import type { LocalFiles } from "./room.ts";

const WINDOW = 1024 * 1024;
/** How many open files keep a window in memory, at most. */
const WINDOWS_MAX = 16;
const TRIES = 3;
const RETRY = { firstMs: 200, maxMs: 400 };

/** Bytes of the origin from `start` on. They cover all missing ranges of the read. */
interface UncachedWindow {
  readonly start: number;
  readonly bytes: Uint8Array;
}

/**
 * Fetches the missing ranges of [start, end). `layOver` puts the result over the bytes that are read from the file.
 * Undefined: nothing is missing. Rejects with an FsError, never ENOENT.
 */
export async function fetchUncached(
  context: LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  start: number,
  end: number,
  signal: AbortSignal,
): Promise<UncachedWindow | undefined> {
  const gaps = partsWithin(cacheFile.ranges.missing, start, end);
  const [first, last] = [gaps[0]?.start, gaps.at(-1)?.end];
  if (first === undefined || last === undefined) return undefined;
  const {
    disk: { uncachedBytes },
  } = cacheFile;
  if (
    uncachedBytes !== undefined &&
    uncachedBytes.start <= first &&
    last <= uncachedBytes.start + uncachedBytes.bytes.length
  )
    return uncachedBytes;
  const size = cacheFile.ranges.missing.at(-1) ?? last;
  const { origin, originHash } = cacheFile.ranges;
  if (origin === undefined) throw new FsError("EIO", `cache file ${cacheFile.kernelNodeId} misses bytes of no version`);
  const part = { start: first, end: Math.min(size, Math.max(last, first + WINDOW)) };
  const bytes = await fetchVersionRange(context, { ...origin, hash: originHash }, part, signal);
  const fetched = { start: first, bytes };
  keep(context, cacheFile, fetched);
  return fetched;
}

/** Keeps the window for the next read. If there are too many, the file that was not read for longest loses its own. */
function keep(
  { fileState: { uncachedReaders }, cacheFiles }: LocalFiles,
  cacheFile: OpenCacheFile,
  window: UncachedWindow,
): void {
  // The file was closed during the fetch.
  if (cacheFiles.get(cacheFile.kernelNodeId) !== cacheFile) return;
  cacheFile.disk.keepUncached(window);
  uncachedReaders.delete(cacheFile);
  uncachedReaders.add(cacheFile);
  const [oldest] = uncachedReaders;
  if (uncachedReaders.size <= WINDOWS_MAX || oldest === undefined) return;
  uncachedReaders.delete(oldest);
  oldest.disk.keepUncached(undefined);
}

/**
 * Copies fetched bytes into the missing ranges of `buffer`, which was read from the file at `offset`. `missing`: the
 * missing ranges from before that read.
 */
export function layOver(missing: Ranges, window: UncachedWindow, buffer: Uint8Array, offset: number): void {
  for (const part of partsWithin(missing, offset, offset + buffer.length)) {
    const from = part.start - window.start;
    buffer.set(window.bytes.subarray(from, from + part.end - part.start), part.start - offset);
  }
}

/**
 * Bytes of one version, for a program that waits. Failures that may pass are retried a few times. Rejects with an
 * FsError, never ENOENT: EINTR when `signal` aborts, EACCES, EIO.
 */
export async function fetchVersionRange(
  context: LocalFiles & Remote & Host,
  of: VersionContent,
  part: { readonly start: number; readonly end: number },
  signal: AbortSignal,
): Promise<Uint8Array> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await context.network.ask(signal, (limit) => fetchRange(context, of, part, limit));
    } catch (error) {
      if (!(error instanceof FsError)) throw error;
      const { cause, code } = error;
      // "aborted": `network.ask` gave up because the gateway was offline, and it may be back by now.
      const isPassing =
        cause instanceof RemoteError &&
        (cause.isTransient || cause.code === "aborted") &&
        tries < TRIES &&
        context.network.isOnline;
      // Never ENOENT: the file exists, and only its bytes cannot be had.
      if (!isPassing || signal.aborted) throw code === "ENOENT" ? new FsError("EIO", error.message, { cause }) : error;
      await sleep(context.runtime, backoff(RETRY, tries), signal);
    }
  }
}

export interface VersionContent extends Origin {
  /** SHA-256 of the whole content; null: not known. */
  readonly hash: string | null;
}

async function fetchRange(
  context: LocalFiles & Remote,
  { node, version, hash }: VersionContent,
  { start, end }: { readonly start: number; readonly end: number },
  signal: AbortSignal,
) {
  const range = context.fileState.ignoresRanges ? {} : { range: { start, end } };
  const content = await context.client.getContent(node, { version, signal, ...range });
  const result = Buffer.alloc(end - start);
  let position = content.start;
  for await (const chunk of content.bytes) {
    const skipped = Math.max(0, start - position);
    if (skipped < chunk.length && position < end) {
      result.set(chunk.subarray(skipped, Math.max(skipped, end - position)), position + skipped - start);
    }
    position += chunk.length;
    if (position >= end) break;
  }
  if (content.version !== version || content.start > start || position < end) {
    throw new RemoteError("malformed", `version ${version}, bytes ${start} to ${end}: something else was answered`);
  }
  const isWhole = start === 0 && end === content.size && hash !== null;
  if (isWhole && createHash("sha256").update(result).digest("hex") !== hash) {
    throw new FsError("EIO", "downloaded bytes are not the version's");
  }
  return result;
}
