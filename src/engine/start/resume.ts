/**
 * This daemon takes over the mount of one that died: programs, and the kernel, go on with the handles they
 * have. Each file that was open is opened again before anything is served, as it was: what the kernel reads and writes
 * by itself stays with it, under the id it has. Whatever writers did since anybody looked counts as written.
 */
import { formatTime } from "../../lib/time.ts";
import type { Lineage } from "../../metadata/ids.ts";
import type { KeptHandle } from "../api/index.ts";
import {
  alone,
  type CacheFile,
  type Context,
  type Host,
  type Kernel,
  type LocalFiles,
  type Rows,
} from "../core/index.ts";
import {
  admitWriter,
  closePassthrough,
  createReader,
  isStill,
  isUncut,
  mtimeOf,
  reopenFile,
  requireCurrent,
  setContentDirty,
} from "../files/index.ts";
import { snapshotWhenQuiet } from "../upload/index.ts";

/** What this mount goes on with. */
export interface Resumed {
  readonly handles: readonly KeptHandle[];
}

/** Lineages that a program has open for writing. */
export function writtenBy({ handles }: Resumed): Set<Lineage> {
  return new Set(handles.filter(({ write }) => write).map(({ lineage }) => lineage));
}

export async function resumeHandles(context: Context, { handles }: Resumed): Promise<void> {
  const files = new Map<Lineage, KeptHandle[]>();
  for (const handle of handles) {
    if (handle.kind === "folder") resumeFolder(context, handle);
    else files.set(handle.lineage, [...(files.get(handle.lineage) ?? []), handle]);
  }
  for (const [lineage, ofFile] of files) {
    try {
      await resumeFile(context, lineage, ofFile);
    } catch (error) {
      // Its programs get errors, all others go on.
      context.log.error({ err: error, lineage, handles: ofFile.length }, "an open file could not be taken over");
      for (const { id } of ofFile) context.handleTable.remove(id);
    }
  }
}

function resumeFolder(context: Rows & Kernel, { id, lineage }: KeptHandle): void {
  const folder = context.metadata.inodes.ofLineage(lineage);
  // The rows are the listing, and their ids its cookies: it goes on where it was.
  if (folder !== undefined) context.handles.set(id, { kind: "folder", inode: folder.id, pass: undefined });
  else context.handleTable.remove(id);
}

async function resumeFile(context: Context, lineage: Lineage, handles: readonly KeptHandle[]): Promise<void> {
  const writers = handles.filter(({ write }) => write).length;
  const live = await reopen(context, lineage, writers);
  live.use.opens = handles.length;
  live.passthrough.kernelHandles = handles.length;
  live.passthrough.backingId = handles.find(({ backing }) => backing > 0)?.backing;
  if (live.passthrough.backingId !== undefined) live.passthrough.passthroughWriters = writers;
  try {
    // One of a version that was replaced has nothing to write to any more, and keeps what it reads.
    const isCurrent = context.metadata.inodes.ofLineage(lineage)?.lineage === lineage;
    if (writers > 0 && isCurrent) await resumeWriting(context, live, live.passthrough.backingId !== undefined);
  } catch (error) {
    // Nobody would ever close it. That it may have been written to stays in the rows, for the next start.
    await closeUntaken(context, live);
    throw error;
  }
  for (const { id, write, append } of handles) {
    context.handles.set(id, { kind: "file", live, write, append, reader: createReader() });
  }
}

/**
 * Programs that were passed on have closed these files, and have them mapped still. They are waited for as the daemon
 * before did.
 */
export async function resumeAllMapped(context: Context, lineages: readonly Lineage[]): Promise<void> {
  for (const lineage of lineages) {
    try {
      await resumeMapped(context, lineage);
    } catch (error) {
      context.log.error({ err: error, lineage }, "a file that a program has mapped could not be taken over");
    }
  }
}

async function resumeMapped(context: Context, lineage: Lineage): Promise<void> {
  const read = context.cacheFiles.get(lineage);
  const live = read ?? (await reopen(context, lineage, 1));
  if (read !== undefined) {
    read.use.opens += 1;
    read.use.writers += 1;
  }
  try {
    await resumeWriting(context, live, true);
  } catch (error) {
    // Nobody would ever close it. The rows say still that somebody writes to it: the next start looks at it.
    live.use.opens -= 1;
    live.use.writers -= 1;
    if (read === undefined) await closeUntaken(context, live);
    throw error;
  }
  await closePassthrough(context, live);
}

async function closeUntaken(context: LocalFiles, live: CacheFile): Promise<void> {
  context.cacheFiles.delete(live.lineage);
  await live.disk.file.close().catch(() => {});
}

/** Counts as opened once. */
function reopen(context: Rows & LocalFiles & Host, lineage: Lineage, writers: number): Promise<CacheFile> {
  return alone(context, lineage, async () => {
    const live = await reopenFile(context, lineage, writers > 0);
    live.use.writers = writers;
    live.changes.shownSize = "unknown";
    context.cacheFiles.set(lineage, live);
    return live;
  });
}

async function resumeWriting(context: Context, live: CacheFile, isPassed: boolean): Promise<void> {
  const { metadata, runtime } = context;
  metadata.transaction(() => {
    const inode = requireCurrent(context, live.lineage);
    metadata.writers.begin(inode.id);
    if (inode.content === "clean") metadata.inodes.update(inode.id, { content: "open" });
  });
  const inode = requireCurrent(context, live.lineage);
  live.changes.isContentDirty = isUncut(inode);
  live.use.keepsTimes = true;
  // It was given to the file when the first writer came; since then the file itself has had the last word.
  live.use.preparedTime = formatTime(mtimeOf(context, inode));
  if (live.changes.isContentDirty) {
    live.ranges.isOriginal = false;
    live.changes.hasUnpersistedStat = true;
    live.changes.lastWriteAt = runtime.elapsed();
    live.changes.firstWriteAt = live.changes.lastWriteAt;
  }
  if (isPassed) {
    // Looked at first: what changes while it is compared shows later.
    await admitWriter(context, live);
    const now = requireCurrent(context, live.lineage);
    if (now.content === "open" && (now.hash === null || !(await isStill(context, now, now.hash)))) {
      setContentDirty(context, live);
      await context.dirtyLog.flush();
    }
  }
  snapshotWhenQuiet(context, live);
}
