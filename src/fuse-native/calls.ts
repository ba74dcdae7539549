/**
 * Translates each call of libfuse: from paths and numbers of open files to calls of the FileSystem. It knows no
 * callback, no errno and no time limit. libfuse withholds some values that the kernel knows (the flags of create, one
 * of two times); this file decides which values stand in for them.
 */

import {
  type Caller,
  type FileSystem,
  type FolderEntry,
  type Found,
  FsError,
  type HandleId,
  type KernelNodeId,
  type SetAttributes,
  type Stat,
} from "../engine/api/index.ts";
import { kindOfMode } from "../fuse/attributes.ts";
import { XATTR_CREATE, XATTR_REPLACE } from "../fuse/flags.ts";
import { openFlags } from "../fuse/handlers.ts";
import { timeFromMilliseconds } from "../lib/time.ts";
import { type Paths, requireUtf8 } from "./paths.ts";

/** An open file. Its number is ours, because the library takes 31 bits. */
interface Open {
  /** The path under which libfuse has it open. Renames by other mounts do not count. */
  path: string;
  kernelNodeId: KernelNodeId;
  handle: HandleId;
  readonly mayWrite: boolean;
  readonly appends: boolean;
  /** The path has led to another file since. This is checked only for files that are open for appending. */
  hasStrayed: boolean;
  /** The value of FileSystem.changes when the path was last known to lead to this file. */
  knownChanges: number;
  /** Reads under way. When they end, `former` are closed. */
  reads: number;
  former: { kernelNodeId: KernelNodeId; handle: HandleId }[];
}

/** A chown(2) argument that leaves the owner as it is. */
const UNCHANGED = 0xffff_ffff;
const LISTED_AT_ONCE = 1000;

export type Calls = ReturnType<typeof createCalls>;

export function createCalls(fileSystem: FileSystem, paths: Paths) {
  const opens = new Map<number, Open>();
  let lastNumber = 0;

  function add(open: Omit<Open, "hasStrayed" | "reads" | "former">, answers = 0): number {
    lastNumber += 1;
    paths.hold(open.kernelNodeId, answers);
    opens.set(lastNumber, { ...open, hasStrayed: false, reads: 0, former: [] });
    return lastNumber;
  }

  function openOf(number: number): Open {
    const open = opens.get(number);
    if (open === undefined) throw new FsError("EBADF", `no open file ${number}`);
    return open;
  }

  /** True if libfuse has the path open. libfuse hides files by its own paths, not by what these lead to now. */
  function isOpen(path: string): boolean {
    return [...opens.values()].some((open) => open.path === path);
  }

  function moved({ signal }: Caller, from: string, to: string): void {
    // libfuse was told that the rename failed, and keeps the old paths.
    if (signal.aborted) return;
    for (const open of opens.values()) {
      if (open.path === from || open.path.startsWith(`${from}/`)) open.path = to + open.path.slice(from.length);
    }
  }

  async function close({ kernelNodeId, handle }: { kernelNodeId: KernelNodeId; handle: HandleId }): Promise<void> {
    await fileSystem.release(handle);
    paths.letGo(kernelNodeId);
  }

  /**
   * Another mount may have replaced the file at the path. The kernel still takes both for one file, and all programs
   * that have it open share its pages. So a handle that only reads goes on in the new file, and pages of two contents
   * never mix. It stays in the old file while the path leads to no file or cannot be looked up. Each read then looks
   * again, because `changes` does not count a new file under a name that the kernel does not know.
   */
  async function follow(caller: Caller, path: string, number: number, open: Open): Promise<void> {
    if (open.mayWrite || open.knownChanges === fileSystem.changes) return;
    const { changes } = fileSystem;
    try {
      await paths.at(caller, path, async (kernelNodeId) => {
        if (kernelNodeId === open.kernelNodeId) return;
        const { handle } = await fileSystem.open(caller, kernelNodeId, openFlags(0));
        // The number may have been closed meanwhile, after its read was given up. Nothing would close the new handle
        // then.
        if (!opens.has(number)) return fileSystem.release(handle);
        paths.hold(kernelNodeId);
        open.former.push({ kernelNodeId: open.kernelNodeId, handle: open.handle });
        open.kernelNodeId = kernelNodeId;
        open.handle = handle;
      });
      open.knownChanges = changes;
    } catch (error) {
      if (!(error instanceof FsError) || caller.signal.aborted) throw error;
    }
  }

  /**
   * The offset at which an append writes. The kernel gives the end of the file that is now at the path. If another
   * mount has put another file there, writing at that offset would leave a hole in our file or overwrite its bytes.
   * From then on the append goes to the end of our own file.
   */
  async function endOf(caller: Caller, open: Open, given: number): Promise<number> {
    const { changes } = fileSystem;
    if (!open.hasStrayed && open.knownChanges !== changes) {
      try {
        await paths.at(caller, open.path, async (kernelNodeId) => {
          open.hasStrayed = kernelNodeId !== open.kernelNodeId;
        });
        open.knownChanges = changes;
      } catch (error) {
        // Nothing is at the path, or it cannot be looked up now. The next append looks again, as in `follow`.
        if (!(error instanceof FsError) || caller.signal.aborted) throw error;
      }
    }
    return open.hasStrayed ? (await fileSystem.getattr(caller, open.kernelNodeId)).stat.size : given;
  }

  function set(caller: Caller, path: string, change: SetAttributes): Promise<unknown> {
    return paths.at(caller, path, (kernelNodeId) => fileSystem.setattr(caller, kernelNodeId, change));
  }

  async function attribute<T>(
    caller: Caller,
    path: string,
    name: string,
    action: (kernelNodeId: KernelNodeId) => Promise<T>,
  ): Promise<T> {
    requireUtf8(name);
    return paths.at(caller, path, action);
  }

  /** Makes a node that no program has open. */
  async function make(
    caller: Caller,
    path: string,
    action: (parent: KernelNodeId, name: string) => Promise<Found>,
  ): Promise<void> {
    const { kernelNodeId } = await paths.below(caller, path, action);
    paths.hold(kernelNodeId, 1);
    paths.letGo(kernelNodeId);
  }

  /**
   * Throws ENOTEMPTY while the folder contains a hidden file: libfuse will still remove a file there that was deleted
   * while open.
   */
  async function requireNothingHidden(caller: Caller, path: string): Promise<void> {
    await paths.at(caller, path, async (kernelNodeId) => {
      if (paths.hides(kernelNodeId)) throw new FsError("ENOTEMPTY", `${path}: an open file was removed in it`);
    });
  }

  async function isFolder(caller: Caller, path: string): Promise<boolean> {
    try {
      const { stat } = await paths.at(caller, path, (kernelNodeId) => fileSystem.getattr(caller, kernelNodeId));
      return stat.kind === "folder";
    } catch (error) {
      if (error instanceof FsError && error.code === "ENOENT") return false;
      throw error;
    }
  }

  return {
    async getattr(caller: Caller, path: string): Promise<Stat> {
      const { stat } = await paths.at(caller, path, (kernelNodeId) => fileSystem.getattr(caller, kernelNodeId));
      return stat;
    },

    /** Lists the whole folder: the library keeps the list until the folder is closed. */
    readdir: (caller: Caller, path: string): Promise<FolderEntry[]> =>
      paths.at(caller, path, async (kernelNodeId) => {
        const { handle } = await fileSystem.opendir(caller, kernelNodeId);
        const all: FolderEntry[] = [];
        try {
          for (let cookie = 0; ; ) {
            const entries = await fileSystem.readdir(caller, handle, cookie, LISTED_AT_ONCE, false);
            const last = entries.at(-1);
            if (last === undefined) return all;
            all.push(...entries);
            cookie = last.cookie;
          }
        } finally {
          await fileSystem.releasedir(handle);
        }
      }),

    readlink: (caller: Caller, path: string) =>
      paths.at(caller, path, (kernelNodeId) => fileSystem.readlink(caller, kernelNodeId)),
    statfs: (caller: Caller) => fileSystem.statfs(caller),
    chmod: (caller: Caller, path: string, mode: number) => set(caller, path, { mode: mode & 0o7777 }),

    chown: (caller: Caller, path: string, uid: number, gid: number) =>
      set(caller, path, { ...(uid !== UNCHANGED && { uid }), ...(gid !== UNCHANGED && { gid }) }),

    utimens(caller: Caller, path: string, atime: number, mtime: number): Promise<unknown> {
      if (!Number.isSafeInteger(atime) || !Number.isSafeInteger(mtime)) throw new FsError("EINVAL", "no such time");
      return set(caller, path, { atime: timeFromMilliseconds(atime), mtime: timeFromMilliseconds(mtime) });
    },

    truncate(caller: Caller, path: string, size: number, number?: number): Promise<unknown> {
      if (!Number.isSafeInteger(size)) throw new FsError("EFBIG", `${size} is over 2^53`);
      if (number === undefined) return set(caller, path, { size });
      const { kernelNodeId, handle } = openOf(number);
      return fileSystem.setattr(caller, kernelNodeId, { size, handle });
    },

    mknod(caller: Caller, path: string, mode: number, device: number): Promise<unknown> {
      const kind = kindOfMode(mode);
      if (kind === undefined || kind === "folder" || kind === "symlink") throw new FsError("EINVAL", `mode ${mode}`);
      return make(caller, path, (parent, name) => fileSystem.mknod(caller, parent, name, kind, mode & 0o7777, device));
    },

    mkdir: (caller: Caller, path: string, mode: number): Promise<unknown> =>
      make(caller, path, (parent, name) => fileSystem.mkdir(caller, parent, name, mode & 0o7777)),

    symlink(caller: Caller, target: string, path: string): Promise<unknown> {
      requireUtf8(target);
      return make(caller, path, (parent, name) => fileSystem.symlink(caller, parent, name, target));
    },

    link: (caller: Caller, from: string, to: string): Promise<unknown> =>
      paths.at(caller, from, (kernelNodeId) =>
        make(caller, to, (parent, name) => fileSystem.link(caller, kernelNodeId, parent, name)),
      ),

    async rename(caller: Caller, from: string, to: string): Promise<void> {
      if (isOpen(from) && paths.looksHidden(from, to)) {
        await paths.hide(caller, from, to, (parent, name) => fileSystem.unlink(caller, parent, name));
        moved(caller, from, to);
        return;
      }
      const movesFolder = await isFolder(caller, from);
      if (movesFolder && (await isFolder(caller, to))) await requireNothingHidden(caller, to);
      await paths.below(caller, from, (parent, name) =>
        paths.below(caller, to, (newParent, newName) =>
          fileSystem.rename(
            caller,
            { parent, name },
            { parent: newParent, name: newName },
            { noReplace: false, exchange: false },
          ),
        ),
      );
      if (movesFolder) paths.forgetFolders();
      moved(caller, from, to);
    },

    async unlink(caller: Caller, path: string): Promise<void> {
      if (paths.unhide(path)) return;
      // The kernel node id is in use until the name is gone, and then forgotten, so that the inode behind the name can
      // go too.
      await paths.at(caller, path, () =>
        paths.below(caller, path, (parent, name) => fileSystem.unlink(caller, parent, name)),
      );
    },

    async rmdir(caller: Caller, path: string): Promise<void> {
      await requireNothingHidden(caller, path);
      await paths.at(caller, path, () =>
        paths.below(caller, path, (parent, name) => fileSystem.rmdir(caller, parent, name)),
      );
      paths.forgetFolders();
    },

    open(caller: Caller, path: string, flags: number): Promise<number> {
      // Must be read before the lookup: during the open the path may come to lead to another file.
      const knownChanges = fileSystem.changes;
      const asked = openFlags(flags);
      return paths.at(caller, path, async (kernelNodeId) => {
        const { handle } = await fileSystem.open(caller, kernelNodeId, asked);
        return add({ path, kernelNodeId, handle, mayWrite: asked.write, appends: asked.append, knownChanges });
      });
    },

    /**
     * libfuse does not pass the flags. The name did not exist a moment ago, so the file is made exclusively: a file that
     * another mount has made meanwhile stays, with its content.
     */
    create: (caller: Caller, path: string, mode: number): Promise<number> =>
      paths.below(caller, path, async (parent, name) => {
        const flags = { read: true, write: true, append: false, truncate: false, exclusive: true };
        const knownChanges = fileSystem.changes;
        const { kernelNodeId, handle } = await fileSystem.create(caller, parent, name, mode & 0o7777, flags);
        return add({ path, kernelNodeId, handle, mayWrite: true, appends: false, knownChanges }, 1);
      }),

    async read(caller: Caller, path: string, number: number, offset: number, length: number): Promise<Uint8Array> {
      const open = openOf(number);
      await follow(caller, path, number, open);
      open.reads += 1;
      try {
        return await fileSystem.read(caller, open.handle, offset, length);
      } finally {
        open.reads -= 1;
        if (open.reads === 0) for (const former of open.former.splice(0)) await close(former);
      }
    },

    async write(caller: Caller, number: number, offset: number, bytes: Uint8Array): Promise<number> {
      const open = openOf(number);
      const start = open.appends ? await endOf(caller, open, offset) : offset;
      if (!Number.isSafeInteger(start + bytes.length)) throw new FsError("EFBIG", `${start} is over 2^53`);
      return fileSystem.write(caller, open.handle, start, bytes, { killPrivileges: false });
    },

    flush: (caller: Caller, number: number) => fileSystem.flush(caller, openOf(number).handle),
    fsync: (caller: Caller, number: number, dataOnly: boolean) =>
      fileSystem.fsync(caller, openOf(number).handle, dataOnly),

    fsyncdir: (caller: Caller, path: string): Promise<void> =>
      paths.at(caller, path, async (kernelNodeId) => {
        const { handle } = await fileSystem.opendir(caller, kernelNodeId);
        try {
          await fileSystem.fsyncdir(caller, handle);
        } finally {
          await fileSystem.releasedir(handle);
        }
      }),

    async release(number: number): Promise<void> {
      const open = opens.get(number);
      if (open === undefined) return;
      opens.delete(number);
      for (const one of [...open.former.splice(0), open]) await close(one);
    },

    setxattr: (caller: Caller, path: string, name: string, value: Uint8Array, flags: number) =>
      attribute(caller, path, name, (kernelNodeId) =>
        fileSystem.setxattr(caller, kernelNodeId, name, value, {
          create: (flags & XATTR_CREATE) !== 0,
          replace: (flags & XATTR_REPLACE) !== 0,
        }),
      ),
    getxattr: (caller: Caller, path: string, name: string) =>
      attribute(caller, path, name, (kernelNodeId) => fileSystem.getxattr(caller, kernelNodeId, name)),
    listxattr: (caller: Caller, path: string) =>
      paths.at(caller, path, (kernelNodeId) => fileSystem.listxattr(caller, kernelNodeId)),
    removexattr: (caller: Caller, path: string, name: string) =>
      attribute(caller, path, name, (kernelNodeId) => fileSystem.removexattr(caller, kernelNodeId, name)),
  };
}
