/**
 * Per call of libfuse: from paths and numbers of open files to calls of the FileSystem. Knows no callback, no errno
 * and no limit in time. What a call does not tell though the kernel knows it (flags of create, one of two times) is
 * decided here.
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

/** An open file, by a number of ours: the library takes 31 bits. */
interface Open {
  /** Where libfuse has it: what other mounts do to the name does not count. */
  path: string;
  lineage: KernelNodeId;
  handle: HandleId;
  readonly mayWrite: boolean;
  readonly appends: boolean;
  /** Its path led to another file since; only looked for where it appends. */
  hasStrayed: boolean;
  /** FileSystem.changes when it was known that its path still leads to it. */
  seen: number;
  /** Reads under way, after which `former` are closed. */
  reads: number;
  former: { lineage: KernelNodeId; handle: HandleId }[];
}

/** chown(2): leave it. */
const UNCHANGED = 0xffff_ffff;
const LISTED_AT_ONCE = 1000;

export type Calls = ReturnType<typeof createCalls>;

export function createCalls(fileSystem: FileSystem, paths: Paths) {
  const opens = new Map<number, Open>();
  let lastNumber = 0;

  function add(open: Omit<Open, "hasStrayed" | "reads" | "former">, answers = 0): number {
    lastNumber += 1;
    paths.hold(open.lineage, answers);
    opens.set(lastNumber, { ...open, hasStrayed: false, reads: 0, former: [] });
    return lastNumber;
  }

  function openOf(number: number): Open {
    const open = opens.get(number);
    if (open === undefined) throw new FsError("EBADF", `no open file ${number}`);
    return open;
  }

  /** As libfuse sees it, which hides by its own paths and not by what they lead to now. */
  function isOpen(path: string): boolean {
    return [...opens.values()].some((open) => open.path === path);
  }

  function moved({ signal }: Caller, from: string, to: string): void {
    // libfuse was told that it failed, and has them where they were.
    if (signal.aborted) return;
    for (const open of opens.values()) {
      if (open.path === from || open.path.startsWith(`${from}/`)) open.path = to + open.path.slice(from.length);
    }
  }

  async function close({ lineage, handle }: { lineage: KernelNodeId; handle: HandleId }): Promise<void> {
    await fileSystem.release(handle);
    paths.letGo(lineage);
  }

  /**
   * Somebody elsewhere may have changed what is at the path. To the kernel it is the same file, whose pages all who
   * have it open share: so that they never mix two contents, who only reads goes on in the new one. What is gone,
   * no file any more, or not to be had now is read on, and each read looks again: what comes in the place of what is
   * gone is no change to the kernel, which knows of no such name.
   */
  async function follow(caller: Caller, path: string, number: number, open: Open): Promise<void> {
    if (open.mayWrite || open.seen === fileSystem.changes) return;
    const { changes } = fileSystem;
    try {
      await paths.at(caller, path, async (lineage) => {
        if (lineage === open.lineage) return;
        const { handle } = await fileSystem.open(caller, lineage, openFlags(0));
        // Closed meanwhile, as one may whose read was given up: nobody would close this one.
        if (!opens.has(number)) return fileSystem.release(handle);
        paths.hold(lineage);
        open.former.push({ lineage: open.lineage, handle: open.handle });
        open.lineage = lineage;
        open.handle = handle;
      });
      open.seen = changes;
    } catch (error) {
      if (!(error instanceof FsError) || caller.signal.aborted) throw error;
    }
  }

  /**
   * Where an append goes. The kernel gives the end of what is at the path; once somebody elsewhere made that another
   * file, ours would get a hole there, or lose what it has: from then on it is written at its own end.
   */
  async function endOf(caller: Caller, open: Open, given: number): Promise<number> {
    const { changes } = fileSystem;
    if (!open.hasStrayed && open.seen !== changes) {
      try {
        await paths.at(caller, open.path, async (lineage) => {
          open.hasStrayed = lineage !== open.lineage;
        });
        open.seen = changes;
      } catch (error) {
        // Nothing is there, or it is not to be had now: the next one looks again, as in `follow`.
        if (!(error instanceof FsError) || caller.signal.aborted) throw error;
      }
    }
    return open.hasStrayed ? (await fileSystem.getattr(caller, open.lineage)).stat.size : given;
  }

  function set(caller: Caller, path: string, change: SetAttributes): Promise<unknown> {
    return paths.at(caller, path, (lineage) => fileSystem.setattr(caller, lineage, change));
  }

  async function attribute<T>(
    caller: Caller,
    path: string,
    name: string,
    action: (lineage: KernelNodeId) => Promise<T>,
  ): Promise<T> {
    requireUtf8(name);
    return paths.at(caller, path, action);
  }

  /** Of something new that nobody has open. */
  async function make(
    caller: Caller,
    path: string,
    action: (parent: KernelNodeId, name: string) => Promise<Found>,
  ): Promise<void> {
    const { lineage } = await paths.below(caller, path, action);
    paths.hold(lineage, 1);
    paths.letGo(lineage);
  }

  /** libfuse has yet to come for what it removed in there while it was open. */
  async function requireNothingHidden(caller: Caller, path: string): Promise<void> {
    await paths.at(caller, path, async (lineage) => {
      if (paths.hides(lineage)) throw new FsError("ENOTEMPTY", `${path}: an open file was removed in it`);
    });
  }

  async function isFolder(caller: Caller, path: string): Promise<boolean> {
    try {
      const { stat } = await paths.at(caller, path, (lineage) => fileSystem.getattr(caller, lineage));
      return stat.kind === "folder";
    } catch (error) {
      if (error instanceof FsError && error.code === "ENOENT") return false;
      throw error;
    }
  }

  return {
    async getattr(caller: Caller, path: string): Promise<Stat> {
      const { stat } = await paths.at(caller, path, (lineage) => fileSystem.getattr(caller, lineage));
      return stat;
    },

    /** All of it: the library keeps it until the folder is closed. */
    readdir: (caller: Caller, path: string): Promise<FolderEntry[]> =>
      paths.at(caller, path, async (lineage) => {
        const { handle } = await fileSystem.opendir(caller, lineage);
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
      paths.at(caller, path, (lineage) => fileSystem.readlink(caller, lineage)),
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
      const { lineage, handle } = openOf(number);
      return fileSystem.setattr(caller, lineage, { size, handle });
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
      paths.at(caller, from, (lineage) =>
        make(caller, to, (parent, name) => fileSystem.link(caller, lineage, parent, name)),
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
      // Held until the name is gone, so that what was behind it goes too.
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
      // Before it is looked up: while it is opened, the path may come to lead elsewhere.
      const seen = fileSystem.changes;
      const asked = openFlags(flags);
      return paths.at(caller, path, async (lineage) => {
        const { handle } = await fileSystem.open(caller, lineage, asked);
        return add({ path, lineage, handle, mayWrite: asked.write, appends: asked.append, seen });
      });
    },

    /**
     * The flags are not told. The kernel saw no such name a moment ago: whoever made one meanwhile keeps it, with
     * what is in it.
     */
    create: (caller: Caller, path: string, mode: number): Promise<number> =>
      paths.below(caller, path, async (parent, name) => {
        const flags = { read: true, write: true, append: false, truncate: false, exclusive: true };
        const seen = fileSystem.changes;
        const { lineage, handle } = await fileSystem.create(caller, parent, name, mode & 0o7777, flags);
        return add({ path, lineage, handle, mayWrite: true, appends: false, seen }, 1);
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
      paths.at(caller, path, async (lineage) => {
        const { handle } = await fileSystem.opendir(caller, lineage);
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
      attribute(caller, path, name, (lineage) =>
        fileSystem.setxattr(caller, lineage, name, value, {
          create: (flags & XATTR_CREATE) !== 0,
          replace: (flags & XATTR_REPLACE) !== 0,
        }),
      ),
    getxattr: (caller: Caller, path: string, name: string) =>
      attribute(caller, path, name, (lineage) => fileSystem.getxattr(caller, lineage, name)),
    listxattr: (caller: Caller, path: string) =>
      paths.at(caller, path, (lineage) => fileSystem.listxattr(caller, lineage)),
    removexattr: (caller: Caller, path: string, name: string) =>
      attribute(caller, path, name, (lineage) => fileSystem.removexattr(caller, lineage, name)),
  };
}
