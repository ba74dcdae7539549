/**
 * `Files` in memory, for the simulation. Every call takes effect and settles in a microtask, so
 * that a run is deterministic; times come from the given clock. Operations can be made to fail,
 * and the files of a killed process can be handed to its successor.
 *
 * What it does not have: power loss. Whatever was written is there after a kill, synced or not.
 */
import { createHash } from "node:crypto";
import type { FileStat, Files, OpenFile, OpenMode } from "../../src/lib/files.ts";
import { systemError } from "../../src/lib/system-error.ts";
import type { Time } from "../../src/lib/time.ts";
import { MemoryBytes } from "./memory-bytes.ts";

/** create: an open that makes the file. */
export type Operation =
  | Exclude<keyof Files, "clone" | "currentTime" | "beginHash">
  | Exclude<keyof OpenFile, "close" | "writeNow">
  | "create";

export interface Failure {
  /** Which files, by their path; a handle goes by the path it was opened with. */
  readonly path: RegExp;
  /** The errno name it fails with: "ENOSPC", "EIO". */
  readonly code: string;
  /** Only these; all when absent. A clone counts as the open, read and write it is made of. */
  readonly on?: readonly Operation[];
  /** How often; once when absent. Infinity for each. */
  readonly times?: number;
  /** So many that match are let through first. */
  readonly after?: number;
}

/** The files of a moment. Nothing done later changes it; it can be used any number of times. */
export interface MemoryImage {
  readonly root: Folder;
}

/** A file under somebody who does not ask: the kernel, which reads and writes what it was given. */
export interface PassedFile {
  size(): number;
  read(buffer: Uint8Array, position: number): number;
  write(buffer: Uint8Array, position: number): void;
}

export interface MemoryFiles extends Files {
  /** The file of an open handle, which may be closed afterwards. */
  passed(descriptor: number): PassedFile;
  /** Makes matching operations fail without effect; ends early by the function it returns. */
  fail(failure: Failure): () => void;
  image(): MemoryImage;
  /** Back to an image. What is open now is dead: its calls, those under way too, reject with EBADF. */
  restore(image: MemoryImage): void;
  /** As kill -9: no call has an effect any more, not even one under way; all reject with EBADF. */
  kill(): void;
  /** Removes a file at once, without anything that can be made to fail: whether there was one. */
  removeNow(path: string): boolean;
  /** How many handles are open: for finding leaks. */
  openHandles(): number;
}

interface Inode {
  readonly bytes: MemoryBytes;
  mtime: Time;
  ctime: Time;
  /** 0 or 1. */
  names: number;
  handles: number;
}
type Folder = Map<string, Folder | Inode>;

const KEEP_SIZE = 1;
const PUNCH_HOLE = 2;
const ZERO_RANGE = 16;

export interface MemoryOptions {
  readonly now: () => Time;
  /** Bytes of the disk; ENOSPC when they are all allocated. Default 1 TiB. */
  readonly capacity?: number;
  /** What the files are at the start; nothing when absent. */
  readonly image?: MemoryImage;
}

export function createMemoryFiles(options: MemoryOptions): MemoryFiles {
  const { now, capacity = 2 ** 40 } = options;
  let root: Folder = new Map();
  let used = 0;
  /** Counts restores; a call or handle of an earlier count is dead. */
  let age = 0;
  let killed = false;
  let open = 0;
  let lastDescriptor = 2;
  const byDescriptor = new Map<number, PassedFile>();
  const failures = new Set<{ failure: Failure; left: number; after: number }>();

  function failIfTold(on: Operation, path: string): void {
    for (const each of failures) {
      const { failure } = each;
      if (failure.on !== undefined && !failure.on.includes(on)) continue;
      // A pattern with the flag g would otherwise go on from its last match.
      failure.path.lastIndex = 0;
      if (!failure.path.test(path)) continue;
      if (--each.after >= 0) continue;
      if (--each.left <= 0) failures.delete(each);
      throw systemError(failure.code, on, path);
    }
  }

  /** Every call passes here: a microtask, then its whole effect at once. */
  async function run<T>(on: Operation | "clone" | "close", path: string, work: () => T): Promise<T> {
    const startedAt = age;
    await undefined;
    if (killed || age !== startedAt) throw systemError("EBADF", on, path);
    if (on !== "clone" && on !== "close") failIfTold(on, path);
    return work();
  }

  function folderAt(path: string, on: string, of = path): Folder {
    let folder = root;
    for (const name of path.split("/")) {
      if (name === "") continue;
      const child = folder.get(name);
      if (child === undefined) throw systemError("ENOENT", on, of);
      if (!(child instanceof Map)) throw systemError("ENOTDIR", on, of);
      folder = child;
    }
    return folder;
  }

  function placeOf(path: string, on: string): { folder: Folder; name: string } {
    if (!path.startsWith("/")) throw new RangeError(`expected an absolute path, got "${path}"`);
    const slash = path.lastIndexOf("/");
    return { folder: folderAt(path.slice(0, slash), on, path), name: path.slice(slash + 1) };
  }

  function inodeAt(path: string, on: string): Inode {
    const { folder, name } = placeOf(path, on);
    const found = folder.get(name);
    if (found === undefined) throw systemError("ENOENT", on, path);
    if (found instanceof Map) throw systemError("EISDIR", on, path);
    return found;
  }

  function openInode(path: string, mode: OpenMode): Inode {
    const { folder, name } = placeOf(path, "open");
    const found = folder.get(name);
    if (found !== undefined && mode === "wx+") throw systemError("EEXIST", "open", path);
    if (found instanceof Map) throw systemError("EISDIR", "open", path);
    if (found !== undefined) return found;
    if (mode === "r" || mode === "r+") throw systemError("ENOENT", "open", path);
    failIfTold("create", path);
    const time = now();
    const inode: Inode = { bytes: new MemoryBytes(), mtime: time, ctime: time, names: 1, handles: 0 };
    folder.set(name, inode);
    return inode;
  }

  function unlink(inode: Inode): void {
    inode.names--;
    freeIfUnused(inode);
  }

  /** Bytes without a name stay until the last handle goes, as on any disk. */
  function freeIfUnused(inode: Inode): void {
    if (inode.names === 0 && inode.handles === 0) used -= inode.bytes.allocated;
  }

  /** Does something to the bytes of a file that allocates at most `growth`, or nothing if the disk is full. */
  function change(inode: Inode, path: string, on: string, growth: number, work: () => void): void {
    if (growth > 0 && used + growth > capacity) throw systemError("ENOSPC", on, path);
    const before = inode.bytes.allocated;
    work();
    used += inode.bytes.allocated - before;
  }

  function touch(inode: Inode, content: boolean): void {
    inode.ctime = now();
    if (content) inode.mtime = inode.ctime;
  }

  function handleOn(inode: Inode, path: string, mode: OpenMode): OpenFile {
    const openedAt = age;
    let closed = false;
    inode.handles++;
    open++;
    const descriptor = ++lastDescriptor;
    byDescriptor.set(descriptor, passedFile(inode, path));

    function use<T>(on: Operation, work: () => T, writes = false): Promise<T> {
      if (closed) return Promise.reject(systemError("EBADF", on, path));
      return run(on, path, () => {
        if (age !== openedAt) throw systemError("EBADF", on, path);
        if (writes && mode === "r") throw systemError(on === "write" ? "EBADF" : "EINVAL", on, path);
        return work();
      });
    }

    let lostBytes: unknown;
    return {
      descriptor,

      read: (buffer, offset, length, position) =>
        use("read", () => {
          expectOffset(position, "read", path);
          return inode.bytes.read(buffer.subarray(offset, offset + length), position);
        }),

      write: (buffer, position) =>
        use(
          "write",
          () => {
            expectOffset(position, "write", path);
            change(inode, path, "write", inode.bytes.growth(position, buffer.length), () => {
              inode.bytes.write(buffer, position);
            });
            if (buffer.length > 0) touch(inode, true);
          },
          true,
        ),

      /** What is to fail is left to `write`. */
      writeNow(buffer, position) {
        if (closed || killed || age !== openedAt || mode === "r" || failures.size > 0) return false;
        const growth = inode.bytes.growth(position, buffer.length);
        if (used + growth > capacity) return false;
        change(inode, path, "write", growth, () => inode.bytes.write(buffer, position));
        touch(inode, true);
        return true;
      },

      truncate: (size) =>
        use(
          "truncate",
          () => {
            expectOffset(size, "truncate", path);
            change(inode, path, "truncate", 0, () => inode.bytes.truncate(size));
            touch(inode, true);
          },
          true,
        ),

      stat: () => use("stat", () => statOf(inode)),

      setTimes: (mtime) =>
        use("setTimes", () => {
          inode.mtime = mtime;
          inode.ctime = now();
        }),

      async sync() {
        if (lostBytes !== undefined && !closed) throw lostBytes;
        try {
          await use("sync", () => undefined);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === "EIO") lostBytes = error;
          throw error;
        }
      },

      seek: (kind, offset) => use("seek", () => inode.bytes.seek(kind, offset)),

      allocate: (bits, offset, length) =>
        use(
          "allocate",
          () => {
            if (length <= 0 || offset < 0) throw systemError("EINVAL", "fallocate", path);
            const size = bits & KEEP_SIZE ? inode.bytes.size : Math.max(inode.bytes.size, offset + length);
            const punch = bits === (KEEP_SIZE | PUNCH_HOLE);
            const zero = (bits & ~KEEP_SIZE) === ZERO_RANGE;
            if (!punch && !zero && (bits & ~KEEP_SIZE) !== 0) throw systemError("EOPNOTSUPP", "fallocate", path);
            const grew = size > inode.bytes.size;
            change(inode, path, "fallocate", punch ? 0 : inode.bytes.growth(offset, length), () => {
              if (grew) inode.bytes.truncate(size);
              if (punch || zero) inode.bytes.clear(offset, length, zero);
              else inode.bytes.preallocate(offset, length);
            });
            touch(inode, punch || zero || grew);
          },
          true,
        ),

      async close() {
        if (closed) return;
        closed = true;
        byDescriptor.delete(descriptor);
        await run("close", path, () => {
          if (age !== openedAt) throw systemError("EBADF", "close", path);
          inode.handles--;
          open--;
          freeIfUnused(inode);
        });
      },
    };
  }

  function passedFile(inode: Inode, path: string): PassedFile {
    return {
      size: () => inode.bytes.size,
      read: (buffer, position) => inode.bytes.read(buffer, position),
      write(buffer, position) {
        // The kernel asks no file system to write nothing.
        if (buffer.length === 0) return;
        change(inode, path, "write", inode.bytes.growth(position, buffer.length), () => {
          inode.bytes.write(buffer, position);
        });
        touch(inode, true);
      },
    };
  }

  function restore(image: MemoryImage): void {
    age++;
    open = 0;
    root = copyFolder(image.root);
    used = allocatedIn(root);
  }

  if (options.image !== undefined) restore(options.image);

  return {
    currentTime: now,
    passed(descriptor) {
      const file = byDescriptor.get(descriptor);
      if (file === undefined) throw systemError("EBADF", "passthrough", `descriptor ${descriptor}`);
      return file;
    },

    open: (path, mode) => run("open", path, () => handleOn(openInode(path, mode), path, mode)),
    stat: (path) => run("stat", path, () => statOf(inodeAt(path, "stat"))),

    rename: (from, to) =>
      run("rename", from, () => {
        failIfTold("rename", to);
        const source = placeOf(from, "rename");
        const target = placeOf(to, "rename");
        const moved = source.folder.get(source.name);
        const over = target.folder.get(target.name);
        if (moved === undefined) throw systemError("ENOENT", "rename", from);
        if (moved === over) return;
        if (moved instanceof Map) {
          if (`${to}/`.startsWith(`${from}/`)) throw systemError("EINVAL", "rename", from);
          if (over !== undefined && !(over instanceof Map)) throw systemError("ENOTDIR", "rename", to);
          if (over !== undefined && over.size > 0) throw systemError("ENOTEMPTY", "rename", to);
        } else {
          if (over instanceof Map) throw systemError("EISDIR", "rename", to);
          if (over !== undefined) unlink(over);
          moved.ctime = now();
        }
        source.folder.delete(source.name);
        target.folder.set(target.name, moved);
      }),

    remove: (path) =>
      run("remove", path, () => {
        let place: ReturnType<typeof placeOf>;
        try {
          place = placeOf(path, "unlink");
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
          throw error;
        }
        const found = place.folder.get(place.name);
        if (found instanceof Map) throw systemError("EISDIR", "unlink", path);
        if (found === undefined) return;
        place.folder.delete(place.name);
        unlink(found);
      }),

    makeFolder: (path) =>
      run("makeFolder", path, () => {
        let folder = root;
        const names = path.split("/").filter((name) => name !== "");
        for (const [index, name] of names.entries()) {
          const child = folder.get(name) ?? new Map();
          const code = index === names.length - 1 ? "EEXIST" : "ENOTDIR";
          if (!(child instanceof Map)) throw systemError(code, "mkdir", path);
          folder.set(name, child);
          folder = child;
        }
      }),

    list: (path) => run("list", path, () => Array.from(folderAt(path, "scandir").keys()).sort()),
    syncDisk: (path) => run("syncFolder", path, () => void folderAt(path, "fsync")),
    syncFolder: (path) => run("syncFolder", path, () => void folderAt(path, "fsync")),

    clone: (from, to) =>
      run("clone", from, () => {
        failIfTold("open", from);
        failIfTold("read", from);
        const source = inodeAt(from, "open");
        failIfTold("open", to);
        const target = openInode(to, "wx+");
        try {
          failIfTold("write", to);
          const copy = source.bytes.copy();
          if (used + copy.allocated > capacity) throw systemError("ENOSPC", "write", to);
          const { folder, name } = placeOf(to, "open");
          folder.set(name, { ...target, bytes: copy });
          used += copy.allocated;
        } catch (error) {
          const { folder, name } = placeOf(to, "unlink");
          folder.delete(name);
          throw error;
        }
      }),

    async hash(path, signal) {
      signal?.throwIfAborted();
      return await run("hash", path, () => {
        signal?.throwIfAborted();
        const { bytes } = inodeAt(path, "open");
        const buffer = new Uint8Array(bytes.size);
        bytes.read(buffer, 0);
        return { hash: createHash("sha256").update(buffer).digest("hex"), size: bytes.size };
      });
    },

    beginHash(path) {
      const hash = createHash("sha256");
      const startedAt = age;
      let size = 0;
      const reach = (end: number) => {
        const { bytes } = inodeAt(path, "open");
        const buffer = new Uint8Array(Math.max(0, Math.min(end, bytes.size) - size));
        bytes.read(buffer, size);
        hash.update(buffer);
        size += buffer.length;
      };
      return {
        reach(end) {
          if (!killed && age === startedAt) reach(end);
        },
        async finish(signal) {
          signal?.throwIfAborted();
          return await run("hash", path, () => {
            signal?.throwIfAborted();
            reach(Number.POSITIVE_INFINITY);
            return { hash: hash.digest("hex"), size };
          });
        },
        cancel() {},
      };
    },

    space: (path) =>
      run("space", path, () => {
        return { total: capacity, free: capacity - used, available: capacity - used };
      }),

    fail(failure) {
      systemError(failure.code, "checked early", "/");
      const entry = { failure, left: failure.times ?? 1, after: failure.after ?? 0 };
      failures.add(entry);
      return () => void failures.delete(entry);
    },

    removeNow(path) {
      const { folder, name } = placeOf(path, "unlink");
      const found = folder.get(name);
      if (found === undefined || found instanceof Map) return false;
      folder.delete(name);
      unlink(found);
      return true;
    },

    image: () => ({ root: copyFolder(root) }),
    restore,

    kill() {
      killed = true;
      open = 0;
    },

    openHandles: () => open,
  };
}

function expectOffset(offset: number, on: string, path: string): void {
  if (!Number.isSafeInteger(offset) || offset < 0) throw systemError("EINVAL", on, path);
}

function statOf(inode: Inode): FileStat {
  return {
    size: inode.bytes.size,
    allocated: inode.bytes.allocated,
    mtime: inode.mtime,
    ctime: inode.ctime,
  };
}

function copyFolder(folder: Folder): Folder {
  const copy: Folder = new Map();
  for (const [name, child] of folder) {
    copy.set(
      name,
      child instanceof Map ? copyFolder(child) : { ...child, bytes: child.bytes.copy(), names: 1, handles: 0 },
    );
  }
  return copy;
}

function allocatedIn(folder: Folder): number {
  let total = 0;
  for (const child of folder.values()) total += child instanceof Map ? allocatedIn(child) : child.bytes.allocated;
  return total;
}
