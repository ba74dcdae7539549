/**
 * A file system with a history folder at its root. The folder is found by name, never listed, and read-only. Its places
 * have kernel node ids of their own (metadata/past-nodes.ts), and the handle of an open file or folder is that number.
 * So a daemon that takes the mount over can answer for both. All other calls go on to the file system behind.
 */
import { parseTime, type Time } from "../../lib/time.ts";
import { inodeOfPastNode, isPastNode } from "../../metadata/past-nodes.ts";
import {
  type Attributed,
  type Caller,
  type FileSystem,
  type FolderEntry,
  type Found,
  FsError,
  type HandleId,
  handleId,
  type KernelNodeId,
  kernelNodeId,
  type NegativeEntry,
  type Opened,
  type OpenFlags,
  type Stat,
} from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import { SHORT_MS } from "../host/index.ts";
import { createPastContents } from "./past-contents.ts";
import { createPastLists, isPastSettleTime } from "./past-lists.ts";
import { type HistoryPlace, isFolder, parsePlace } from "./place.ts";
import { createPlaces } from "./places.ts";

const ROOT = kernelNodeId(1);
/** The second name is used if the root has a node with the first one. */
export const HISTORY_FOLDER = ".wsfs";
const NAMES = [HISTORY_FOLDER, ".wsfs-history"];
/** Validity of answers about a past before the settle time, in milliseconds. Answers that may change have SHORT_MS. */
const THEN_MS = 60_000;

const README = `Everything that was here before, read only.

versions/PATH/  every version of a file, as files; numbers that are missing were given up
at/TIME/        the tree as it was: at/10m, at/yesterday, "at/2026-11-27 10.22"
deleted/        what was deleted and can come back, by the folder it was in
nodes/ID        a file or folder by its id
status.json     the mount's own part of wsfs status --json
`;
const NO_HISTORY =
  "The gateway of this mount keeps no history that can be read: versions/, at/ and deleted/ say EOPNOTSUPP.\n";

type Needs = Rows & LocalFiles & Remote & Host;

/** The name by which the history folder is found; undefined: the root has nodes with both names. */
export function historyFolderName({ metadata }: Pick<Rows, "metadata">): string | undefined {
  const root = metadata.inodes.ofKernelNodeId(ROOT);
  return NAMES.find((name) => root !== undefined && metadata.entries.find(root.id, name) === undefined);
}

/**
 * `status`: the text of status.json, made anew for each open. `at`: the moment (ISO 8601, UTC) at which the root itself
 * is shown; undefined: the root is that of the file system behind, with the history folder in it.
 */
export function withHistory(
  context: Needs,
  fileSystem: FileSystem,
  { at, status }: { readonly at?: string | undefined; readonly status: () => string },
): FileSystem {
  const { metadata, client, settings } = context;
  const { past } = metadata;
  const places = createPlaces(context, createPastLists(context));
  const contents = createPastContents(context);
  const pastRoot = at === undefined ? undefined : places.root(at);
  const isPast = (id: KernelNodeId) => isPastNode(id) || (id === ROOT && pastRoot !== undefined);
  const isOfPast = (handle: HandleId) => isPast(idOfHandle(handle));
  /** Lookup counts by place, of answers of this daemon. Those of an earlier daemon are not known. */
  const lookups = new Map<KernelNodeId, number>();
  /** Texts and lists that are open, each with its number of opens. */
  const texts = new Map<HandleId, { opens: number; bytes: Uint8Array }>();
  const listings = new Map<HandleId, Listing>();

  function idOf(place: HistoryPlace): KernelNodeId {
    return metadata.transaction(() => past.idOf(JSON.stringify(place)));
  }

  function placeOf(id: KernelNodeId): HistoryPlace {
    if (id === ROOT && pastRoot !== undefined) return pastRoot;
    const json = past.placeOf(id);
    const place = json === undefined ? undefined : parsePlace(json);
    // After ESTALE the kernel looks the name up again.
    if (place === undefined) throw new FsError("ESTALE", "this place of the past is not known any more");
    return place;
  }

  /** Throws EACCES, but for root and the mount's owner: the modes of the past were meant for the users of that time. */
  function requireOwner({ uid }: Caller): void {
    if (uid !== 0 && uid !== settings.owner.uid) throw new FsError("EACCES", "only the mount's owner may read this");
  }

  function textOf(text: "readme" | "status"): Uint8Array {
    if (text === "status") return Buffer.from(status());
    return Buffer.from(client.features.isFull ? README : README + NO_HISTORY);
  }

  function statOf(id: KernelNodeId, place: HistoryPlace): Stat {
    const [kind, mode] = isFolder(place)
      ? (["folder", place.is === "top" ? 0o500 : 0o555] as const)
      : place.is === "link"
        ? (["symlink", 0o777] as const)
        : (["file", place.is === "content" ? place.mode & 0o555 : 0o444] as const);
    const mtime = ("mtime" in place ? parseTime(place.mtime) : undefined) ?? EPOCH;
    const size = sizeOf(place);
    const times = { atime: mtime, mtime, ctime: mtime, btime: mtime };
    const { uid, gid } = settings.owner;
    return {
      inode: inodeOfPastNode(id),
      kind,
      mode,
      links: 1,
      uid,
      gid,
      rdev: 0,
      size,
      blocks: Math.ceil(size / 512),
      ...times,
    };
  }

  function sizeOf(place: HistoryPlace): number {
    if (place.is === "content") return place.size;
    if (place.is === "link") return Buffer.byteLength(place.target);
    return place.is === "text" ? textOf(place.text).length : 0;
  }

  function attributed(id: KernelNodeId, place: HistoryPlace): Attributed {
    // The attributes follow from the place alone. Other attributes mean another place.
    return { stat: statOf(id, place), validMs: place.is === "text" ? 0 : THEN_MS };
  }

  /** `entryValidMs`: how long the kernel may keep the name, in milliseconds. */
  function found(place: HistoryPlace, entryValidMs: number): Found {
    const kernelNodeId = idOf(place);
    lookups.set(kernelNodeId, (lookups.get(kernelNodeId) ?? 0) + 1);
    return { ...attributed(kernelNodeId, place), kernelNodeId, entryValidMs };
  }

  function entryValidMs(parent: HistoryPlace, { is }: HistoryPlace): number {
    const isThen =
      parent.is === "versions" ||
      // "10m" means another moment soon. A moment spelt out means the same for ever.
      (parent.is === "moments" && is === "folder") ||
      (parent.is === "folder" && parent.view.show === "at" && isPastSettleTime(parent.view.at, client));
    return isThen ? THEN_MS : SHORT_MS;
  }

  async function atRoot(caller: Caller, name: string): Promise<Found | NegativeEntry> {
    if (historyFolderName(context) !== name) return fileSystem.lookup(caller, ROOT, name);
    requireOwner(caller);
    return found({ is: "top" }, SHORT_MS);
  }

  async function lookup(caller: Caller, parent: KernelNodeId, name: string): Promise<Found> {
    requireOwner(caller);
    const folder = placeOf(parent);
    const place = await places.child(folder, name, caller.signal);
    if (place === undefined) throw new FsError("ENOENT", `no ${JSON.stringify(name)} in the past`);
    return found(place, entryValidMs(folder, place));
  }

  function forget(id: KernelNodeId, count: number): void {
    const known = lookups.get(id);
    // The count of a place that an earlier daemon answered is not known. It stays until the mount ends.
    if (known === undefined) return;
    if (known > count) return void lookups.set(id, known - count);
    lookups.delete(id);
    past.forget(id);
  }

  function open(caller: Caller, id: KernelNodeId, flags: OpenFlags): Opened {
    requireOwner(caller);
    const place = placeOf(id);
    if (flags.write || flags.truncate) throw readOnly();
    if (isFolder(place)) throw new FsError("EISDIR", "a folder of the past");
    const handle = handleId(id);
    if (place.is === "text") {
      const known = texts.get(handle);
      if (known === undefined) texts.set(handle, { opens: 1, bytes: textOf(place.text) });
      else known.opens += 1;
      return { handle, keepCache: false, noFlush: true, direct: true };
    }
    return { handle, keepCache: true, noFlush: true };
  }

  async function read(caller: Caller, handle: HandleId, offset: number, size: number): Promise<Uint8Array> {
    const place = placeOf(idOfHandle(handle));
    if (place.is === "content") return contents.read(place, offset, size, caller.signal);
    if (place.is !== "text") throw new FsError("EISDIR", "a folder of the past");
    const open = texts.get(handle);
    // All programs that have the text open share the handle. A read from the beginning shows the present text.
    const bytes = (offset === 0 ? undefined : open?.bytes) ?? textOf(place.text);
    if (open !== undefined) open.bytes = bytes;
    return bytes.subarray(offset, offset + size);
  }

  function listing(handle: HandleId, signal: AbortSignal) {
    const entries = places.list(placeOf(idOfHandle(handle)), signal).then((all) => [...all]);
    entries.catch(() => {});
    return entries;
  }

  async function opendir(caller: Caller, id: KernelNodeId): Promise<Opened> {
    requireOwner(caller);
    const handle = handleId(id);
    const entries = listing(handle, caller.signal);
    await entries;
    const open = listings.get(handle);
    listings.set(handle, { opens: (open?.opens ?? 0) + 1, entries, isBegun: false });
    return { handle, keepCache: false };
  }

  async function readdir(
    caller: Caller,
    handle: HandleId,
    cookie: number,
    limit: number,
    withAttributes: boolean,
  ): Promise<FolderEntry[]> {
    const id = idOfHandle(handle);
    // After a takeover the folder is listed anew. The cookies still fit, because the order is that of the names.
    const open = listings.get(handle);
    // All programs that have the folder open share the handle. A list from the beginning shows the present state.
    const isAgain = cookie === 0 && open?.isBegun === true;
    const entries = (isAgain ? undefined : open?.entries) ?? listing(handle, caller.signal);
    if (open !== undefined) Object.assign(open, { entries, isBegun: true });
    const all = await entries;
    const inode = inodeOfPastNode(id);
    const dots = DOTS.map((name, index) => ({ name, inode, kind: "folder" as const, cookie: index + 1 }));
    const from = Math.max(0, cookie - dots.length);
    const listed = all.slice(from, Math.max(0, cookie + limit - dots.length));
    // Each place that the kernel hears of becomes a row. One transaction writes all of them.
    const folder = placeOf(id);
    const answers = withAttributes
      ? metadata.transaction(() => listed.map(([, place]) => found(place, entryValidMs(folder, place))))
      : [];
    return [
      ...dots.slice(cookie, cookie + limit),
      ...listed.map(([name, place], index): FolderEntry => {
        const kind = isFolder(place) ? "folder" : place.is === "link" ? "symlink" : "file";
        const line = { name, inode, kind, cookie: from + index + dots.length + 1 } as const;
        const one = answers[index];
        return one === undefined ? line : { ...line, inode: one.stat.inode, found: one };
      }),
    ];
  }

  const refuse = () => Promise.reject(readOnly());
  /** True: a change of this name would change the history folder, or anything in it. */
  const names = (parent: KernelNodeId, name: string) =>
    isPast(parent) || (parent === ROOT && historyFolderName(context) === name);

  return Object.assign(Object.create(fileSystem) as FileSystem, {
    lookup: (caller, parent, name) => {
      if (isPast(parent)) return lookup(caller, parent, name);
      return parent === ROOT && NAMES.includes(name) ? atRoot(caller, name) : fileSystem.lookup(caller, parent, name);
    },
    forget(all) {
      const ours = all.filter(({ kernelNodeId }) => isPast(kernelNodeId));
      if (ours.length > 0) {
        metadata.transaction(() => {
          for (const { kernelNodeId, count } of ours) forget(kernelNodeId, count);
        });
      }
      const others = all.filter(({ kernelNodeId }) => !isPast(kernelNodeId));
      if (others.length > 0) fileSystem.forget(others);
    },
    getattr: async (caller, id, handle) =>
      isPast(id) ? attributed(id, placeOf(id)) : fileSystem.getattr(caller, id, handle),
    setattr: (caller, id, change) => (isPast(id) ? refuse() : fileSystem.setattr(caller, id, change)),
    async access(caller, id, mask) {
      if (!isPast(id)) return fileSystem.access(caller, id, mask);
      requireOwner(caller);
      if ((mask & 2) !== 0) throw readOnly();
      const place = placeOf(id);
      if ((mask & 1) !== 0 && (statOf(id, place).mode & 0o111) === 0) throw new FsError("EACCES", "not executable");
    },
    async readlink(caller, id) {
      if (!isPast(id)) return fileSystem.readlink(caller, id);
      const place = placeOf(id);
      if (place.is !== "link") throw new FsError("EINVAL", "no symlink");
      return place.target;
    },
    symlink: (caller, parent, name, target) =>
      names(parent, name) ? refuse() : fileSystem.symlink(caller, parent, name, target),
    mknod: (caller, parent, name, kind, mode, rdev) =>
      names(parent, name) ? refuse() : fileSystem.mknod(caller, parent, name, kind, mode, rdev),
    mkdir: (caller, parent, name, mode) =>
      names(parent, name) ? refuse() : fileSystem.mkdir(caller, parent, name, mode),
    link: (caller, id, parent, name) =>
      isPast(id) || names(parent, name) ? refuse() : fileSystem.link(caller, id, parent, name),
    unlink: (caller, parent, name) => (names(parent, name) ? refuse() : fileSystem.unlink(caller, parent, name)),
    rmdir: (caller, parent, name) => (names(parent, name) ? refuse() : fileSystem.rmdir(caller, parent, name)),
    rename: (caller, from, to, flags) =>
      names(from.parent, from.name) || names(to.parent, to.name)
        ? refuse()
        : fileSystem.rename(caller, from, to, flags),
    open: async (caller, id, flags) => (isPast(id) ? open(caller, id, flags) : fileSystem.open(caller, id, flags)),
    create: (caller, parent, name, mode, flags) =>
      names(parent, name) ? refuse() : fileSystem.create(caller, parent, name, mode, flags),
    read: (caller, handle, offset, size) =>
      isOfPast(handle) ? read(caller, handle, offset, size) : fileSystem.read(caller, handle, offset, size),
    write: (caller, handle, offset, data, options) =>
      isOfPast(handle) ? refuse() : fileSystem.write(caller, handle, offset, data, options),
    flush: async (caller, handle) => (isOfPast(handle) ? undefined : fileSystem.flush(caller, handle)),
    fsync: async (caller, handle, dataOnly) =>
      isOfPast(handle) ? undefined : fileSystem.fsync(caller, handle, dataOnly),
    release: async (handle) => (isOfPast(handle) ? close(texts, handle) : fileSystem.release(handle)),
    allocate: (caller, handle, mode, offset, length) =>
      isOfPast(handle) ? refuse() : fileSystem.allocate(caller, handle, mode, offset, length),
    async seek(caller, handle, kind, offset) {
      if (!isOfPast(handle)) return fileSystem.seek(caller, handle, kind, offset);
      const size = sizeOf(placeOf(idOfHandle(handle)));
      if (offset >= size) return undefined;
      return kind === "data" ? offset : size;
    },
    opendir: (caller, id) => (isPast(id) ? opendir(caller, id) : fileSystem.opendir(caller, id)),
    readdir: (caller, handle, cookie, limit, withAttributes) =>
      isOfPast(handle)
        ? readdir(caller, handle, cookie, limit, withAttributes)
        : fileSystem.readdir(caller, handle, cookie, limit, withAttributes),
    fsyncdir: async (caller, handle) => (isOfPast(handle) ? undefined : fileSystem.fsyncdir(caller, handle)),
    releasedir: async (handle) => (isOfPast(handle) ? close(listings, handle) : fileSystem.releasedir(handle)),
    setxattr: (caller, id, name, value, flags) =>
      isPast(id) ? refuse() : fileSystem.setxattr(caller, id, name, value, flags),
    getxattr: (caller, id, name) => (isPast(id) ? noAttribute() : fileSystem.getxattr(caller, id, name)),
    listxattr: async (caller, id) => (isPast(id) ? [] : fileSystem.listxattr(caller, id)),
    removexattr: (caller, id, name) => (isPast(id) ? refuse() : fileSystem.removexattr(caller, id, name)),
  } satisfies Partial<FileSystem>);
}

interface Listing {
  opens: number;
  entries: Promise<readonly [string, HistoryPlace][]>;
  /** A program has read the beginning of the list. */
  isBegun: boolean;
}

/** The place of which a handle of the past is. */
const idOfHandle = (handle: HandleId): KernelNodeId => kernelNodeId(handle);

const DOTS = [".", ".."];
const EPOCH: Time = { seconds: 0, nanoseconds: 0 };

function readOnly(): FsError {
  return new FsError("EROFS", "the history folder cannot be changed");
}

function noAttribute(): Promise<never> {
  return Promise.reject(new FsError("ENODATA", "no extended attributes in the past"));
}

function close<Open extends { opens: number }>(all: Map<HandleId, Open>, handle: HandleId): void {
  const open = all.get(handle);
  if (open === undefined) return;
  open.opens -= 1;
  if (open.opens <= 0) all.delete(handle);
}
