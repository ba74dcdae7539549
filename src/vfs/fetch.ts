/**
 * Brings missing parts of a live file from the version it grew from. A chunk is only written where
 * the file still misses it at that moment, and changes by programs wait for a chunk that is being
 * written: bytes of the origin never land on bytes of a program.
 */
import {
  clipRanges,
  listRanges,
  missingWithin,
  type Range,
  type Ranges,
  rangeOf,
  subtractRange,
} from "../lib/ranges.ts";
import { unlessAborted } from "../lib/single-flight.ts";
import type { Inode } from "../metadata/inodes.ts";
import type { Context } from "./context.ts";
import { FsError } from "./errors.ts";
import { closeLive, openLive } from "./live.ts";
import type { Fetch, LiveFile } from "./live-file.ts";
import { toFsError } from "./network.ts";

/** A file up to this size comes whole. */
const SMALL = 1024 * 1024;
const WINDOW_FIRST = 1024 * 1024;
const WINDOW_MAX = 8 * 1024 * 1024;
/** Ranges in flight ahead of a sequential reader. */
const AHEAD = 2;

/** The parts of [start, end) that are not here. */
export function missingParts(missing: Ranges, start: number, end: number): Range[] {
  const here = missingWithin(missing, start, end);
  // What is not in the set of missing ranges is here; the rest of the interval is missing.
  const parts: Range[] = [];
  let position = start;
  for (const part of here) {
    if (position < part.start) parts.push({ start: position, end: part.start });
    position = part.end;
  }
  if (position < end) parts.push({ start: position, end });
  return parts;
}

/** Resolves when all of [start, end) is here. Who is interrupted stops waiting; the fetch goes on for others. */
export async function requireRange(
  context: Context,
  live: LiveFile,
  start: number,
  end: number,
  signal: AbortSignal,
): Promise<void> {
  const isSequential = start === live.readEnd;
  live.window = isSequential ? Math.min(WINDOW_MAX, Math.max(WINDOW_FIRST, live.window * 2)) : WINDOW_FIRST;
  live.readEnd = end;
  for (;;) {
    const [part] = missingParts(live.missing, start, end);
    if (part === undefined) break;
    const running = live.fetches.find((fetch) => fetch.start <= part.start && part.start < fetch.end);
    const fetch = running ?? begin(context, live, part.start, Math.max(part.end, part.start + live.window));
    await unlessAborted(fetch.done, signal, () => new FsError("EINTR", "interrupted"));
  }
  if (isSequential && live.missing.length > 0) readAhead(context, live, end);
}

/** What a sequential reader will want next. */
function readAhead(context: Context, live: LiveFile, from: number): void {
  let position = from;
  for (let count = live.fetches.length; count < AHEAD; count += 1) {
    const [next] = listRanges(subtractRange(live.missing, 0, position));
    const start = next === undefined ? undefined : Math.max(next.start, position);
    if (start === undefined || start > from + WINDOW_MAX * AHEAD) return;
    const running = live.fetches.find((fetch) => fetch.start <= start && start < fetch.end);
    const fetch = running ?? begin(context, live, start, start + live.window);
    position = fetch.end;
  }
}

function begin(context: Context, live: LiveFile, start: number, wantedEnd: number): Fetch {
  const [next] = listRanges(subtractRange(live.missing, 0, start));
  const last = [...listRanges(live.missing)].at(-1)?.end ?? start;
  const isSmall = last <= SMALL;
  const end = isSmall ? last : Math.max(start + 1, Math.min(wantedEnd, next?.end ?? start));
  const from = isSmall ? (next?.start ?? start) : start;
  const limit = new AbortController();
  const done = fetchRange(context, live, from, end, limit.signal).finally(() => {
    live.fetches.splice(live.fetches.indexOf(fetch), 1);
  });
  // Whoever waits for it hears of a failure; when nobody does, it is found out when it is wanted.
  done.catch(() => undefined);
  const fetch: Fetch = { start: from, end, done, stop: () => limit.abort() };
  live.fetches.push(fetch);
  return fetch;
}

async function fetchRange(
  context: Context,
  live: LiveFile,
  start: number,
  end: number,
  stopped: AbortSignal,
): Promise<void> {
  const { origin } = live;
  if (origin === undefined) throw new FsError("EIO", `live file ${live.lineage} misses bytes of no version`);
  const { client, network } = context;
  const limit = new AbortController();
  const stop = () => limit.abort();
  stopped.addEventListener("abort", stop, { once: true });
  // Known offline, a program gets its error within a second; an answer that has begun may take its time.
  const content = await network.ask(stopped, (signal) => {
    signal.addEventListener("abort", stop, { once: true });
    return client.getContent(origin.node, { version: origin.version, range: { start, end }, signal: limit.signal });
  });
  let position = content.start;
  try {
    for await (const chunk of content.bytes) {
      await fill(live, chunk, position);
      position += chunk.length;
    }
  } catch (error) {
    network.failed(error);
    throw toFsError(error);
  }
  if (position < end) throw new FsError("EIO", `version ${origin.version} ended at ${position}, expected ${end}`);
  await verifyWhole(context, live);
}

/** Writes those parts of the chunk that are still missing. */
async function fill(live: LiveFile, chunk: Uint8Array, position: number): Promise<void> {
  const before = live.filling;
  const filling = before.then(async () => {
    for (const part of missingParts(live.missing, position, position + chunk.length)) {
      await live.file.write(chunk.subarray(part.start - position, part.end - position), part.start);
      live.missing = subtractRange(live.missing, part.start, part.end);
    }
  });
  live.filling = filling.catch(() => undefined);
  await filling;
}

/** A download that has become complete is what the gateway said it is, or it counts as not here. */
async function verifyWhole(context: Context, live: LiveFile): Promise<void> {
  if (live.missing.length > 0 || live.writers > 0 || live.writes > 0) return;
  const inode = context.metadata.inodes.ofLineage(live.lineage);
  if (inode === undefined || inode.lineage !== live.lineage || inode.hash === null || inode.content !== "clean") return;
  const { hash, size } = await context.runtime.files.hash(context.paths.live(live.lineage));
  if (hash === inode.hash || live.writers > 0 || live.writes > 0) return;
  live.missing = rangeOf(0, inode.size);
  context.log.error(
    { inode: inode.id, expected: inode.hash, got: hash, size },
    "downloaded bytes are not the version's",
  );
  throw new FsError("EIO", "downloaded bytes are not the version's");
}

/** Everything of a file is here, before it is read by anybody who cannot fetch. */
export async function makeWhole(context: Context, inode: Inode, signal: AbortSignal): Promise<void> {
  const row = context.metadata.lives.get(inode.lineage);
  const open = context.lives.get(inode.lineage);
  if (open === undefined && (row === undefined || row.missing === "[]")) return;
  const live = await openLive(context, inode.lineage, { write: false });
  try {
    for (let ranges = [...listRanges(live.missing)]; ranges.length > 0; ranges = [...listRanges(live.missing)]) {
      const [range] = ranges;
      if (range !== undefined) await requireRange(context, live, range.start, range.end, signal);
    }
    context.metadata.lives.update(live.lineage, { missing: "[]" });
  } finally {
    await closeLive(context, live, { write: false });
  }
}

/** The file was cut short at `size`: nothing behind it is missing any more. */
export function cutMissing(live: LiveFile, size: number): void {
  live.missing = clipRanges(live.missing, size);
}
