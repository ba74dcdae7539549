/** Handles: open, what create opens, release. */
import type { Inode } from "../metadata/inodes.ts";
import type { Context } from "./context.ts";
import { FsError } from "./errors.ts";
import { evict } from "./evict.ts";
import type { Caller, HandleId, Lineage, Opened, OpenFlags } from "./filesystem.ts";
import { closeLive, openLive } from "./live.ts";
import { inodeOf, requireWritable } from "./stat.ts";
import { truncateLive } from "./write.ts";

export async function open(context: Context, _caller: Caller, lineage: Lineage, flags: OpenFlags): Promise<Opened> {
  const inode = inodeOf(context, lineage);
  if (inode.kind === "folder") throw new FsError("EISDIR", "a folder");
  if (inode.kind === "symlink") throw new FsError("ELOOP", "a symlink");
  if (inode.kind !== "file") throw new FsError("ENXIO", `a ${inode.kind} is opened by the kernel`);
  if (inode.lineage !== lineage) throw new FsError("ESTALE", `lineage ${lineage} is superseded`);
  return openInode(context, inode, flags);
}

/** The first open of a file that was just made. */
export function openCreated(context: Context, inode: Inode, flags: OpenFlags): Promise<Opened> {
  return openInode(context, inode, flags);
}

async function openInode(context: Context, inode: Inode, flags: OpenFlags): Promise<Opened> {
  const write = flags.write || flags.truncate;
  if (write) requireWritable(context);
  const live = await openLive(context, inode.lineage, { write });
  try {
    if (flags.truncate) await truncateLive(context, live, 0);
  } catch (error) {
    await closeLive(context, live, { write });
    throw error;
  }
  const handle = context.nextHandle();
  context.handles.set(handle, { kind: "file", live, write, append: flags.append });
  // A lineage has one content only, so pages the kernel has of it are right.
  return { handle, keepCache: true };
}

/** Never fails: the program has long gone on. */
export async function release(context: Context, handleId: HandleId): Promise<void> {
  const handle = context.handles.get(handleId);
  context.handles.delete(handleId);
  if (handle?.kind !== "file") return;
  try {
    await closeLive(context, handle.live, { write: handle.write });
    await evict(context);
  } catch (error) {
    context.log.error({ err: error, inode: handle.live.inode }, "closing a live file failed");
  }
}
