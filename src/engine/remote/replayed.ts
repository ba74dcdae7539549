/**
 * The file system as the replayer sees it (api/replay.ts). The replayer sees the state before the current change, until
 * it makes that change, which in truth changes nothing. Other processes see the present state. Any other change by the
 * replayer fails with EIO. So does any change by an earlier replayer, because a late call may belong to any change.
 */
import type { NameInFolder } from "../../metadata/entries.ts";
import { type InodeId, inodeId, kernelNodeId } from "../../metadata/ids.ts";
import {
  type Attributed,
  type Caller,
  type FileSystem,
  type Found,
  FsError,
  type HandleId,
  handleId,
  type KernelNodeId,
  type NegativeEntry,
  type OpenFlags,
  type Replay,
  type Replays,
} from "../api/index.ts";
import type { Kernel, Rows } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";

/** Stand-ins for a file or folder that is gone, while its removal is replayed. No inode has these numbers. */
const GONE = { file: 2 ** 52, folder: 2 ** 52 + 1 };
/** A handle that is opened only to be closed. No open file has this number. */
const NOTHING = handleId(Number.MAX_SAFE_INTEGER);
const AT_ONCE = { validMs: 0, entryValidMs: 0 };

/** Returns `fileSystem`, but with the replayer seeing the state before the current change. */
export function withReplays(context: Rows & Kernel & Tree, fileSystem: FileSystem, replays: Replays): FileSystem {
  const { metadata } = context;
  /** The current replay, once the replayer has done it. */
  let done: Replay | undefined;
  /** The current replay, once the replayer was shown a stand-in for a gone file or folder. */
  let stoodFor: Replay | undefined;
  /**
   * Superseded kernel node ids that the replayer was shown, and the times of that. The kernel forgets such an answer at
   * once when it finds that the name leads to another inode. It may still know the number by other references, so that
   * forget must not count.
   */
  const lent = new Map<KernelNodeId, number>();

  const isReplayer = ({ pid }: Caller) => pid === replays.by || replays.formerly.has(pid);
  const inodeAt = ({ folder, name }: NameInFolder) => metadata.entries.find(folder, name)?.inode;

  function placeOf(parent: KernelNodeId, name: string): NameInFolder | undefined {
    const folder = metadata.inodes.ofKernelNodeId(parent)?.id;
    return folder === undefined ? undefined : { folder, name };
  }

  function isPlace(parent: KernelNodeId, name: string, place: NameInFolder): boolean {
    return name === place.name && metadata.inodes.ofKernelNodeId(parent)?.id === place.folder;
  }

  /** The current replay, if the caller is to do it and it is of one of these kinds. Otherwise throws EIO. */
  function currentOf<What extends Replay["what"]>(caller: Caller, ...whats: What[]): Extract<Replay, { what: What }> {
    const { current } = replays;
    const isIt = current !== undefined && (whats as string[]).includes(current.what) && caller.pid === replays.by;
    return isIt ? (current as Extract<Replay, { what: What }>) : refuse();
  }

  function refuse(): never {
    throw new FsError("EIO", "no change that is being replayed");
  }

  async function lookup(caller: Caller, parent: KernelNodeId, name: string): Promise<Found | NegativeEntry> {
    const { current } = replays;
    const asItIs = async () => answered(parent, name, await fileSystem.lookup(caller, parent, name));
    if (current === undefined || current === done || caller.pid !== replays.by) return asItIs();
    const absent = () => {
      throw new FsError("ENOENT", "as it was before the change");
    };
    const isIt = isPlace(parent, name, current);
    switch (current.what) {
      case "made":
        return isIt && replays.isMaking(current) ? absent() : asItIs();
      case "gone":
        return isIt && inodeAt(current) === undefined ? formerly(current) : asItIs();
      case "moved": {
        const isStill = inodeAt(current) === undefined && inodeAt(current.to) === current.inode;
        if (!isStill || !replays.isUnreported(current.to)) return asItIs();
        if (isPlace(parent, name, current.to)) return absent();
        return isIt ? foundAs(current.inode) : asItIs();
      }
      default: {
        const { id } = context.requirements.inode(current.kernelNodeId);
        return isIt && inodeAt(current) === id ? foundAs(id, current.kernelNodeId) : asItIs();
      }
    }
  }

  async function foundAs(id: InodeId, kernelNodeId?: KernelNodeId): Promise<Found> {
    const inode = metadata.inodes.get(id);
    if (inode === undefined) throw new FsError("ENOENT", `inode ${id} has gone`);
    const now = await context.stats.found(inode);
    if (kernelNodeId === undefined || kernelNodeId === inode.kernelNodeId) return { ...now, ...AT_ONCE };
    const then = await context.stats.attributed(inode, kernelNodeId);
    lent.set(kernelNodeId, (lent.get(kernelNodeId) ?? 0) + 1);
    return { ...then, kernelNodeId, ...AT_ONCE };
  }

  /**
   * The answer for a name that is gone. Shows the orphan itself, if there is one, so that a program that watches it
   * hears of its end. Otherwise a stand-in.
   */
  function formerly({ kind, kernelNodeId }: Extract<Replay, { what: "gone" }>): Promise<Found> {
    const inode = kernelNodeId === undefined ? undefined : metadata.inodes.ofKernelNodeId(kernelNodeId);
    const isOrphan = inode !== undefined && metadata.entries.links(inode.id) === 0;
    if (isOrphan) return foundAs(inode.id, kernelNodeId);
    stoodFor = replays.current;
    return gone(kind);
  }

  async function gone(kind: "file" | "folder"): Promise<Found> {
    const { stat } = await fileSystem.getattr(NOBODY, ROOT);
    const inode = inodeId(GONE[kind]);
    const shown = { ...stat, inode, kind, mode: 0o600, links: 1, size: 0 };
    return { stat: shown, kernelNodeId: kernelNodeId(GONE[kind]), ...AT_ONCE };
  }

  async function made(caller: Caller, parent: KernelNodeId, name: string): Promise<Found> {
    const current = currentOf(caller, "made");
    if (!isPlace(parent, name, current) || !replays.isMaking(current)) return refuse();
    done = current;
    const now = answered(parent, name, await fileSystem.lookup(caller, parent, name));
    return now.kernelNodeId === undefined || now.stat.kind !== current.kind ? refuse() : now;
  }

  async function removed(caller: Caller, parent: KernelNodeId, name: string): Promise<void> {
    const current = currentOf(caller, "gone");
    if (!isPlace(parent, name, current) || inodeAt(current) !== undefined) refuse();
    // If the replayer did not look the name up, it holds the inode's own number. A removal by that number would make an
    // inode that is elsewhere now count as removed, and a folder that comes back could take no name any more.
    if (current.kernelNodeId === undefined && stoodFor !== current) refuse();
    done = current;
  }

  async function touched(caller: Caller, kernelNodeId: KernelNodeId): Promise<Attributed> {
    const current = currentOf(caller, "written", "attributes");
    const inode = context.requirements.inode(kernelNodeId);
    return inode.id === inodeAt(current) ? context.stats.attributed(inode, kernelNodeId) : refuse();
  }

  /** A handle that is opened only to be closed, so that watchers hear of the close. It blocks no program. */
  function opened(
    caller: Caller,
    kernelNodeId: KernelNodeId,
  ): { handle: HandleId; keepCache: true; noFlush: true; direct: true } {
    const current = currentOf(caller, "closed");
    if (context.requirements.inode(kernelNodeId).id !== inodeAt(current)) refuse();
    return { handle: NOTHING, keepCache: true, noFlush: true, direct: true };
  }

  const isChange = ({ write, truncate }: OpenFlags) => write || truncate;

  /** A name that the replayer is about to make gets no validity, so that the kernel looks it up for the replayer. */
  function forNow<T extends Found | NegativeEntry>({ folder, name }: NameInFolder, answer: T): T {
    const { current } = replays;
    const isIt = current?.what === "made" && current !== done && current.folder === folder && current.name === name;
    return isIt ? { ...answer, entryValidMs: 0 } : answer;
  }

  /** The answer tells the kernel the present state of the name. */
  function answered<T extends Found | NegativeEntry>(parent: KernelNodeId, name: string, answer: T): T {
    if (!replays.isAnyPlace) return answer;
    const place = placeOf(parent, name);
    if (place === undefined) return answer;
    if (answer.kernelNodeId !== undefined) {
      replays.kernelKnows(place);
      return forNow(place, answer);
    }
    // With a negative entry, the kernel would not look the name up when its removal is replayed. So it gets ENOENT
    // without one.
    if (replays.isToGo(place)) throw new FsError("ENOENT", "it went a moment ago");
    return answer;
  }

  /** A program here made the name, so programs that watch have heard of it. */
  function madeHere<T>(parent: KernelNodeId, name: string, answer: T): T {
    const place = replays.isAnyPlace ? placeOf(parent, name) : undefined;
    if (place !== undefined) replays.madeHere(place);
    return answer;
  }

  /** A program that was shown a folder may watch it from now on. */
  function shown<T extends Attributed | NegativeEntry>(answer: T): T {
    if ("stat" in answer && answer.stat.kind === "folder") replays.mayBeWatched(answer.stat.inode);
    return answer;
  }

  return Object.assign(Object.create(fileSystem) as FileSystem, {
    async lookup(caller, parent, name) {
      if (replays.isSought(name, caller.pid)) throw new FsError("ENOENT", "no file has such a name");
      if (isReplayer(caller)) return lookup(caller, parent, name);
      return shown(answered(parent, name, await fileSystem.lookup(caller, parent, name)));
    },
    forget(kernelNodeIds) {
      if (lent.size === 0) return fileSystem.forget(kernelNodeIds);
      fileSystem.forget(
        kernelNodeIds.filter(({ kernelNodeId, count }) => {
          const given = lent.get(kernelNodeId) ?? 0;
          if (given > 1) lent.set(kernelNodeId, given - 1);
          else lent.delete(kernelNodeId);
          return count !== 1 || given === 0;
        }),
      );
    },
    async getattr(caller, kernelNodeId, handle) {
      if (kernelNodeId === GONE.file) return gone("file");
      if (kernelNodeId === GONE.folder) return gone("folder");
      const answer = await fileSystem.getattr(caller, kernelNodeId, handle);
      return isReplayer(caller) ? answer : shown(answer);
    },
    async readdir(caller, handle, cookie, limit, withAttributes) {
      const entries = await fileSystem.readdir(caller, handle, cookie, limit, withAttributes);
      const open = context.handles.get(handle);
      const folder = open?.kind === "folder" ? open.inode : undefined;
      return entries.map((entry) => {
        const { name, found: one } = entry;
        if (one === undefined) return entry;
        shown(one);
        if (!replays.isAnyPlace || folder === undefined) return entry;
        replays.kernelKnows({ folder, name });
        return { ...entry, found: forNow({ folder, name }, one) };
      });
    },
    async setattr(caller, kernelNodeId, change) {
      if (!isReplayer(caller)) return fileSystem.setattr(caller, kernelNodeId, change);
      return change.size === undefined ? touched(caller, kernelNodeId) : refuse();
    },
    async open(caller, kernelNodeId, flags) {
      return isReplayer(caller) && isChange(flags)
        ? opened(caller, kernelNodeId)
        : fileSystem.open(caller, kernelNodeId, flags);
    },
    async mknod(caller, parent, name, ...rest) {
      if (isReplayer(caller)) return made(caller, parent, name);
      return madeHere(parent, name, await fileSystem.mknod(caller, parent, name, ...rest));
    },
    async mkdir(caller, parent, name, mode) {
      if (isReplayer(caller)) return made(caller, parent, name);
      return madeHere(parent, name, await fileSystem.mkdir(caller, parent, name, mode));
    },
    async symlink(caller, parent, name, target) {
      if (isReplayer(caller)) return made(caller, parent, name);
      return madeHere(parent, name, await fileSystem.symlink(caller, parent, name, target));
    },
    async unlink(caller, parent, name) {
      return isReplayer(caller) ? removed(caller, parent, name) : fileSystem.unlink(caller, parent, name);
    },
    async rmdir(caller, parent, name) {
      return isReplayer(caller) ? removed(caller, parent, name) : fileSystem.rmdir(caller, parent, name);
    },
    async rename(caller, from, to, flags) {
      if (!isReplayer(caller)) {
        await fileSystem.rename(caller, from, to, flags);
        for (const { parent, name } of flags.exchange ? [from, to] : [to]) madeHere(parent, name, undefined);
        return;
      }
      const current = currentOf(caller, "moved");
      const isIt = isPlace(from.parent, from.name, current) && isPlace(to.parent, to.name, current.to);
      if (!isIt || inodeAt(current) !== undefined || inodeAt(current.to) !== current.inode) refuse();
      done = current;
    },
    async create(caller, parent, name, mode, flags) {
      if (isReplayer(caller)) return refuse();
      return madeHere(parent, name, await fileSystem.create(caller, parent, name, mode, flags));
    },
    async link(caller, kernelNodeId, parent, name) {
      if (isReplayer(caller)) return refuse();
      return madeHere(parent, name, await fileSystem.link(caller, kernelNodeId, parent, name));
    },
    async setxattr(caller, kernelNodeId, name, value, flags) {
      return isReplayer(caller) ? refuse() : fileSystem.setxattr(caller, kernelNodeId, name, value, flags);
    },
    async removexattr(caller, kernelNodeId, name) {
      return isReplayer(caller) ? refuse() : fileSystem.removexattr(caller, kernelNodeId, name);
    },
  } satisfies Partial<FileSystem>);
}

const ROOT = kernelNodeId(1);
const NOBODY: Caller = { uid: 0, gid: 0, pid: 0, signal: new AbortController().signal };
