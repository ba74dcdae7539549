/**
 * Names the files that programs change in the dirty-file log (content/dirty-log.ts), so that no byte is lost when the
 * rows are damaged or old. start/restore-rows.ts reads the lines back.
 */
import type { Written } from "../../content/dirty-log.ts";
import { isWhole } from "../../metadata/cache-files.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { After, InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import { ROOT_INODE } from "../../metadata/metadata.ts";
import type { Host, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import type { LocalFiles } from "./room.ts";

type Needs = Pick<Rows & Host, "metadata" | "dirtyLog" | "runtime">;

/** Rows per step. */
const SLICE = 40;

/** The content is about to change or has changed, and the rows say so. The log has it after the next flush. */
export function logDirty({ metadata, dirtyLog }: Needs, inode: Inode, cacheFile?: OpenCacheFile): void {
  dirtyLog.add(writtenOf(metadata, inode, cacheFile));
}

/** The file was renamed or removed: if its content is dirty, the log gets its new name. */
export function logNames(context: Rows & LocalFiles & Host, id: InodeId): void {
  const inode = context.metadata.inodes.get(id);
  if (inode?.kind !== "file" || inode.content !== "dirty") return;
  logDirty(context, inode, context.cacheFiles.get(inode.kernelNodeId));
  flushSoon(context);
}

/**
 * The gateway has the content, or it is not wanted any more. The log is written after the caller's transaction, if the
 * rows still say so then.
 */
export function logClean(context: Rows & LocalFiles & Host, kernelNodeId: KernelNodeId): void {
  context.background("writing the dirty-file log", async () => {
    await undefined;
    const inode = context.metadata.inodes.ofKernelNodeId(kernelNodeId);
    if (inode !== undefined && inode.kernelNodeId === kernelNodeId && inode.content !== "clean") return;
    context.dirtyLog.add({ kernelNodeId, done: true });
    await context.dirtyLog.flush();
    if (context.dirtyLog.isLong()) await renewList(context);
  });
}

function flushSoon(context: Pick<Rows & LocalFiles, "background" | "dirtyLog">): void {
  context.background("writing the dirty-file log", () => context.dirtyLog.flush());
}

/** Rewrites the log from the rows. If that fails, the log stays as it is. */
export async function renewList(context: Needs & Pick<LocalFiles & Host, "fileState" | "log" | "disk">): Promise<void> {
  const { metadata, dirtyLog, log, runtime, fileState, disk } = context;
  // The new log replaces the file at its path. If the state dir is gone, that may be the file of another mount.
  disk.lookForFolder();
  if (disk.trouble === "gone") return;
  try {
    await dirtyLog.replace(async function* lines() {
      // Lines that are added from here on come after these.
      for (let after: After<InodeId> = 0; ; ) {
        const inodes = metadata.inodes.unclean(after, SLICE);
        // Files of any size, because the rows get the size only when the writer closes.
        for (const inode of inodes) if (inode.content !== "clean") yield writtenOf(metadata, inode);
        const last = inodes.at(-1);
        if (last === undefined) return;
        after = last.id;
        await new Promise<void>((resolve) => runtime.soon(resolve));
        if (fileState.stopped.aborted) throw new Error("the mount ends");
      }
    });
  } catch (error) {
    if (!fileState.stopped.aborted) log.warn({ err: error }, "the dirty-file log cannot be rewritten");
  }
}

function writtenOf(metadata: Rows["metadata"], inode: Inode, cacheFile?: OpenCacheFile): Written {
  const { kernelNodeId, changes, originNode, originVersion } = inode;
  const entry = metadata.entries.firstOfInode(inode.id);
  const row = entry === undefined ? undefined : metadata.nodes.ofEntry(entry.id);
  const base = row?.base;
  const known = metadata.cacheFiles.get(kernelNodeId);
  const isAllHere = (cacheFile?.ranges.missing.length ?? 0) === 0 && (known === undefined || isWhole(known));
  const isOf =
    cacheFile?.ranges.origin ??
    (originNode === null || originVersion === null ? undefined : { node: originNode, version: originVersion });
  const { mode } = inode.attributes;
  const way = metadata.detachedFiles.get(inode.id)?.way ?? [];
  const wasIn = way.at(-1)?.folder;
  const without = { path: way.map(({ name }) => name), ...(wasIn === undefined ? {} : { folder: wasIn }) };
  return {
    kernelNodeId,
    changes,
    ...(mode === undefined ? {} : { mode }),
    ...(entry === undefined ? without : { path: namesDownTo(metadata, entry), folder: entry.parent }),
    ...(row?.nodeId == null || base == null ? {} : { node: row.nodeId, revision: base.revision, size: base.size }),
    ...(row?.nodeId == null || base?.head == null ? {} : { head: base.head }),
    ...(row?.nodeId == null || base?.hash == null ? {} : { hash: base.hash }),
    ...(isAllHere || isOf === undefined ? {} : { missingFrom: isOf }),
  };
}

function namesDownTo(metadata: Rows["metadata"], { parent, name }: Entry): string[] {
  const names = [name];
  for (let current = parent; current !== ROOT_INODE; ) {
    const [entry] = metadata.entries.ofInode(current);
    if (entry === undefined) return [];
    names.unshift(entry.name);
    current = entry.parent;
  }
  return names;
}
