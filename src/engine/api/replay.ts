/**
 * The kernel tells programs that watch files (inotify) of what comes through the mount, and of nothing else. So what
 * others did is done once more through it, by a process of its own (daemon/replayer.ts), which is answered as if that
 * were the change (replayed.ts). Declared here; what there is to be done again is found out by changes-to-replay.ts.
 */
import type { Changed } from "../../metadata/changed.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { InodeKind } from "../../metadata/inodes.ts";
import type { KernelNodeId } from "./filesystem.ts";

/** A name in a folder (an inode). */
export interface Place {
  readonly folder: InodeId;
  readonly name: string;
}

/** One call on one name. */
export type Replay = Place &
  (
    | { readonly what: "made"; readonly kind: InodeKind }
    /** `lineage`: what the kernel may know it by. */
    | { readonly what: "gone"; readonly kind: "file" | "folder"; readonly lineage: KernelNodeId | undefined }
    | { readonly what: "moved"; readonly inode: InodeId; readonly to: Place }
    /** As a write, a change of attributes, a close after writing would be told of; by the number the kernel may know the inode by. */
    | { readonly what: "written" | "attributes" | "closed"; readonly lineage: KernelNodeId }
  );

export interface Replays {
  /** The process that replays, by the number of its one thread; undefined: there is none. */
  by: number | undefined;
  /** Others that did before it, also for a daemon before this one, until they have ended: what they ask to change fails. */
  readonly formerly: Set<number>;
  /** Who looks up this name in the root; undefined: nobody did so far. */
  seek(name: string): () => number | undefined;
  /** Whether that is the name which is looked up. */
  isSought(name: string, by: number): boolean;
  /** To be called with each commit. */
  note(changed: Changed): void;
  /** Whether there are places of which it matters what the kernel is told. */
  readonly isAnyPlace: boolean;
  /** The kernel is told of the name as it is. */
  told(place: Place): void;
  /** … as a program here has made it. */
  madeHere(place: Place): void;
  /** A name went from there, and who does that once more needs the kernel not to know. */
  isToGo(place: Place): boolean;
  /** Somebody may watch the folder (an inode), and what is in it may not be known. */
  mayBeWatched(folder: InodeId): void;
  /** Called when there is something to replay, or who watches is to be found out; without, nothing is noted. */
  onAny(begin: (() => void) | undefined): void;
  readonly isAny: boolean;
  /**
   * Who watches what is asked for: to be called with the inodes, EVERYTHING among them. What is to be heard in folders has
   * to be known first: they are listed.
   */
  asking(): (watched: Watched) => void;
  /** The next, which is under way until the one after it, or the end of them: undefined. */
  next(): Replay | undefined;
  readonly current: Replay | undefined;
  /**
   * Resolves once the kernel will ask for the name that the current one makes: who lists the folder may have been told of
   * it before. `isCovered`: something is mounted over it, which would be taken off.
   */
  prepare(isCovered: () => boolean): Promise<void>;
  /** The current one makes this name, and the kernel does not know it, or will ask. */
  isMaking(place: Place): boolean;
  /** The current one could not be done (`isFolder`: there is a folder): others come in its place. */
  failed(isFolder: boolean): void;
  /** None is under way any more, and what waits is left out. */
  drop(): void;
  /** Until it is called, none is begun. */
  pause(): () => void;
  /** What the kernel knows of this name is older than the change. */
  isUnreported(place: Place): boolean;
  /** From the root, without a slash at either end; undefined: the folder has no path. */
  pathOf(folder: InodeId): string | undefined;
}

export const EVERYTHING = "everything";

/** Inodes that programs watch. */
export type Watched = ReadonlySet<InodeId | typeof EVERYTHING>;
