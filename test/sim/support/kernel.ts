/**
 * A kernel in memory: system calls by path become operations on kernel node ids. Names, attributes and listings are
 * cached for as long as the answers allow (kernel-memory.ts), kernel node ids are counted and forgotten, a stale one is
 * looked up again once. A passthrough file is read and written without the file system. Knows only the FileSystem
 * interface.
 */
import {
  type Caller,
  type FileSystem,
  type Found,
  FsError,
  type HandleId,
  type KernelNodeId,
  type NegativeEntry,
  type Opened,
  type SetAttributes,
  type Stat,
} from "../../../src/engine/api/index.ts";
import type { Clock } from "../../../src/lib/runtime.ts";
import { formatTime } from "../../../src/lib/time.ts";
import { kernelNodeId } from "../../../src/metadata/ids.ts";
import type { PassedFile } from "../../support/memory-files.ts";
import { CallError, type Calls, isWithin, type OpenHow, type Status, split } from "./calls.ts";
import { type Dentry, type KernelMemory, keyOf } from "./kernel-memory.ts";

export interface Kernel extends Calls {
  /** As `echo 2 > /proc/sys/vm/drop_caches`: nothing that is not open is remembered. */
  dropCaches(): void;
}

const ROOT: KernelNodeId = kernelNodeId(1);
/** Who asks. Calls of a process that died never end: what listens to their signal goes with it. */
export const createCaller = (): Caller => ({ uid: 1000, gid: 1000, pid: 1, signal: new AbortController().signal });
const PAGE = 7;
export const CHUNK = 128 * 1024;

interface Descriptor {
  readonly kernelNodeId: KernelNodeId;
  readonly handle: HandleId;
  readonly how: OpenHow;
  readonly backing: PassedFile | undefined;
  readonly noFlush: boolean;
}

export function createKernel(
  fileSystem: FileSystem,
  clock: Pick<Clock, "elapsed">,
  memory: KernelMemory,
  /** The file behind a backing id; absent: none is ever answered. */
  passed?: (id: number) => PassedFile,
): Kernel {
  const { dentries } = memory;
  /** How often each kernel node id was handed out. */
  const counts = new Map<KernelNodeId, number>();
  const descriptors = new Map<number, Descriptor>();
  const pins = new Map<KernelNodeId, number>();
  let lastFd = 2;
  const caller = createCaller();
  memory.onGone = forgetUnused;
  memory.has = (kernelNodeId) => kernelNodeId === ROOT || counts.has(kernelNodeId);
  memory.prune = (kernelNodeIds) => {
    for (const kernelNodeId of kernelNodeIds) {
      const isParent = [...dentries.values()].some(({ parent }) => parent === kernelNodeId);
      if (isParent || pins.has(kernelNodeId)) continue;
      for (const [key, dentry] of dentries) if (dentry.kernelNodeId === kernelNodeId) dentries.delete(key);
    }
    forgetUnused();
  };

  /** Asks; and tells whether the answer may be kept: nothing was told meanwhile. */
  async function ask<T>(work: () => Promise<T>): Promise<{ answer: T; isKept: boolean }> {
    const { changes } = fileSystem;
    const answer = await work();
    return { answer, isKept: changes === fileSystem.changes };
  }

  async function attributesOf(kernelNodeId: KernelNodeId, handle?: HandleId): Promise<Stat> {
    const known = memory.attributesOf(kernelNodeId);
    if (known !== undefined) return known;
    const { answer, isKept } = await ask(() => fileSystem.getattr(caller, kernelNodeId, handle));
    memory.attributes(kernelNodeId, answer, isKept);
    return answer.stat;
  }

  async function setAttributes(kernelNodeId: KernelNodeId, change: SetAttributes): Promise<void> {
    memory.touch(kernelNodeId);
    const { answer, isKept } = await ask(() => fileSystem.setattr(caller, kernelNodeId, change));
    memory.attributes(kernelNodeId, answer, isKept);
  }

  async function make(parent: KernelNodeId, name: string, work: () => Promise<Found>): Promise<void> {
    const { answer, isKept } = await ask(work);
    memory.touchFolder(parent);
    take(parent, name, answer, isKept);
  }

  function pin(kernelNodeId: KernelNodeId, by: 1 | -1): void {
    const count = (pins.get(kernelNodeId) ?? 0) + by;
    if (count === 0) pins.delete(kernelNodeId);
    else pins.set(kernelNodeId, count);
  }

  function take(
    parent: KernelNodeId,
    name: string,
    found: Found,
    isKept: boolean,
  ): Pick<Dentry, "kernelNodeId" | "kind"> {
    counts.set(found.kernelNodeId, (counts.get(found.kernelNodeId) ?? 0) + 1);
    const { kernelNodeId, stat } = found;
    const old = dentries.get(keyOf(parent, name));
    memory.name(parent, name, found, isKept);
    memory.attributes(kernelNodeId, found, isKept);
    if (old !== undefined && old.kernelNodeId !== kernelNodeId) forgetUnused();
    return { kernelNodeId, kind: stat.kind };
  }

  function drop(parent: KernelNodeId, name: string): void {
    if (dentries.delete(keyOf(parent, name))) forgetUnused();
  }

  /** A kernel node id nobody names, opens or has names below is forgotten; so may be the ones above it. */
  function forgetUnused(): void {
    for (;;) {
      const used = new Set<KernelNodeId>([ROOT, ...pins.keys()]);
      for (const dentry of dentries.values()) used.add(dentry.kernelNodeId).add(dentry.parent);
      const gone = [...counts].filter(([kernelNodeId]) => !used.has(kernelNodeId));
      if (gone.length === 0) return;
      for (const [kernelNodeId] of gone) {
        counts.delete(kernelNodeId);
        memory.forget(kernelNodeId);
      }
      fileSystem.forget(gone.map(([kernelNodeId, count]) => ({ kernelNodeId, count })));
      const unreachable = [...dentries].filter(([, { parent }]) => parent !== ROOT && !counts.has(parent));
      if (unreachable.length === 0) return;
      for (const [key] of unreachable) dentries.delete(key);
    }
  }

  /** Undefined: no such name. */
  async function find(parent: KernelNodeId, name: string): Promise<Pick<Dentry, "kernelNodeId" | "kind"> | undefined> {
    const known = dentries.get(keyOf(parent, name));
    if (known !== undefined && clock.elapsed() < known.until) return known;
    if (known === undefined && memory.isAbsent(parent, name)) return undefined;
    try {
      const { answer, isKept } = await ask<Found | NegativeEntry>(() => fileSystem.lookup(caller, parent, name));
      if (answer.kernelNodeId !== undefined) return take(parent, name, answer, isKept);
      drop(parent, name);
      memory.absent(parent, name, answer, isKept);
      return undefined;
    } catch (error) {
      if (!(error instanceof FsError) || error.code !== "ENOENT") throw error;
      drop(parent, name);
      return undefined;
    }
  }

  async function walk(names: readonly string[]): Promise<{ kernelNodeId: KernelNodeId; kind: Stat["kind"] }> {
    let at: { kernelNodeId: KernelNodeId; kind: Stat["kind"] } = { kernelNodeId: ROOT, kind: "folder" };
    for (const name of names) {
      if (at.kind !== "folder") throw new CallError("ENOTDIR", `on the way to ${name}`);
      const next = await find(at.kernelNodeId, name);
      if (next === undefined) throw new CallError("ENOENT", name);
      at = next;
    }
    return at;
  }

  async function place(path: string): Promise<{ parent: KernelNodeId; name: string }> {
    const names = split(path);
    const name = names.pop();
    if (name === undefined) throw new CallError("EBUSY", "the root");
    const folder = await walk(names);
    if (folder.kind !== "folder") throw new CallError("ENOTDIR", path);
    return { parent: folder.kernelNodeId, name };
  }

  /** Runs a call; on a stale kernel node id once more, with everything on the way looked up again. */
  async function call<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof FsError)) throw error;
      if (error.code !== "ESTALE") throw new CallError(error.code, `${path}: ${error.message}`, { cause: error });
    }
    memory.expireNames();
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof FsError)) throw error;
      throw new CallError(error.code, `${path}: ${error.message}`, { cause: error });
    }
  }

  function descriptor(fd: number): Descriptor {
    const found = descriptors.get(fd);
    if (found === undefined) throw new CallError("EBADF", `descriptor ${fd}`);
    return found;
  }

  const flagsOf = (how: OpenHow) => ({
    read: true,
    write: how.write === true,
    append: how.append === true,
    truncate: how.truncate === true,
    exclusive: how.exclusive === true,
  });

  function install(kernelNodeId: KernelNodeId, opened: Opened, how: OpenHow): number {
    const { handle, noFlush = false } = opened;
    const backing = opened.backing === undefined ? undefined : passed?.(opened.backing);
    for (const other of descriptors.values()) {
      // The real one answers the program EIO.
      if (other.kernelNodeId === kernelNodeId && other.backing !== backing)
        throw new Error(`kernel node id ${kernelNodeId}: two ways to serve it`);
    }
    lastFd += 1;
    descriptors.set(lastFd, { kernelNodeId, handle, how, backing, noFlush });
    pin(kernelNodeId, 1);
    return lastFd;
  }

  async function open(path: string, how: OpenHow): Promise<number> {
    const { parent, name } = await place(path);
    const known = await find(parent, name);
    if (known === undefined) {
      if (how.create !== true) throw new CallError("ENOENT", path);
      const { answer: made, isKept } = await ask(() => fileSystem.create(caller, parent, name, 0o644, flagsOf(how)));
      memory.touchFolder(parent);
      take(parent, name, made, isKept);
      return install(made.kernelNodeId, made, how);
    }
    if (how.create === true && how.exclusive === true) throw new CallError("EEXIST", path);
    if (known.kind === "symlink") throw new CallError("ELOOP", path);
    if (known.kind === "folder") throw new CallError("EISDIR", path);
    pin(known.kernelNodeId, 1);
    try {
      const opened = await fileSystem.open(caller, known.kernelNodeId, flagsOf(how));
      if (how.truncate === true) memory.touch(known.kernelNodeId);
      return install(known.kernelNodeId, opened, how);
    } finally {
      pin(known.kernelNodeId, -1);
    }
  }

  async function list(path: string): Promise<string[]> {
    const folder = await walk(split(path));
    if (folder.kind !== "folder") throw new CallError("ENOTDIR", path);
    const { handle, keepCache } = await fileSystem.opendir(caller, folder.kernelNodeId);
    pin(folder.kernelNodeId, 1);
    const names: string[] = [];
    try {
      if (!keepCache) memory.dropListing(folder.kernelNodeId);
      const kept = memory.listing(folder.kernelNodeId);
      if (kept !== undefined) return [...kept];
      const version = memory.version(folder.kernelNodeId);
      for (let cookie = 0; ; ) {
        const { answer: entries, isKept } = await ask(() => fileSystem.readdir(caller, handle, cookie, PAGE, true));
        for (const entry of entries) {
          cookie = entry.cookie;
          if (entry.name === "." || entry.name === "..") continue;
          names.push(entry.name);
          if (entry.found !== undefined) take(folder.kernelNodeId, entry.name, entry.found, isKept);
        }
        if (entries.length > 0) continue;
        names.sort();
        if (keepCache && memory.version(folder.kernelNodeId) === version)
          memory.keepListing(folder.kernelNodeId, [...names]);
        return names;
      }
    } finally {
      await fileSystem.releasedir(handle);
      pin(folder.kernelNodeId, -1);
    }
  }

  const toStatus = (stat: Stat): Status => ({
    inode: stat.inode,
    kind: stat.kind,
    size: stat.size,
    mode: stat.mode,
    mtime: formatTime(stat.mtime),
    links: stat.links,
  });

  async function kernelNodeIdAt(path: string): Promise<KernelNodeId> {
    return (await walk(split(path))).kernelNodeId;
  }

  async function requireFree(path: string): Promise<{ parent: KernelNodeId; name: string }> {
    const target = await place(path);
    if ((await find(target.parent, target.name)) !== undefined) throw new CallError("EEXIST", path);
    return target;
  }

  return {
    dropCaches() {
      memory.clear();
      forgetUnused();
    },

    open: (path, how) => call(path, () => open(path, how)),
    fstat: (fd) =>
      call(`fd ${fd}`, async () => {
        const { kernelNodeId, handle } = descriptor(fd);
        return toStatus(await attributesOf(kernelNodeId, handle));
      }),
    read: (fd, offset, length) =>
      call(`fd ${fd}`, async () => {
        const { backing } = descriptor(fd);
        if (backing !== undefined) {
          const buffer = Buffer.alloc(Math.min(length, Math.max(0, backing.size() - offset)));
          return buffer.subarray(0, backing.read(buffer, offset));
        }
        const pieces: Uint8Array[] = [];
        for (let at = 0; at < length; ) {
          const wanted = Math.min(CHUNK, length - at);
          const piece = await fileSystem.read(caller, descriptor(fd).handle, offset + at, wanted);
          pieces.push(Uint8Array.from(piece));
          at += piece.length;
          if (piece.length < wanted) break;
        }
        return Buffer.concat(pieces);
      }),
    write: (fd, offset, data) =>
      call(`fd ${fd}`, async () => {
        const { kernelNodeId, handle, how, backing } = descriptor(fd);
        if (how.write !== true) throw new CallError("EBADF", `descriptor ${fd} is not for writing`);
        memory.touch(kernelNodeId);
        if (backing !== undefined) return backing.write(data, how.append === true ? backing.size() : offset);
        const start = how.append === true ? (await fileSystem.getattr(caller, kernelNodeId, handle)).stat.size : offset;
        for (let at = 0; at < data.length; at += CHUNK) {
          const piece = data.slice(at, at + CHUNK);
          await fileSystem.write(caller, handle, start + at, piece, { killPrivileges: false });
          memory.touch(kernelNodeId);
        }
      }),
    ftruncate: (fd, size) =>
      call(`fd ${fd}`, async () => {
        const { kernelNodeId, handle, how } = descriptor(fd);
        if (how.write !== true) throw new CallError("EINVAL", `descriptor ${fd} is not for writing`);
        await setAttributes(kernelNodeId, { size, handle });
      }),
    fsync: (fd) => call(`fd ${fd}`, () => fileSystem.fsync(caller, descriptor(fd).handle, false)),
    close: (fd) =>
      call(`fd ${fd}`, async () => {
        const { kernelNodeId, handle, noFlush } = descriptor(fd);
        descriptors.delete(fd);
        try {
          if (!noFlush) await fileSystem.flush(caller, handle);
        } finally {
          await fileSystem.release(handle);
          pin(kernelNodeId, -1);
          forgetUnused();
        }
      }),

    stat: (path) => call(path, async () => toStatus(await attributesOf(await kernelNodeIdAt(path)))),
    list: (path) => call(path, () => list(path)),
    readlink: (path) => call(path, async () => fileSystem.readlink(caller, await kernelNodeIdAt(path))),
    truncate: (path, size) =>
      call(path, async () => {
        const { kernelNodeId, kind } = await walk(split(path));
        if (kind === "folder") throw new CallError("EISDIR", path);
        if (kind !== "file") throw new CallError("EINVAL", path);
        await setAttributes(kernelNodeId, { size });
      }),
    mkdir: (path) =>
      call(path, async () => {
        const { parent, name } = await requireFree(path);
        await make(parent, name, () => fileSystem.mkdir(caller, parent, name, 0o755));
      }),
    rmdir: (path) =>
      call(path, async () => {
        const { parent, name } = await place(path);
        const known = await find(parent, name);
        if (known === undefined) throw new CallError("ENOENT", path);
        if (known.kind !== "folder") throw new CallError("ENOTDIR", path);
        await fileSystem.rmdir(caller, parent, name);
        memory.touchFolder(parent, known.kernelNodeId);
        drop(parent, name);
      }),
    unlink: (path) =>
      call(path, async () => {
        const { parent, name } = await place(path);
        const known = await find(parent, name);
        if (known === undefined) throw new CallError("ENOENT", path);
        if (known.kind === "folder") throw new CallError("EISDIR", path);
        await fileSystem.unlink(caller, parent, name);
        memory.touchFolder(parent);
        memory.touch(known.kernelNodeId);
        drop(parent, name);
      }),
    rename: (from, to) =>
      call(from, async () => {
        const source = await place(from);
        const target = await place(to);
        const moved = await find(source.parent, source.name);
        if (moved === undefined) throw new CallError("ENOENT", from);
        if (isWithin(to, from)) throw new CallError("EINVAL", `${to} is inside ${from}`);
        if (isWithin(from, to)) throw new CallError("ENOTEMPTY", `${from} is inside ${to}`);
        const over = await find(target.parent, target.name);
        if (over !== undefined && moved.kind !== "folder" && over.kind === "folder") throw new CallError("EISDIR", to);
        if (over !== undefined && moved.kind === "folder" && over.kind !== "folder") throw new CallError("ENOTDIR", to);
        await fileSystem.rename(caller, source, target, { noReplace: false, exchange: false });
        memory.touchFolder(source.parent, target.parent);
        memory.touch(moved.kernelNodeId, ...(over === undefined ? [] : [over.kernelNodeId]));
        const isNothing = over?.kernelNodeId === moved.kernelNodeId;
        if (!isNothing) memory.move(source, target);
        forgetUnused();
      }),
    exchange: (from, to) =>
      call(from, async () => {
        const source = await place(from);
        const target = await place(to);
        const one = await find(source.parent, source.name);
        const other = await find(target.parent, target.name);
        if (one === undefined || other === undefined) throw new CallError("ENOENT", `${from} or ${to}`);
        if (isWithin(from, to) || isWithin(to, from)) throw new CallError("EINVAL", `${from} and ${to}`);
        await fileSystem.rename(caller, source, target, { noReplace: false, exchange: true });
        memory.touchFolder(source.parent, target.parent);
        memory.touch(one.kernelNodeId, other.kernelNodeId);
        drop(source.parent, source.name);
        drop(target.parent, target.name);
      }),
    symlink: (to, path) =>
      call(path, async () => {
        const { parent, name } = await requireFree(path);
        await make(parent, name, () => fileSystem.symlink(caller, parent, name, to));
      }),
    link: (from, to) =>
      call(from, async () => {
        const { kernelNodeId, kind } = await walk(split(from));
        const { parent, name } = await requireFree(to);
        if (kind === "folder") throw new CallError("EPERM", from);
        await make(parent, name, () => fileSystem.link(caller, kernelNodeId, parent, name));
      }),
    chmod: (path, mode) => call(path, async () => setAttributes(await kernelNodeIdAt(path), { mode })),
    utimens: (path, seconds) =>
      call(path, async () => {
        await setAttributes(await kernelNodeIdAt(path), { mtime: { seconds, nanoseconds: 123_456_789 } });
      }),
    setxattr: (path, name, value) =>
      call(path, async () => {
        const flags = { create: false, replace: false };
        const kernelNodeId = await kernelNodeIdAt(path);
        await fileSystem.setxattr(caller, kernelNodeId, name, Buffer.from(value), flags);
        memory.touch(kernelNodeId);
      }),
    listxattr: (path) => call(path, async () => fileSystem.listxattr(caller, await kernelNodeIdAt(path))),
    getxattr: (path, name) =>
      call(path, async () => {
        return Buffer.from(await fileSystem.getxattr(caller, await kernelNodeIdAt(path), name)).toString();
      }),
  };
}
