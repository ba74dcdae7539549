/**
 * Replay: the kernel tells programs that watch files (inotify) of what goes through the mount, and of nothing else. So
 * a helper process (daemon/replayer.ts) does remote changes once more through the mount, and is answered as if its
 * calls made the changes (remote/replayed.ts). The interface; `remote/changes-to-replay.ts` decides what is replayed.
 */
import type { Changed } from "../../metadata/changed.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { InodeKind } from "../../metadata/inodes.ts";
import type { KernelNodeId } from "./filesystem.ts";

/** A name in a folder. The folder is an inode id, not a kernel node id. */
export interface Place {
  readonly folder: InodeId;
  readonly name: string;
}

/** One call of the replayer on one name. */
export type Replay = Place &
  (
    | { readonly what: "made"; readonly kind: InodeKind }
    /** `lineage`: a kernel node id by which the kernel may know what has gone. */
    | { readonly what: "gone"; readonly kind: "file" | "folder"; readonly lineage: KernelNodeId | undefined }
    | { readonly what: "moved"; readonly inode: InodeId; readonly to: Place }
    /**
     * Replayed so that watchers hear of a write, a change of attributes, or a close after writing. `lineage`: a kernel
     * node id by which the kernel may know the inode.
     */
    | { readonly what: "written" | "attributes" | "closed"; readonly lineage: KernelNodeId }
  );

/** The changes that are left to replay, and the process that replays them. */
export interface Replays {
  /** Thread id of the replayer, which has a single thread; undefined: there is no replayer. */
  by: number | undefined;
  /**
   * Thread ids of earlier replayers, also of earlier daemons, until they have ended. Changes that they ask for fail: it
   * is not known which replay a late call belongs to.
   */
  readonly formerly: Set<number>;
  /**
   * Waits for a lookup of this name in the root, by which a new replayer shows its thread id. The function returns that
   * id; undefined: no lookup yet.
   */
  seek(name: string): () => number | undefined;
  /** True: `seek` waits for this name. Notes that thread `by` looked it up. */
  isSought(name: string, by: number): boolean;
  /** Called with each commit: notes what is to be replayed. */
  note(changed: Changed): void;
  /** False: no replay waits for the kernel to be told of a place. */
  readonly isAnyPlace: boolean;
  /** The kernel was told what the name is now. */
  told(place: Place): void;
  /** A program made the name through the mount, so its watchers have heard of it. */
  madeHere(place: Place): void;
  /**
   * A name went from this place and that may have to be replayed. The kernel must not hold a negative entry for it, or
   * the replayer's removal would not reach us.
   */
  isToGo(place: Place): boolean;
  /** Programs may watch this folder from now on. If its names are not known yet, it may have to be listed. */
  mayBeWatched(folder: InodeId): void;
  /**
   * `begin` is called when there is something to replay, or when the watched inodes must be found out. Undefined:
   * nothing is noted.
   */
  onAny(begin: (() => void) | undefined): void;
  /** Something waits to be replayed, or the watched inodes must be found out. */
  readonly isAny: boolean;
  /**
   * Begins to find out which inodes are watched. The function is called with them; EVERYTHING may be among them.
   * Watched folders whose names are not known are listed, so that changes in them are noticed.
   */
  asking(): (watched: Watched) => void;
  /** The next replay, which is the current one until `next` is called again. Undefined: there is none for now. */
  next(): Replay | undefined;
  /** The replay that the replayer carries out now. */
  readonly current: Replay | undefined;
  /**
   * Resolves once the kernel will look up the name that the current replay makes: a program that listed the folder may
   * have made it known to the kernel. `isCovered`: something is mounted over the name, and invalidating it would
   * unmount that.
   */
  prepare(isCovered: () => boolean): Promise<void>;
  /** The current replay makes this name, and the kernel does not know it or will look it up again. */
  isMaking(place: Place): boolean;
  /** The current replay failed; others replace it. `isFolder`: the kernel found a folder there. */
  failed(isFolder: boolean): void;
  /** Ends the current replay and discards all that wait. */
  drop(): void;
  /** No replay begins until the returned function is called. */
  pause(): () => void;
  /** The kernel was not told of this name since it was made. */
  isUnreported(place: Place): boolean;
  /** From the root, without a slash at either end; undefined: the folder has no path. */
  pathOf(folder: InodeId): string | undefined;
}

/** Stands for all inodes, when it is not known which ones are watched. */
export const EVERYTHING = "everything";

/** Inodes that programs watch. */
export type Watched = ReadonlySet<InodeId | typeof EVERYTHING>;
