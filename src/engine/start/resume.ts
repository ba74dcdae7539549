/**
 * This daemon takes over the mount of one that died: programs, and the kernel, go on with the handles they have. Each
 * open file is opened again, as it was, before anything is served. Passthrough files stay with the kernel, under the
 * backing id they have. Whatever writers did since the last look counts as written.
 */
import { formatTime } from "../../lib/time.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
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

/** Kernel node ids that a program has open for writing. */
export function writtenBy({ handles }: Resumed): Set<KernelNodeId> {
  return new Set(handles.filter(({ write }) => write).map(({ lineage }) => lineage));
}

export async function resumeHandles(context: Context, { handles }: Resumed): Promise<void> {
  const files = new Map<KernelNodeId, KeptHandle[]>();
  for (const handle of handles) {
    if (handle.kind === "folder") resumeFolder(context, handle);
    else files.set(handle.lineage, [...(files.get(handle.lineage) ?? []), handle]);
  }
  for (const [lineage, ofFile] of files) {
    try {
      await resumeFile(context, lineage, ofFile);
    } catch (error) {
      // Its programs get errors; all others go on.
      context.log.error({ err: error, lineage, handles: ofFile.length }, "an open file could not be taken over");
      for (const { id } of ofFile) context.handleTable.remove(id);
    }
  }
}

function resumeFolder(context: Rows & Kernel, { id, lineage }: KeptHandle): void {
  const folder = context.metadata.inodes.ofKernelNodeId(lineage);
  // The rows are the listing and their ids its cookies, so the listing goes on where it was.
  if (folder !== undefined) context.handles.set(id, { kind: "folder", inode: folder.id, pass: undefined });
  else context.handleTable.remove(id);
}

async function resumeFile(context: Context, lineage: KernelNodeId, handles: readonly KeptHandle[]): Promise<void> {
  const writers = handles.filter(({ write }) => write).length;
  const cacheFile = await reopen(context, lineage, writers);
  cacheFile.use.opens = handles.length;
  cacheFile.passthrough.kernelHandles = handles.length;
  cacheFile.passthrough.backingId = handles.find(({ backing }) => backing > 0)?.backing;
  if (cacheFile.passthrough.backingId !== undefined) cacheFile.passthrough.passthroughWriters = writers;
  try {
    // A superseded version can no longer be written to. Its handles keep what they read.
    const isCurrent = context.metadata.inodes.ofKernelNodeId(lineage)?.lineage === lineage;
    if (writers > 0 && isCurrent)
      await resumeWriting(context, cacheFile, cacheFile.passthrough.backingId !== undefined);
  } catch (error) {
    // Nobody would ever close the file. The rows still say that it may have been written to, for the next start.
    await closeUntaken(context, cacheFile);
    throw error;
  }
  for (const { id, write, append } of handles) {
    context.handles.set(id, { kind: "file", live: cacheFile, write, append, reader: createReader() });
  }
}

/**
 * Files that passthrough writers have closed and still have mapped. This daemon waits for the mappings as the earlier
 * one did.
 */
export async function resumeAllMapped(context: Context, lineages: readonly KernelNodeId[]): Promise<void> {
  for (const lineage of lineages) {
    try {
      await resumeMapped(context, lineage);
    } catch (error) {
      context.log.error({ err: error, lineage }, "a file that a program has mapped could not be taken over");
    }
  }
}

async function resumeMapped(context: Context, lineage: KernelNodeId): Promise<void> {
  const read = context.cacheFiles.get(lineage);
  const cacheFile = read ?? (await reopen(context, lineage, 1));
  if (read !== undefined) {
    read.use.opens += 1;
    read.use.writers += 1;
  }
  try {
    await resumeWriting(context, cacheFile, true);
  } catch (error) {
    // Nobody would ever close the file. The rows still say that it has a writer, so the next start looks at it.
    cacheFile.use.opens -= 1;
    cacheFile.use.writers -= 1;
    if (read === undefined) await closeUntaken(context, cacheFile);
    throw error;
  }
  await closePassthrough(context, cacheFile);
}

async function closeUntaken(context: LocalFiles, cacheFile: CacheFile): Promise<void> {
  context.cacheFiles.delete(cacheFile.lineage);
  await cacheFile.disk.file.close().catch(() => {});
}

/** The file counts as opened once. */
function reopen(context: Rows & LocalFiles & Host, lineage: KernelNodeId, writers: number): Promise<CacheFile> {
  return alone(context, lineage, async () => {
    const cacheFile = await reopenFile(context, lineage, writers > 0);
    cacheFile.use.writers = writers;
    cacheFile.changes.shownSize = "unknown";
    context.cacheFiles.set(lineage, cacheFile);
    return cacheFile;
  });
}

async function resumeWriting(context: Context, cacheFile: CacheFile, isPassthrough: boolean): Promise<void> {
  const { metadata, runtime } = context;
  metadata.transaction(() => {
    const inode = requireCurrent(context, cacheFile.lineage);
    metadata.writers.begin(inode.id);
    if (inode.content === "clean") metadata.inodes.update(inode.id, { content: "open" });
  });
  const inode = requireCurrent(context, cacheFile.lineage);
  cacheFile.changes.isContentDirty = isUncut(inode);
  cacheFile.use.keepsTimes = true;
  // The file got this time when its first writer came. Since then its own time counts.
  cacheFile.use.preparedTime = formatTime(mtimeOf(context, inode));
  if (cacheFile.changes.isContentDirty) {
    cacheFile.ranges.isOriginal = false;
    cacheFile.changes.hasUnpersistedStat = true;
    cacheFile.changes.lastWriteAt = runtime.elapsed();
    cacheFile.changes.firstWriteAt = cacheFile.changes.lastWriteAt;
  }
  if (isPassthrough) {
    // Its `stat` is taken first, so that a change during the comparison shows later.
    await admitWriter(context, cacheFile);
    const now = requireCurrent(context, cacheFile.lineage);
    if (now.content === "open" && (now.hash === null || !(await isStill(context, now, now.hash)))) {
      setContentDirty(context, cacheFile);
      await context.dirtyLog.flush();
    }
  }
  snapshotWhenQuiet(context, cacheFile);
}
