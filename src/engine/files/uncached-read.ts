/**
 * Uncached reads: missing ranges are fetched for one reader and not kept, while the disk has no room for them. A little
 * more than was asked for stays in memory for the next read.
 */
import { createHash } from "node:crypto";
import { RemoteError } from "../../client/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import { partsWithin, type Ranges } from "../../lib/ranges.ts";
import { sleep } from "../../lib/runtime.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote } from "../core/index.ts";
import type { OpenCacheFile, Origin } from "./cache-file.ts";
import type { LocalFiles } from "./room.ts";

const WINDOW = 1024 * 1024;
/** Open files that keep a window in memory, at most. */
const WINDOWS_MAX = 16;
const TRIES = 3;
const RETRY = { firstMs: 200, maxMs: 400 };

/** Bytes of the origin, with all that is missing of [start, end). */
interface Passing {
  readonly start: number;
  readonly bytes: Uint8Array;
}

/**
 * The result is to be laid over what is read of the file, with `layOver`; undefined: nothing is missing. Rejects with
 * an FsError, never ENOENT.
 */
export async function fetchUncached(
  context: LocalFiles & Remote & Host,
  cacheFile: OpenCacheFile,
  start: number,
  end: number,
  signal: AbortSignal,
): Promise<Passing | undefined> {
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
  if (origin === undefined) throw new FsError("EIO", `cache file ${cacheFile.lineage} misses bytes of no version`);
  const part = { start: first, end: Math.min(size, Math.max(last, first + WINDOW)) };
  const bytes = await fetchVersionRange(context, { ...origin, hash: originHash }, part, signal);
  const fetched = { start: first, bytes };
  keep(context, cacheFile, fetched);
  return fetched;
}

/** The file that was not read for longest loses its window and fetches anew. */
function keep(
  { fileState: { uncachedReaders }, cacheFiles }: LocalFiles,
  cacheFile: OpenCacheFile,
  passing: Passing,
): void {
  // The file was closed during the fetch.
  if (cacheFiles.get(cacheFile.lineage) !== cacheFile) return;
  cacheFile.disk.uncachedBytes = passing;
  uncachedReaders.delete(cacheFile);
  uncachedReaders.add(cacheFile);
  const [oldest] = uncachedReaders;
  if (uncachedReaders.size <= WINDOWS_MAX || oldest === undefined) return;
  uncachedReaders.delete(oldest);
  oldest.disk.uncachedBytes = undefined;
}

/** `missing`: missing ranges of the file from before it was read into `buffer`, from `offset` on. */
export function layOver(missing: Ranges, passing: Passing, buffer: Uint8Array, offset: number): void {
  for (const part of partsWithin(missing, offset, offset + buffer.length)) {
    const from = part.start - passing.start;
    buffer.set(passing.bytes.subarray(from, from + part.end - part.start), part.start - offset);
  }
}

/** Bytes of one version, for a program that waits: asked again a few times where that may help. Rejects with an FsError. */
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
      // Our own patience aborted the request; the gateway may be back by now.
      const isPassing =
        cause instanceof RemoteError &&
        (cause.isTransient || cause.code === "aborted") &&
        tries < TRIES &&
        context.network.isOnline;
      // The file is there, only its bytes cannot be had.
      if (!isPassing || signal.aborted) throw code === "ENOENT" ? new FsError("EIO", error.message, { cause }) : error;
      await sleep(context.runtime, backoff(RETRY, tries), signal);
    }
  }
}

export interface VersionContent extends Origin {
  /** Of the whole content; null: not known. */
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
