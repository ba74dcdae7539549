/**
 * A tree in memory that answers system calls as a local disk does: a mount that no other client writes to must look
 * like it at every moment. Knows nothing of mounts.
 */
import { CallError, type Calls, isWithin, type OpenHow, type Status, split } from "./calls.ts";

interface File {
  readonly kind: "file";
  readonly id: number;
  data: Buffer;
  mode: number;
  /** Undefined: whenever it was last written. */
  mtime: string | undefined;
  links: number;
  readonly xattrs: Map<string, string>;
}
interface Link extends Omit<File, "kind"> {
  readonly kind: "symlink";
  readonly target: string;
}
interface Folder extends Omit<File, "kind" | "data"> {
  readonly kind: "folder";
  readonly children: Map<string, Item>;
}
type Item = File | Link | Folder;

export interface Model extends Calls {
  /** The same tree and descriptors, on their own from here on. */
  copy(): Model;
}

export function createModel(): Model {
  return modelOf({ root: folder(1), lastId: 1, lastFd: 2, descriptors: new Map() });
}

function folder(id: number): Folder {
  return { kind: "folder", id, mode: 0o755, mtime: undefined, links: 2, xattrs: new Map(), children: new Map() };
}

interface State {
  readonly root: Folder;
  readonly lastId: number;
  readonly lastFd: number;
  readonly descriptors: ReadonlyMap<number, { file: File; how: OpenHow }>;
}

function modelOf(state: State): Model {
  const { root } = state;
  let { lastId, lastFd } = state;
  const descriptors = new Map(state.descriptors);

  function walk(names: readonly string[]): Item {
    let at: Item = root;
    for (const name of names) {
      if (at.kind !== "folder") throw new CallError("ENOTDIR", name);
      const next: Item | undefined = at.children.get(name);
      if (next === undefined) throw new CallError("ENOENT", name);
      at = next;
    }
    return at;
  }

  function place(path: string): { folder: Folder; name: string; item: Item | undefined } {
    const names = split(path);
    const name = names.pop();
    if (name === undefined) throw new CallError("EBUSY", "the root");
    const parent = walk(names);
    if (parent.kind !== "folder") throw new CallError("ENOTDIR", path);
    return { folder: parent, name, item: parent.children.get(name) };
  }

  function free(path: string): { folder: Folder; name: string } {
    const found = place(path);
    if (found.item !== undefined) throw new CallError("EEXIST", path);
    return found;
  }

  function fileOf(fd: number, forWriting?: "EBADF" | "EINVAL"): { file: File; how: OpenHow } {
    const found = descriptors.get(fd);
    if (found === undefined) throw new CallError("EBADF", `descriptor ${fd}`);
    if (forWriting !== undefined && found.how.write !== true) throw new CallError(forWriting, `descriptor ${fd}`);
    return found;
  }

  function fresh(): Omit<File, "kind"> {
    lastId += 1;
    return { id: lastId, data: Buffer.alloc(0), mode: 0o644, mtime: undefined, links: 1, xattrs: new Map() };
  }

  function resize(file: File, size: number): void {
    const data = Buffer.alloc(size);
    file.data.copy(data);
    file.data = data;
    file.mtime = undefined;
  }

  function statusOf(item: Item): Status {
    const { id, kind, mode, mtime = "" } = item;
    const inside = item.kind === "folder" ? [...item.children.values()] : [];
    const links = item.links + inside.filter((child) => child.kind === "folder").length;
    const size =
      item.kind === "folder" ? 4096 : item.kind === "symlink" ? Buffer.byteLength(item.target) : item.data.length;
    return { inode: id, kind, size, mode, mtime, links };
  }

  return {
    copy() {
      const copies = new Map<Item, Item>();
      const copied = copyFolder(root, copies);
      const open = [...descriptors].map(
        ([fd, { file, how }]) => [fd, { file: copyItem(file, copies) as File, how }] as const,
      );
      return modelOf({ root: copied, lastId, lastFd, descriptors: new Map(open) });
    },

    async open(path, how) {
      const { folder: parent, name, item } = place(path);
      if (item !== undefined && how.create === true && how.exclusive === true) throw new CallError("EEXIST", path);
      if (item?.kind === "symlink") throw new CallError("ELOOP", path);
      if (item?.kind === "folder") throw new CallError("EISDIR", path);
      if (item === undefined && how.create !== true) throw new CallError("ENOENT", path);
      const file = item ?? { ...fresh(), kind: "file" };
      if (item === undefined) parent.children.set(name, file);
      else if (how.truncate === true) resize(file, 0);
      lastFd += 1;
      descriptors.set(lastFd, { file, how });
      return lastFd;
    },
    fstat: async (fd) => statusOf(fileOf(fd).file),
    read: async (fd, offset, length) => Buffer.from(fileOf(fd).file.data.subarray(offset, offset + length)),
    async write(fd, offset, data) {
      const { file, how } = fileOf(fd, "EBADF");
      if (data.length === 0) return;
      const start = how.append === true ? file.data.length : offset;
      if (start + data.length > file.data.length) resize(file, start + data.length);
      Buffer.from(data).copy(file.data, start);
      file.mtime = undefined;
    },
    async ftruncate(fd, size) {
      resize(fileOf(fd, "EINVAL").file, size);
    },
    async fsync(fd) {
      fileOf(fd);
    },
    async close(fd) {
      fileOf(fd);
      descriptors.delete(fd);
    },

    stat: async (path) => statusOf(walk(split(path))),
    async list(path) {
      const item = walk(split(path));
      if (item.kind !== "folder") throw new CallError("ENOTDIR", path);
      return [...item.children.keys()].sort();
    },
    async readlink(path) {
      const item = walk(split(path));
      if (item.kind !== "symlink") throw new CallError("EINVAL", path);
      return item.target;
    },
    async truncate(path, size) {
      const item = walk(split(path));
      if (item.kind === "folder") throw new CallError("EISDIR", path);
      if (item.kind !== "file") throw new CallError("EINVAL", path);
      resize(item, size);
    },
    async mkdir(path) {
      const { folder: parent, name } = free(path);
      lastId += 1;
      parent.children.set(name, folder(lastId));
    },
    async rmdir(path) {
      const { folder: parent, name, item } = place(path);
      if (item === undefined) throw new CallError("ENOENT", path);
      if (item.kind !== "folder") throw new CallError("ENOTDIR", path);
      if (item.children.size > 0) throw new CallError("ENOTEMPTY", path);
      parent.children.delete(name);
    },
    async unlink(path) {
      const { folder: parent, name, item } = place(path);
      if (item === undefined) throw new CallError("ENOENT", path);
      if (item.kind === "folder") throw new CallError("EISDIR", path);
      item.links -= 1;
      parent.children.delete(name);
    },
    async rename(from, to) {
      const source = place(from);
      const target = place(to);
      const { item, folder: parent } = source;
      if (item === undefined) throw new CallError("ENOENT", from);
      if (isWithin(to, from)) throw new CallError("EINVAL", `${to} is inside ${from}`);
      if (isWithin(from, to)) throw new CallError("ENOTEMPTY", `${from} is inside ${to}`);
      if (target.item?.kind === "folder" && item.kind !== "folder") throw new CallError("EISDIR", to);
      if (target.item !== undefined && target.item.kind !== "folder" && item.kind === "folder") {
        throw new CallError("ENOTDIR", to);
      }
      if (target.item === item) return;
      if (target.item?.kind === "folder" && target.item.children.size > 0) throw new CallError("ENOTEMPTY", to);
      if (target.item !== undefined) target.item.links -= 1;
      parent.children.delete(source.name);
      target.folder.children.set(target.name, item);
    },
    async exchange(from, to) {
      const [one, other] = [place(from), place(to)];
      if (one.item === undefined || other.item === undefined) throw new CallError("ENOENT", `${from} or ${to}`);
      if (isWithin(from, to) || isWithin(to, from)) throw new CallError("EINVAL", `${from} and ${to}`);
      one.folder.children.set(one.name, other.item);
      other.folder.children.set(other.name, one.item);
    },
    async symlink(target, path) {
      const { folder: parent, name } = free(path);
      parent.children.set(name, { ...fresh(), kind: "symlink", mode: 0o777, target });
    },
    async link(from, to) {
      const item = walk(split(from));
      const { folder: parent, name } = free(to);
      if (item.kind === "folder") throw new CallError("EPERM", from);
      item.links += 1;
      parent.children.set(name, item);
    },
    async chmod(path, mode) {
      walk(split(path)).mode = mode;
    },
    async utimens(path, seconds) {
      walk(split(path)).mtime = `${seconds}.123456789`;
    },
    async setxattr(path, name, value) {
      walk(split(path)).xattrs.set(name, value);
    },
    async listxattr(path) {
      return [...walk(split(path)).xattrs.keys()];
    },
    async getxattr(path, name) {
      const value = walk(split(path)).xattrs.get(name);
      if (value === undefined) throw new CallError("ENODATA", name);
      return value;
    },
  };
}

function copyItem(item: Item, copies: Map<Item, Item>): Item {
  const known = copies.get(item);
  if (known !== undefined) return known;
  const copy =
    item.kind === "folder"
      ? copyFolder(item, copies)
      : { ...item, data: Buffer.from(item.data), xattrs: new Map(item.xattrs) };
  copies.set(item, copy);
  return copy;
}

function copyFolder(original: Folder, copies: Map<Item, Item>): Folder {
  const children = new Map([...original.children].map(([name, child]) => [name, copyItem(child, copies)] as const));
  return { ...original, children, xattrs: new Map(original.xattrs) };
}
