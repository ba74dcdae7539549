/**
 * A file system as the process sees it that replays what others changed (replay.ts): before the change, until it makes
 * it, which changes nothing. To everybody else it is what it is. Whatever else that process should ask to change fails.
 */
import type { Context } from "./context.ts";
import { FsError } from "./errors.ts";
import type { Absent, Attributed, Caller, FileSystem, Found, Lineage } from "./filesystem.ts";
import type { Place, Replay, Replays } from "./replay.ts";
import { attributed, found, inodeOf } from "./stat.ts";

/** Stand for what has gone while its going is replayed; no inode has them. */
const GONE = { file: 2 ** 52, folder: 2 ** 52 + 1 } as const;
const AT_ONCE = { validMs: 0, entryValidMs: 0 };

export function withReplays(context: Context, fileSystem: FileSystem, replays: Replays): FileSystem {
  const { metadata } = context;
  /** What the process has done of the current one. */
  let done: Replay | undefined;

  const isReplayer = ({ pid }: Caller) => pid === replays.by || isFormer(pid);
  // Of a call that comes again nobody knows what it was about.
  const isFormer = (pid: number) => pid === replays.formerly && pid !== 0;

  function isPlace(parent: Lineage, name: string, place: Place | undefined): boolean {
    return place !== undefined && name === place.name && metadata.inodes.ofLineage(parent)?.id === place.folder;
  }

  const isFree = ({ folder, name }: Place) => metadata.entries.find(folder, name) === undefined;

  function refuse(what: string): never {
    throw new FsError("EIO", `${what} was replayed, and is not what has changed`);
  }

  async function lookup(caller: Caller, parent: Lineage, name: string): Promise<Found | Absent> {
    const { current } = replays;
    const asItIs = () => fileSystem.lookup(caller, parent, name);
    if (current === undefined || current === done || isFormer(caller.pid)) return asItIs();
    const absent = () => {
      throw new FsError("ENOENT", "as it was before the change");
    };
    const isIt = isPlace(parent, name, current);
    switch (current.what) {
      case "made":
        return isIt ? absent() : asItIs();
      case "gone":
        return isIt && isFree(current) ? formerly(current) : asItIs();
      case "moved":
        if (isPlace(parent, name, current.to)) return absent();
        return isIt && isFree(current) ? foundAs(current.inode) : asItIs();
      default:
        return isIt ? foundAs(inodeOf(context, current.lineage).id, current.lineage) : asItIs();
    }
  }

  async function foundAs(id: number, lineage?: Lineage): Promise<Found> {
    const inode = metadata.inodes.get(id);
    if (inode === undefined) throw new FsError("ENOENT", `inode ${id} has gone`);
    const now = await found(context, inode);
    return lineage === undefined || lineage === inode.lineage
      ? { ...now, ...AT_ONCE }
      : { ...(await attributed(context, inode, lineage)), lineage, ...AT_ONCE };
  }

  /** Who watches it hears of its end, if it is still known. */
  function formerly({ kind, lineage }: Extract<Replay, { what: "gone" }>): Promise<Found> {
    const inode = lineage === undefined ? undefined : metadata.inodes.ofLineage(lineage);
    const isNameless = inode !== undefined && metadata.entries.links(inode.id) === 0;
    return isNameless ? foundAs(inode.id, lineage) : gone(kind);
  }

  async function gone(kind: "file" | "folder"): Promise<Found> {
    const root = metadata.inodes.get(1);
    if (root === undefined) throw new FsError("EIO", "there is no root");
    const { stat } = await attributed(context, root);
    const lineage = GONE[kind];
    return { stat: { ...stat, inode: lineage, kind, mode: 0o600, links: 1, size: 0 }, lineage, ...AT_ONCE };
  }

  async function made(caller: Caller, parent: Lineage, name: string): Promise<Found> {
    const { current } = replays;
    if (current?.what !== "made" || !isPlace(parent, name, current) || isFormer(caller.pid))
      return refuse("a new name");
    done = current;
    const now = await fileSystem.lookup(caller, parent, name);
    return now.lineage === undefined || now.stat.kind !== current.kind ? refuse("a new name") : now;
  }

  async function removed(caller: Caller, parent: Lineage, name: string): Promise<void> {
    const { current } = replays;
    const isIt = current?.what === "gone" && isPlace(parent, name, current) && isFree(current);
    if (!isIt || isFormer(caller.pid)) refuse("a removal");
    done = current;
  }

  function shown<T extends Attributed | Absent>(answer: T): T {
    if ("stat" in answer) replays.shown(answer.stat.inode, answer.stat.kind);
    return answer;
  }

  return Object.assign(Object.create(fileSystem) as FileSystem, {
    async lookup(caller, parent, name) {
      replays.lookedUp(name, caller.pid);
      if (isReplayer(caller)) return lookup(caller, parent, name);
      return shown(await fileSystem.lookup(caller, parent, name));
    },
    async getattr(caller, lineage, handle) {
      if (lineage === GONE.file) return gone("file");
      if (lineage === GONE.folder) return gone("folder");
      return shown(await fileSystem.getattr(caller, lineage, handle));
    },
    async setattr(caller, lineage, change) {
      if (!isReplayer(caller)) return fileSystem.setattr(caller, lineage, change);
      return change.size === undefined ? attributed(context, inodeOf(context, lineage), lineage) : refuse("a new size");
    },
    mknod: (caller, parent, name, ...rest) =>
      isReplayer(caller) ? made(caller, parent, name) : fileSystem.mknod(caller, parent, name, ...rest),
    mkdir: (caller, parent, name, mode) =>
      isReplayer(caller) ? made(caller, parent, name) : fileSystem.mkdir(caller, parent, name, mode),
    symlink: (caller, parent, name, target) =>
      isReplayer(caller) ? made(caller, parent, name) : fileSystem.symlink(caller, parent, name, target),
    unlink: (caller, parent, name) =>
      isReplayer(caller) ? removed(caller, parent, name) : fileSystem.unlink(caller, parent, name),
    rmdir: (caller, parent, name) =>
      isReplayer(caller) ? removed(caller, parent, name) : fileSystem.rmdir(caller, parent, name),
    async rename(caller, from, to, flags) {
      if (!isReplayer(caller)) return fileSystem.rename(caller, from, to, flags);
      const { current } = replays;
      const isIt = current?.what === "moved" && isPlace(from.parent, from.name, current) && isFree(current);
      if (!isIt || !isPlace(to.parent, to.name, current.to) || isFormer(caller.pid)) return refuse("a move");
      if (metadata.entries.find(current.to.folder, current.to.name)?.inode !== current.inode) return refuse("a move");
      done = current;
    },
    // To be closed as by somebody who wrote: it is opened as by one who reads.
    open: (caller, lineage, flags) =>
      fileSystem.open(caller, lineage, isReplayer(caller) ? { ...flags, read: true, ...NO_WRITER } : flags),
    async create(caller, parent, name, mode, flags) {
      return isReplayer(caller) ? refuse("a new file") : fileSystem.create(caller, parent, name, mode, flags);
    },
    async link(caller, lineage, parent, name) {
      return isReplayer(caller) ? refuse("a link") : fileSystem.link(caller, lineage, parent, name);
    },
  } satisfies Partial<FileSystem>);
}

const NO_WRITER = { write: false, append: false, truncate: false };
