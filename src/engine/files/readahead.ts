/**
 * Readahead: fetches bytes ahead of a reader. The window doubles while reading is sequential; else there is hardly any.
 * After a seek, the bytes fetched ahead are about as many as were read since the seek, until the window is at its
 * largest. So a video player that seeks again and again fetches about twice the bytes that it plays.
 */
import { partsWithin } from "../../lib/ranges.ts";
import type { Host, Kernel, Remote, Rows, Uploads } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { prefetchRange, requireRange } from "./fetch.ts";
import type { LocalFiles } from "./room.ts";

const WINDOW_FIRST = 1024 * 1024;
/** Windows that are much smaller leave a far line idle between requests. */
const WINDOW_MAX = 16 * 1024 * 1024;
/** A read that is not sequential is fetched up to the end of its block of this many bytes. */
const BLOCK = 64 * 1024;
/** How many windows are fetched ahead of the reader, each by a request of its own. */
const AHEAD = 2;
/** Bytes by which reads of a sequential reader may arrive out of order. */
const SLACK = 1024 * 1024;

/** The position at which sequential reading of one handle goes on, and its window. In bytes. */
export interface SequentialReader {
  next: number;
  window: number;
  /** The window doubles when reading gets to this position. */
  growAt: number;
  /** The sequential reading began in the middle of the file. */
  isAfterSeek: boolean;
}

export function createReader(): SequentialReader {
  return { next: 0, window: 0, growAt: 0, isAfterSeek: false };
}

/** A reader that is known to read from the first to the last byte. */
export function createWholeReader(): SequentialReader {
  return { next: 0, window: WINDOW_MAX, growAt: 0, isAfterSeek: false };
}

/** Resolves when [start, end) of the file is here. Rejects as requireRange does. */
export async function fetchAround(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  reader: SequentialReader,
  start: number,
  end: number,
  signal: AbortSignal,
): Promise<void> {
  const isSequential = Math.abs(start - reader.next) <= SLACK;
  reader.next = end;
  if (cacheFile.ranges.missing.length === 0) return;
  if (!isSequential) {
    reader.window = 0;
    reader.growAt = 0;
    reader.isAfterSeek = start > SLACK;
    const from = Math.floor(start / BLOCK) * BLOCK;
    await requireRange(context, cacheFile, start, end, signal, from + Math.ceil((end - from) / BLOCK) * BLOCK);
    return;
  }
  if (end >= reader.growAt) {
    reader.window = Math.min(WINDOW_MAX, Math.max(WINDOW_FIRST, reader.window * 2));
    reader.growAt = end + reader.window;
  }
  const wait = requireRange(context, cacheFile, start, end, signal, start + reader.window);
  wait.catch(() => {});
  if (context.network.isOnline) readAhead(context, cacheFile, end, reader);
  await wait;
}

function readAhead(
  context: Rows & LocalFiles & Kernel & Remote & Uploads & Host,
  cacheFile: OpenCacheFile,
  from: number,
  { window, isAfterSeek }: SequentialReader,
): void {
  const isFar = window === WINDOW_MAX || (window > WINDOW_FIRST && !isAfterSeek);
  const target = from + window * (isFar ? AHEAD : 1);
  let position = from;
  for (let count = cacheFile.ranges.downloads.size; count <= AHEAD; count += 1) {
    const [part] = partsWithin(cacheFile.ranges.missing, position, target);
    if (part === undefined) return;
    position = prefetchRange(context, cacheFile, part.start, part.start + window);
    if (position >= target) return;
  }
}
