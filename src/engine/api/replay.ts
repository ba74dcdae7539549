/**
 * Replay: the kernel tells programs that watch files (inotify) of calls that go through the mount, and of nothing else.
 * So a helper process, the replayer (daemon/replayer.ts), repeats remote changes through the mount. Its calls are
 * answered as if they made the changes (remote/replayed.ts). The interface; `remote/changes-to-replay.ts` decides which
 * changes are replayed.
 */
import type { Changed } from "../../metadata/changed.ts";
import type { NameInFolder } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { InodeKind } from "../../metadata/inodes.ts";
import type { KernelNodeId } from "./filesystem.ts";

/** One call of the replayer on one name. */
export type Replay = NameInFolder &
  (
    | { readonly what: "made"; readonly kind: InodeKind }
    /** `kernelNodeId`: a kernel node id by which the kernel may know the inode that is gone. */
    | { readonly what: "gone"; readonly kind: "file" | "folder"; readonly kernelNodeId: KernelNodeId | undefined }
    | { readonly what: "moved"; readonly inode: InodeId; readonly to: NameInFolder }
    /**
     * Replayed so that watchers hear of a write, a change of attributes, or a close after writing. `kernelNodeId`: a kernel
     * node id by which the kernel may know the inode.
     */
    | { readonly what: "written" | "attributes" | "closed"; readonly kernelNodeId: KernelNodeId }
  );

/** The queue of changes to replay, and the process that replays them. */
export interface Replays {
  /** Thread id of the replayer, which has a single thread; undefined: there is no replayer. */
  by: number | undefined;
  /**
   * Thread ids of earlier replayers, also of those of earlier daemons, until they have ended. Changes that they ask for
   * fail, because it is not known which replay a late call belongs to.
   */
  readonly formerly: Set<number>;
  /**
   * Waits for a lookup of this name in the root, by which a new replayer shows its thread id. The function returns that
   * id; undefined: no lookup yet.
   */
  seek(name: string): () => number | undefined;
  /** True: `seek` waits for this name. Notes that thread `by` looked it up. */
  isSought(name: string, by: number): boolean;
  /** Notes the changes of a commit that are to be replayed. Called with each commit. */
  note(changed: Changed): void;
  /** False: `kernelKnows`, `madeHere` and `isToGo` have nothing to do for any place. */
  readonly isAnyPlace: boolean;
  /** Notes that the kernel knows the present state of this name. */
  kernelKnows(place: NameInFolder): void;
  /** A program made the name through the mount, so its watchers have heard of it. */
  madeHere(place: NameInFolder): void;
  /**
   * True: a name went from this place, and its removal may have to be replayed. The kernel must not hold a negative
   * entry for it, or the replayer's removal would not reach us.
   */
  isToGo(place: NameInFolder): boolean;
  /** Programs may watch this folder from now on. If its names are not known yet, it may have to be listed. */
  mayBeWatched(folder: InodeId): void;
  /**
   * Sets the function that is called when there is something to replay, or when the watched inodes have to be found
   * out. Undefined: changes are not noted any more.
   */
  onAny(begin: (() => void) | undefined): void;
  /** True: a change waits to be replayed, or the watched inodes have to be found out. */
  readonly isAny: boolean;
  /**
   * Begins to find out which inodes are watched. Call the returned function with them; EVERYTHING may be among them. It
   * lists watched folders whose names are not known, so that changes in them are noticed.
   */
  asking(): (watched: Watched) => void;
  /** The next replay, which is the current one until `next` is called again. Undefined: there is none for now. */
  next(): Replay | undefined;
  /** The replay that the replayer carries out now. */
  readonly current: Replay | undefined;
  /**
   * Resolves once the kernel will look up the name that the current replay makes. Without it, a program that listed the
   * folder may have made the name known to the kernel already. `isCovered`: a file system is mounted over the name, and
   * an invalidation would unmount it. Never rejects.
   */
  prepare(isCovered: () => boolean): Promise<void>;
  /** True: the current replay makes this name, and the kernel does not know it or will look it up again. */
  isMaking(place: NameInFolder): boolean;
  /** The current replay failed, and others take its place. `isFolder`: the kernel found a folder there. */
  failed(isFolder: boolean): void;
  /** Ends the current replay and discards all that wait. */
  drop(): void;
  /** No replay begins until the returned function is called. */
  pause(): () => void;
  /** True: the kernel was not told of this name since it was made. */
  isUnreported(place: NameInFolder): boolean;
  /** From the root, without a slash at either end; undefined: the folder has no path. */
  pathOf(folder: InodeId): string | undefined;
}

/** Stands for all inodes when it is not known which ones are watched. */
export const EVERYTHING = "everything";

/** Inodes that programs watch. */
export type Watched = ReadonlySet<InodeId | typeof EVERYTHING>;
