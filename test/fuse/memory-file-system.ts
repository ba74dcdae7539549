/**
 * A FileSystem in memory, for tests of the kernel side: complete enough for ordinary programs, no
 * permissions, no time-outs. `counts` shows what the kernel is believed to know, `handles` what is open.
 */

import {
  type Attributed,
  type Caller,
  type FileKind,
  type FileSystem,
  type FolderEntry,
  type Found,
  FsError,
  type HandleId,
  handleId,
  type KernelNodeId,
  type Opened,
  type SetAttributes,
  type SpaceInfo,
  type Stat,
} from "../../src/engine/api/index.ts";
import { type Time, timeFromMilliseconds } from "../../src/lib/time.ts";
import { type InodeId, inodeId, kernelNodeId } from "../../src/metadata/ids.ts";

interface Node {
  readonly inode: InodeId;
  readonly kernelNodeId: KernelNodeId;
  readonly kind: FileKind;
  mode: number;
  links: number;
  uid: number;
  gid: number;
  readonly rdev: number;
  data: Uint8Array;
  atime: Time;
  mtime: Time;
  ctime: Time;
  readonly btime: Time;
  target: string;
  readonly children: Map<string, Entry>;
  parent: KernelNodeId;
  readonly xattrs: Map<string, Uint8Array>;
}

interface Entry {
  readonly kernelNodeId: KernelNodeId;
  readonly cookie: number;
}

export interface MemoryFileSystem extends FileSystem {
  /** KernelNodeId -> how often it was answered and not forgotten. */
  readonly counts: Map<KernelNodeId, number>;
  readonly handles: Map<HandleId, KernelNodeId>;
}

const VALID_MS = 1000;

export function createMemoryFileSystem(now: () => number = Date.now): MemoryFileSystem {
  const nodes = new Map<KernelNodeId, Node>();
  const counts = new Map<KernelNodeId, number>();
  const handles = new Map<HandleId, KernelNodeId>();
  let nextNode = 1;
  let nextHandle = 1;
  let nextCookie = 3;

  make("folder", 0o755, 0, 0, kernelNodeId(1));

  function make(kind: FileKind, mode: number, uid: number, gid: number, parent: KernelNodeId, rdev = 0): Node {
    const time = timeFromMilliseconds(now());
    const node: Node = {
      inode: inodeId(nextNode),
      kernelNodeId: kernelNodeId(nextNode),
      kind,
      mode,
      links: kind === "folder" ? 2 : 1,
      uid,
      gid,
      rdev,
      data: new Uint8Array(0),
      atime: time,
      mtime: time,
      ctime: time,
      btime: time,
      target: "",
      children: new Map(),
      parent,
      xattrs: new Map(),
    };
    nextNode += 1;
    nodes.set(node.kernelNodeId, node);
    return node;
  }

  function get(kernelNodeId: KernelNodeId): Node {
    const node = nodes.get(kernelNodeId);
    if (node === undefined) throw new FsError("ESTALE", `no node ${kernelNodeId}`);
    return node;
  }

  function folder(kernelNodeId: KernelNodeId): Node {
    const node = get(kernelNodeId);
    if (node.kind !== "folder") throw new FsError("ENOTDIR", `node ${kernelNodeId}`);
    return node;
  }

  function opened(handle: HandleId): Node {
    const kernelNodeId = handles.get(handle);
    if (kernelNodeId === undefined) throw new FsError("EBADF", `no handle ${handle}`);
    return get(kernelNodeId);
  }

  function child(parent: KernelNodeId, name: string): Node {
    const entry = folder(parent).children.get(name);
    if (entry === undefined) throw new FsError("ENOENT", `no "${name}" in ${parent}`);
    return get(entry.kernelNodeId);
  }

  function put(parent: KernelNodeId, name: string, node: Node): void {
    const { children } = folder(parent);
    if (children.has(name)) throw new FsError("EEXIST", `"${name}" in ${parent}`);
    children.set(name, { kernelNodeId: node.kernelNodeId, cookie: nextCookie++ });
  }

  function touched(node: Node): void {
    node.mtime = timeFromMilliseconds(now());
    node.ctime = node.mtime;
  }

  function stat(node: Node): Stat {
    const size = node.kind === "symlink" ? Buffer.byteLength(node.target) : node.data.length;
    const { inode, kind, mode, links, uid, gid, rdev, atime, mtime, ctime, btime } = node;
    const blocks = Math.ceil(size / 512);
    return { inode, kind, mode, links, uid, gid, rdev, size, blocks, atime, mtime, ctime, btime };
  }

  const attributed = (node: Node): Attributed => ({ stat: stat(node), validMs: VALID_MS });

  function found(node: Node): Found {
    counts.set(node.kernelNodeId, (counts.get(node.kernelNodeId) ?? 0) + 1);
    return { ...attributed(node), kernelNodeId: node.kernelNodeId, entryValidMs: VALID_MS };
  }

  function open(node: Node): Opened {
    const handle = handleId(nextHandle++);
    handles.set(handle, node.kernelNodeId);
    return { handle, keepCache: true };
  }

  function resize(node: Node, size: number): void {
    const data = new Uint8Array(size);
    data.set(node.data.subarray(0, size));
    node.data = data;
    touched(node);
  }

  function create(caller: Caller, parent: KernelNodeId, name: string, kind: FileKind, mode: number, rdev = 0): Node {
    if (folder(parent).children.has(name)) throw new FsError("EEXIST", `"${name}" in ${parent}`);
    const node = make(kind, mode, caller.uid, caller.gid, parent, rdev);
    put(parent, name, node);
    touched(get(parent));
    return node;
  }

  function remove(parent: KernelNodeId, name: string): void {
    const node = child(parent, name);
    folder(parent).children.delete(name);
    node.links -= node.kind === "folder" ? 2 : 1;
    touched(get(parent));
  }

  function assertReplaceable(source: Node, target: Node): void {
    if (target.kind === "folder" && source.kind !== "folder") throw new FsError("EISDIR", "a folder is in the way");
    if (target.kind !== "folder" && source.kind === "folder") throw new FsError("ENOTDIR", "a file is in the way");
    if (target.children.size > 0) throw new FsError("ENOTEMPTY", "a folder that is not empty is in the way");
  }

  return {
    changes: 0,
    unheard() {},
    noteProgramTime() {},
    counts,
    handles,
    done: () => undefined,
    lookup: async (_caller, parent, name) => found(child(parent, name)),
    forget(kernelNodeIds) {
      for (const { kernelNodeId, count } of kernelNodeIds) {
        const left = (counts.get(kernelNodeId) ?? 0) - count;
        if (left > 0) counts.set(kernelNodeId, left);
        else counts.delete(kernelNodeId);
      }
    },
    getattr: async (_caller, kernelNodeId) => attributed(get(kernelNodeId)),
    async setattr(_caller, kernelNodeId, change: SetAttributes) {
      const node = get(kernelNodeId);
      const time = timeFromMilliseconds(now());
      if (change.size !== undefined) resize(node, change.size);
      if (change.mode !== undefined) node.mode = change.mode;
      if (change.uid !== undefined) node.uid = change.uid;
      if (change.gid !== undefined) node.gid = change.gid;
      if (change.killPrivileges) node.mode &= ~0o6000;
      if (change.atime !== undefined) node.atime = change.atime === "now" ? time : change.atime;
      if (change.mtime !== undefined) node.mtime = change.mtime === "now" ? time : change.mtime;
      node.ctime = time;
      return attributed(node);
    },
    access: async () => {},
    statfs: async (): Promise<SpaceInfo> => ({
      blockSize: 4096,
      blocks: 1_000_000,
      free: 500_000,
      available: 400_000,
      files: 1_000_000,
      filesFree: 1_000_000 - nodes.size,
      nameLength: 255,
    }),
    readlink: async (_caller, kernelNodeId) => get(kernelNodeId).target,
    async symlink(caller, parent, name, target) {
      const node = create(caller, parent, name, "symlink", 0o777);
      node.target = target;
      return found(node);
    },
    mknod: async (caller, parent, name, kind, mode, rdev) => found(create(caller, parent, name, kind, mode, rdev)),
    mkdir: async (caller, parent, name, mode) => found(create(caller, parent, name, "folder", mode)),
    async link(_caller, kernelNodeId, parent, name) {
      const node = get(kernelNodeId);
      put(parent, name, node);
      node.links += 1;
      return found(node);
    },
    async unlink(_caller, parent, name) {
      if (child(parent, name).kind === "folder") throw new FsError("EISDIR", name);
      remove(parent, name);
    },
    async rmdir(_caller, parent, name) {
      const node = child(parent, name);
      if (node.kind !== "folder") throw new FsError("ENOTDIR", name);
      if (node.children.size > 0) throw new FsError("ENOTEMPTY", name);
      remove(parent, name);
    },
    async rename(_caller, from, to, { noReplace, exchange }) {
      const source = child(from.parent, from.name);
      const target = folder(to.parent).children.get(to.name);
      if (target !== undefined && noReplace) throw new FsError("EEXIST", to.name);
      if (exchange) {
        const other = child(to.parent, to.name);
        folder(from.parent).children.set(from.name, { kernelNodeId: other.kernelNodeId, cookie: nextCookie++ });
        folder(to.parent).children.set(to.name, { kernelNodeId: source.kernelNodeId, cookie: nextCookie++ });
        return;
      }
      if (target?.kernelNodeId === source.kernelNodeId) return;
      if (target !== undefined) {
        assertReplaceable(source, get(target.kernelNodeId));
        remove(to.parent, to.name);
      }
      folder(from.parent).children.delete(from.name);
      put(to.parent, to.name, source);
      source.parent = to.parent;
    },
    async open(_caller, kernelNodeId, flags) {
      const node = get(kernelNodeId);
      if (flags.truncate) resize(node, 0);
      return open(node);
    },
    async create(caller, parent, name, mode, flags) {
      const exists = folder(parent).children.has(name);
      if (exists && flags.exclusive) throw new FsError("EEXIST", name);
      const node = exists ? child(parent, name) : create(caller, parent, name, "file", mode);
      if (flags.truncate) resize(node, 0);
      return { ...found(node), ...open(node) };
    },
    read: async (_caller, handle, offset, size) => opened(handle).data.subarray(offset, offset + size),
    async write(_caller, handle, offset, data, { killPrivileges }) {
      const node = opened(handle);
      if (offset + data.length > node.data.length) resize(node, offset + data.length);
      node.data.set(data, offset);
      if (killPrivileges) node.mode &= ~0o6000;
      touched(node);
      return data.length;
    },
    flush: async (_caller, handle) => void opened(handle),
    fsync: async (_caller, handle) => void opened(handle),
    release: async (handle) => void handles.delete(handle),
    async allocate(_caller, handle, mode, offset, length) {
      const node = opened(handle);
      if ((mode & 1) === 0 && offset + length > node.data.length) resize(node, offset + length);
      if ((mode & ~1) !== 0) node.data.fill(0, offset, offset + length);
    },
    async seek(_caller, handle, kind, offset) {
      const { length } = opened(handle).data;
      if (offset >= length) return undefined;
      return kind === "data" ? offset : length;
    },
    opendir: async (_caller, kernelNodeId) => open(folder(kernelNodeId)),
    async readdir(_caller, handle, cookie, limit, withAttributes) {
      const node = opened(handle);
      const listed: FolderEntry[] = [
        { name: ".", inode: node.inode, kind: "folder", cookie: 1 },
        { name: "..", inode: get(node.parent).inode, kind: "folder", cookie: 2 },
      ];
      const after = listed.filter((entry) => entry.cookie > cookie).slice(0, limit);
      for (const [name, entry] of node.children) {
        if (after.length >= limit) break;
        if (entry.cookie <= cookie) continue;
        const child = get(entry.kernelNodeId);
        const { inode, kind } = child;
        after.push({ name, inode, kind, cookie: entry.cookie, ...(withAttributes && { found: found(child) }) });
      }
      return after;
    },
    fsyncdir: async (_caller, handle) => void opened(handle),
    releasedir: async (handle) => void handles.delete(handle),
    async setxattr(_caller, kernelNodeId, name, value, { create, replace }) {
      const { xattrs } = get(kernelNodeId);
      if (create && xattrs.has(name)) throw new FsError("EEXIST", name);
      if (replace && !xattrs.has(name)) throw new FsError("ENODATA", name);
      xattrs.set(name, value.slice());
    },
    async getxattr(_caller, kernelNodeId, name) {
      const value = get(kernelNodeId).xattrs.get(name);
      if (value === undefined) throw new FsError("ENODATA", name);
      return value;
    },
    listxattr: async (_caller, kernelNodeId) => [...get(kernelNodeId).xattrs.keys()],
    async removexattr(_caller, kernelNodeId, name) {
      if (!get(kernelNodeId).xattrs.delete(name)) throw new FsError("ENODATA", name);
    },
  };
}
