/**
 * A cache file while it is open: the one local file that every open of a kernel node id reads and writes. Here is what
 * other rooms ask of it; files/cache-file.ts has the class, and its state is known to files/ only.
 */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { FileStat } from "../../lib/files.ts";
import type { Timer } from "../../lib/runtime.ts";
import type { Time } from "../../lib/time.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Caller, HandleId } from "../api/index.ts";

/** The reader of one handle: it remembers where sequential reading goes on. */
export interface Reader {
  /**
   * Bytes of [offset, offset + size), fetched first where they are missing; fewer at the end of the file. Undefined: the
   * caller was answered with them (Caller.answerFrom).
   */
  read(
    handle: HandleId,
    offset: number,
    size: number,
    caller: Pick<Caller, "signal" | "answerFrom">,
  ): Promise<Uint8Array | undefined>;
}

/**
 * The state on which the time of the next snapshot depends, besides the writes since the last one
 * (upload/snapshot-times.ts).
 */
export interface SnapshotPace {
  /** How often the pause has doubled. */
  readonly step: number;
  /** When the last snapshot was taken, and when the file was last written before that. Undefined: there was none. */
  readonly last: { readonly at: ElapsedTime; readonly writtenAt: ElapsedTime } | undefined;
  /** No snapshot before this, so that copying does not keep the disk busy. Undefined: no copy was made. */
  readonly notBefore: ElapsedTime | undefined;
}

/** The state of upload/snapshot-open.ts for one file that stays open: it says when the next snapshot is taken. */
export class SnapshotPacing {
  pace: SnapshotPace = { step: 0, last: undefined, notBefore: undefined };
  /** Looks at the file again at that time. */
  nextLook: { readonly timer: Timer; readonly at: ElapsedTime } | undefined;
  /** A program called fsync since the last snapshot. */
  isFsyncAsked = false;
}

export interface CacheFile {
  readonly lineage: KernelNodeId;
  readonly inode: InodeId;
  readonly path: string;
  readonly pacing: SnapshotPacing;

  /** Opens for writing. */
  readonly writers: number;
  /** A program has used the file since it was opened, or another handle has it open. */
  readonly isUsed: boolean;
  /** The id under which the kernel reads and writes the file by itself; undefined: we serve it. */
  readonly backingId: number | undefined;
  /** A passthrough writer was admitted, whose writes only write detection finds. */
  readonly hasPassthroughWriter: boolean;
  /** The same, and the file was not looked at in this turn (whileSeen). */
  readonly mayHaveUnseenWrites: boolean;
  /** False: there is no file, or none that can be written. Missing ranges are then read uncached. */
  readonly isKept: boolean;
  /** No range is missing. */
  readonly isWhole: boolean;
  /** The row says that the content has changed since the last snapshot or clean state: its hash is null. */
  readonly isContentDirty: boolean;
  /** Size and time in the rows may be older than the file's. */
  readonly mayHaveUnpersistedStat: boolean;
  /** Counts changes that programs began. */
  readonly writes: number;
  /** The time of the first change since the last snapshot. Undefined: there was none. */
  readonly firstWriteAt: ElapsedTime | undefined;
  /** The time of the last change, or at which the file was opened here. */
  readonly lastWriteAt: ElapsedTime;

  createReader(): Reader;
  /** lseek(2). Undefined: there is nothing of that kind at or after the offset. */
  seek(kind: "data" | "hole", offset: number): Promise<number | undefined>;
  /** Resolves to how many bytes were written: fewer when the disk became full. Rejects with an FsError. */
  write(handle: HandleId, offset: number, data: Uint8Array): Promise<number>;
  /** Call it within CacheFiles.whileTruncating. Rejects as `write` does. */
  truncate(caller: Caller, size: number): Promise<void>;
  /** fallocate(2) with the mode bits of the kernel. Rejects with EOPNOTSUPP, EINVAL, or as `write` does. */
  allocate(mode: number, offset: number, length: number): Promise<void>;
  /** The thread that made the file shorter sends another request, so it has gone on. */
  threadWentOn(caller: Pick<Caller, "pid">): void;
  /** Resolves once such a thread has gone on. True: there was something to wait for. Rejects with EINTR. */
  untilTruncateKnown(signal: AbortSignal): Promise<boolean>;

  /** Counts as written from here on what passthrough writers did since the last look. */
  detectWrites(): Promise<void>;
  /** In the turn after detectWrites: while `work` runs, no writes are unseen. */
  whileSeen(work: () => void): void;
  /** Records size and mtime of a written file in the rows. */
  persistStat(): Promise<void>;
  /** Makes bytes and name durable, and the row say so. The caller syncs the rows. */
  makeDurable(): Promise<void>;
  /** fdatasync. Callers that come while one runs share the next one. */
  sync(): Promise<void>;
  /** Makes the file's name durable, once. */
  syncName(): Promise<void>;
  /** The name is durable: the whole disk was synced. */
  nameIsDurable(): void;
  /** Stat of the file itself. */
  stat(): Promise<FileStat>;
  /** Any change after the file had this stat shows in its times. */
  isExact(stat: FileStat): boolean;

  /** Fetches every missing byte and verifies those of the origin, until the row says so too. */
  fetchAll(signal: AbortSignal): Promise<void>;
  /** Fetches a small file before a program reads it. Rejects when `signal` is aborted. */
  prefetchSmall(signal: AbortSignal): Promise<void>;
  /** No version has this content any more: nothing is compared with the origin any more. */
  leaveOriginForGood(): void;

  /** The next write comes to us, and is counted. */
  revokeWriteLeases(): void;
  /** Undefined: something is being written. Else `writes`, which another write changes from here on. */
  beginSnapshot(): number | undefined;
  /**
   * SHA-256 and size of a file of about `expected` bytes; of a small one its bytes too. Undefined: a writer came.
   */
  hash(expected: number, signal: AbortSignal): Promise<{ hash: string; size: number; bytes?: Uint8Array } | undefined>;
  /** Sets the content dirty in the rows, and counts a change. `at`: the time of it. */
  setContentDirty(at?: ElapsedTime): void;
  /** A snapshot has everything written so far. `isDurable`: and no writer can change the content unnoticed. */
  setContentClean(isDurable: boolean): void;

  /** An answer is about to tell the kernel this size, and this time if the answer is about nothing else. */
  shown(size: number, time?: Time): void;
  /** An answer tells the kernel this size, which it may ignore. */
  mayBeShown(size: number): void;
  /** The kernel may have been told any size. */
  shownUnknown(): void;

  /** Counts a handle. Resolves to the backing id to answer with; undefined: we serve the file. */
  attach(write: boolean): Promise<number | undefined>;
  /** The end of a handle. Call it before the close. */
  detach(write: boolean): void;
  /** Ends one open. Never rejects. */
  close(options: { write: boolean }): Promise<void>;
  /** Replaces `close` for a passthrough writer: closes when the last descriptor and mapping are gone. */
  closePassthrough(): Promise<void>;
}

/** The open cache files, and what is done to those that may not be open. */
export interface CacheFiles {
  readonly size: number;
  has(lineage: KernelNodeId): boolean;
  get(lineage: KernelNodeId): CacheFile | undefined;
  values(): Iterable<CacheFile>;

  /**
   * Opens a cache file. It counts as one open until its close. With `write`, the inode is marked in the rows before
   * this resolves. Rejects with an FsError: ESTALE when the kernel node id is superseded, else as fromDisk says.
   */
  open(
    lineage: KernelNodeId,
    options: {
      write: boolean;
      /** The row was made together with the inode (rowOfNewFile), and there is no file yet. */
      isNew?: boolean;
      /** False: opened to be sent, which is no reason to keep the file in the cache for longer. */
      isUse?: boolean;
    },
  ): Promise<CacheFile>;
  /** Call it in the transaction that makes the inode. False: `open` makes the row. */
  rowOfNewFile(lineage: KernelNodeId): boolean;
  /** `work` may make the file shorter, and the request is answered right after it. */
  whileTruncating<T>(lineage: KernelNodeId, work: () => Promise<T>): Promise<T>;
  /** Bytes of one version, not kept. Rejects with an FsError. */
  fetchVersion(
    /** `hash`: of the whole content; null: not known. */
    of: { readonly node: string; readonly version: string; readonly hash: string | null },
    part: { readonly start: number; readonly end: number },
    signal: AbortSignal,
  ): Promise<Uint8Array>;

  /** Writable opens of the inode. */
  writersOf(inode: Inode): number;
  /** Size in bytes and mtime of a file that a program may have written to; undefined: the rows know them. */
  stat(inode: Inode): Promise<{ size: number; mtime: Time } | undefined>;
  /** A program set the time; the caller changes the row. Rejects with an FsError. */
  setTimes(inode: Inode, mtime: Time): Promise<void>;
  /** The content is this version too: what is missing is fetched from it from now on. */
  comesFrom(lineage: KernelNodeId, origin: { readonly node: string; readonly version: string }): void;

  /** For a takeover: opens the file again, as the earlier daemon had it open. */
  resume(
    lineage: KernelNodeId,
    handles: readonly { write: boolean; backing: number | undefined }[],
  ): Promise<CacheFile>;
  /** The same for a file that a passthrough writer has closed and still has mapped. */
  resumeMapped(lineage: KernelNodeId): Promise<CacheFile>;
  /** Only one piece of work at a time makes, closes or removes the cache file. Rejects as `work` does. */
  alone<T>(lineage: KernelNodeId, work: () => Promise<T>): Promise<T>;
  /** True: the file has this content, as far as that is found out quickly. */
  isStill(inode: Inode, hash: string): Promise<boolean>;
  /** True also when there is no such file. */
  hasNoWriter(lineage: KernelNodeId): Promise<boolean>;
  /** A file that programs of an ended mount may still write to is left to them; a copy takes its place. */
  leaveToDetachedWriters(lineage: KernelNodeId): Promise<void>;

  /** Inodes that have a passthrough writer, or one whose mapping has not ended. */
  passthroughWritten(): InodeId[];
  /** Of all files: the next write comes to us. */
  revokeWriteLeases(): void;
  /** The state dir is gone: changed files stay open until closeKept, and are sent from there. */
  keepOpenForUpload(): void;
  closeKept(): Promise<void>;
  /** A local file that belongs to nothing known is set aside. */
  quarantine(path: string, name: string): Promise<void>;
  /** Removes files that a crash left, and those that could not be removed earlier. */
  removeLeft(): Promise<void>;
  /** Ends timers and background work. Open files stay open. The rows may be closed afterwards. */
  stop(): Promise<void>;
}
