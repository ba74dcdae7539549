/**
 * A cache file while it is open: the one local file that every open of a kernel node id reads and writes. This is its
 * interface for other rooms. Its state is in files/cache-file.ts, for files/ alone.
 *
 * The error of the disk: the system error itself, which fromDisk turns into that of a program. The error of the rows:
 * see Rows in context.ts.
 */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { FileStat } from "../../lib/files.ts";
import type { Timer } from "../../lib/runtime.ts";
import type { Time } from "../../lib/time.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { BackingId, Caller, HandleId } from "../api/index.ts";

/** Reads for one handle, and remembers where sequential reading goes on. */
export interface Reader {
  /**
   * Resolves to the bytes of [offset, offset + size), fewer at the end of the file. Missing ranges are fetched first.
   * Undefined: the bytes went to the caller already (Caller.answerFrom). Rejects with an FsError: EINTR, EIO, EACCES,
   * or as fromDisk says.
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
interface SnapshotPace {
  /** How often the pause has doubled. */
  readonly step: number;
  /** When the last snapshot was taken, and when the file was last written before that. Undefined: there was none. */
  readonly last: { readonly at: ElapsedTime; readonly writtenAt: ElapsedTime } | undefined;
  /** No snapshot before this, so that copying does not keep the disk busy. Undefined: no copy was made. */
  readonly notBefore: ElapsedTime | undefined;
}

/** The state by which upload/snapshot-open.ts decides when it takes the next snapshot of a file that stays open. */
export class SnapshotPacing {
  #pace: SnapshotPace = { step: 0, last: undefined, notBefore: undefined };
  #nextLook: { readonly timer: Timer; readonly at: ElapsedTime } | undefined;
  #isFsyncAsked = false;

  get pace() {
    return this.#pace;
  }
  /** The time of the next look at the file; undefined: none is planned. */
  get nextLookAt() {
    return this.#nextLook?.at;
  }
  /** A program called fsync since the last snapshot. */
  get isFsyncAsked() {
    return this.#isFsyncAsked;
  }

  /** A snapshot was tried. `next`: the pace for the next one. */
  tried(next: SnapshotPace): void {
    this.#pace = next;
  }
  askForFsync(): void {
    this.#isFsyncAsked = true;
  }
  fsyncAnswered(): void {
    this.#isFsyncAsked = false;
  }
  planLook(timer: Timer, at: ElapsedTime): void {
    this.#nextLook = { timer, at };
  }
  /** The look of this timer is over. False: another one was planned meanwhile. */
  lookIsOver(timer: Timer): boolean {
    if (this.#nextLook?.timer !== timer) return false;
    this.#nextLook = undefined;
    return true;
  }
  cancelLook(): void {
    this.#nextLook?.timer.cancel();
    this.#nextLook = undefined;
  }
}

export interface CacheFile {
  readonly kernelNodeId: KernelNodeId;
  readonly inode: InodeId;
  readonly path: string;
  readonly pacing: SnapshotPacing;

  /** How many opens for writing there are. */
  readonly writers: number;
  /** A program has used the file since it was opened, or another handle has it open. */
  readonly isUsed: boolean;
  /** The id under which the kernel reads and writes the file by itself; undefined: we serve it. */
  readonly backingId: BackingId | undefined;
  /** There is a passthrough writer. Only write detection finds its writes. */
  readonly hasPassthroughWriter: boolean;
  /**
   * There is a passthrough writer, and it may have written since the last write detection. False in
   * `whileStatIsCurrent`.
   */
  readonly mayHaveUndetectedWrites: boolean;
  /** False: there is no file, or none that can be written. Missing ranges are then read uncached. */
  readonly isKept: boolean;
  /** No range is missing. */
  readonly isWhole: boolean;
  /** The row says that the content has changed since the last snapshot or clean state: its hash is null. */
  readonly isContentDirty: boolean;
  /** Size and time in the rows may be older than the file's. */
  readonly mayHaveUnpersistedStat: boolean;
  /** How many changes programs have begun. */
  readonly writes: number;
  /** The time of the first change since the last snapshot. Undefined: there was none. */
  readonly firstWriteAt: ElapsedTime | undefined;
  /** The time of the last change; before the first one, the time at which the file was opened here. */
  readonly lastWriteAt: ElapsedTime;

  createReader(): Reader;
  /** lseek(2). Undefined: there is nothing of that kind at or after the offset. Rejects as fromDisk says. */
  seek(kind: "data" | "hole", offset: number): Promise<number | undefined>;
  /**
   * Resolves to how many bytes were written: fewer when the disk became full. Rejects with an FsError: ENOSPC, EDQUOT,
   * EROFS, EFBIG, ESTALE, or as fromDisk says.
   */
  write(handle: HandleId, offset: number, data: Uint8Array): Promise<number>;
  /** Sets the size, in bytes. Call it within CacheFiles.whileTruncating. Rejects as `write` does. */
  truncate(caller: Caller, size: number): Promise<void>;
  /** fallocate(2) with the mode bits of the kernel. Rejects with EOPNOTSUPP, EINVAL, or as `write` does. */
  allocate(mode: number, offset: number, length: number): Promise<void>;
  /** The caller sent a request. If its thread made the file shorter, that thread has gone on and knows the new size. */
  threadWentOn(caller: Pick<Caller, "pid">): void;
  /**
   * Resolves once the thread that made the file shorter has gone on, or has had the time to. True: there was such a
   * thread. Rejects with EINTR.
   */
  untilTruncateKnown(signal: AbortSignal): Promise<boolean>;

  /**
   * Finds writes by passthrough since the last look, and sets the content dirty for them. Rejects with ESTALE,
   * or with the error of the disk or the rows.
   */
  detectWrites(): Promise<void>;
  /** Call it in the same turn as detectWrites ended: while `work` runs, no write counts as undetected. */
  whileStatIsCurrent(work: () => void): void;
  /** Records size and mtime of a written file in the rows. Rejects as `detectWrites` does. */
  persistStat(): Promise<void>;
  /** Makes bytes and name durable, and the row say so. The caller syncs the rows. Rejects as `detectWrites` does. */
  makeDurable(): Promise<void>;
  /** fdatasync. Callers that come while one runs share the next one. Rejects with the error of the disk. */
  sync(): Promise<void>;
  /** Makes the file's name durable, once. Rejects with the error of the disk. */
  syncName(): Promise<void>;
  /** Notes that the name is durable, because the whole disk was synced. */
  nameIsDurable(): void;
  /** Stat of the cache file itself, not of the rows. Rejects with the error of the disk. */
  stat(): Promise<FileStat>;
  /** True: any change made after this stat shows in the file's times. */
  isExact(stat: FileStat): boolean;

  /**
   * Fetches every missing byte, verifies the bytes of the origin, and records both in the row. Rejects with EINTR when
   * `signal` aborts, EACCES when the gateway refuses, ENOSPC when the disk is full, EIO when the bytes cannot be had.
   */
  fetchAll(signal: AbortSignal): Promise<void>;
  /** Fetches a small file before a program reads it. Rejects with EIO when `signal` aborts. */
  prefetchSmall(signal: AbortSignal): Promise<void>;
  /** No version has this content any more: nothing is compared with the origin any more. */
  leaveOriginForGood(): void;

  /** Revokes the write leases of this file: JavaScript hears of the next write and counts it. */
  revokeWriteLeases(): void;
  /** Revokes the write leases and returns `writes`, which any later write changes. Undefined: a write is in flight. */
  beginSnapshot(): number | undefined;
  /**
   * SHA-256 (hex) and size in bytes of a file of about `expected` bytes. For a small file, its bytes too. Undefined: a
   * writer was admitted meanwhile. Rejects when `signal` aborts, or with the error of the disk.
   */
  hash(expected: number, signal: AbortSignal): Promise<{ hash: string; size: number; bytes?: Uint8Array } | undefined>;
  /** Sets the content dirty in the rows and counts a change. `at`: its time. Throws ESTALE: the id is superseded. */
  setContentDirty(at?: ElapsedTime): void;
  /**
   * A snapshot has all written bytes. `isDurable`: they are durable, and no passthrough writer can change them
   * unnoticed.
   */
  setContentClean(isDurable: boolean): void;

  /** An answer about this file alone is about to tell the kernel this size, and this mtime if one is given. */
  shown(size: number, time?: Time): void;
  /** An answer tells the kernel this size, which it may ignore. */
  mayBeShown(size: number): void;
  /** The kernel may have been told any size. */
  shownUnknown(): void;

  /**
   * Counts a handle, unless it rejects. Resolves to the backing id to answer with; undefined: we serve the file.
   * Rejects with ESTALE, or with the error of the disk or the rows.
   */
  attach(write: boolean): Promise<BackingId | undefined>;
  /** Ends a handle that `attach` counted. Call it before the close. */
  detach(write: boolean): void;
  /** Ends one open. Never rejects. */
  close(options: { write: boolean }): Promise<void>;
  /** Replaces `close` for a passthrough writer: closes when the last descriptor and mapping are gone. Never rejects. */
  closePassthrough(): Promise<void>;
}

/** The open cache files, and calls about cache files that need not be open. */
export interface CacheFiles {
  readonly size: number;
  has(kernelNodeId: KernelNodeId): boolean;
  get(kernelNodeId: KernelNodeId): CacheFile | undefined;
  values(): Iterable<CacheFile>;

  /**
   * Opens a cache file. It counts as one open until its close. With `write`, the inode is marked in the rows before
   * this resolves. Rejects with an FsError: ESTALE when the kernel node id is superseded, else as fromDisk says.
   */
  open(
    kernelNodeId: KernelNodeId,
    options: {
      write: boolean;
      /** rowOfNewFile made the row together with the inode, and there is no file yet. */
      isNew?: boolean;
      /** False: the file is opened for an upload, which does not make it count as used in the cache. */
      isUse?: boolean;
    },
  ): Promise<CacheFile>;
  /**
   * Makes the row of a new file. Call it in the transaction that makes the inode. False: `open` has to make the row.
   */
  rowOfNewFile(kernelNodeId: KernelNodeId): boolean;
  /** Runs `work`, which may make the file shorter. The request is answered right after it. Rejects as `work` does. */
  whileTruncating<T>(kernelNodeId: KernelNodeId, work: () => Promise<T>): Promise<T>;
  /** Fetches bytes of one version and does not keep them. Rejects with an FsError, never ENOENT. */
  fetchVersion(
    /** `hash`: SHA-256 of the whole content; null: not known. */
    of: { readonly node: string; readonly version: string; readonly hash: string | null },
    part: { readonly start: number; readonly end: number },
    signal: AbortSignal,
  ): Promise<Uint8Array>;

  /** How many opens for writing the inode's present cache file has. */
  writersOf(inode: Inode): number;
  /**
   * Size in bytes and mtime of a file that a program may have written to; undefined: the rows know them. Rejects with
   * the error of the disk.
   */
  stat(inode: Inode): Promise<{ size: number; mtime: Time } | undefined>;
  /**
   * A program set the mtime: the file gets it where its own time counts. The caller changes the row. Rejects with an
   * FsError: ESTALE, or as fromDisk says.
   */
  setTimes(inode: Inode, mtime: Time): Promise<void>;
  /** The content equals this version too: missing ranges are fetched from it from now on. */
  comesFrom(kernelNodeId: KernelNodeId, origin: { readonly node: string; readonly version: string }): void;

  /**
   * For a takeover: opens the file again, as the earlier daemon had it open. Rejects when it cannot be opened so: with
   * ESTALE, with EIO if its only bytes are gone, or with the error of the disk or the rows.
   */
  resume(
    kernelNodeId: KernelNodeId,
    handles: readonly { write: boolean; backing: BackingId | undefined }[],
  ): Promise<CacheFile>;
  /**
   * For a takeover: opens a file again that a passthrough writer has closed and still has mapped. Rejects as `resume`
   * does.
   */
  resumeMapped(kernelNodeId: KernelNodeId): Promise<CacheFile>;
  /** Runs `work` while nothing else makes, closes or removes the cache file. Rejects as `work` does. */
  alone<T>(kernelNodeId: KernelNodeId, work: () => Promise<T>): Promise<T>;
  /**
   * True: the SHA-256 of the file is `hash`. False also for a file that is large, or that the disk cannot read (EIO).
   * Rejects with another error of the disk, such as ENOENT.
   */
  isStill(inode: Inode, hash: string): Promise<boolean>;
  /**
   * True: no program has the file open for writing or mapped, or there is no such file. Rejects with another error of
   * the disk.
   */
  hasNoWriter(kernelNodeId: KernelNodeId): Promise<boolean>;
  /**
   * Programs of an ended mount may still write to the file: it is left to them, and a copy takes its place. Never
   * rejects: the file stays in its place if it cannot be copied.
   */
  leaveToDetachedWriters(kernelNodeId: KernelNodeId): Promise<void>;

  /** Inodes that have a passthrough writer, or one whose mapping has not ended. */
  passthroughWritten(): InodeId[];
  /** Revokes the write leases of all files. */
  revokeWriteLeases(): void;
  /** The state dir is gone: changed files stay open until closeKept, and are sent from their descriptors. */
  keepOpenForUpload(): void;
  /** Closes the files that keepOpenForUpload kept open. Never rejects. */
  closeKept(): Promise<void>;
  /**
   * Moves a local file without a row into quarantine, or removes it if it is empty. Rejects with the error of the disk;
   * a file that is not there is none.
   */
  quarantine(path: string, name: string): Promise<void>;
  /**
   * Removes files whose rows are gone, which a crash left or the disk refused to remove earlier. Rejects with the error
   * of the rows, or at the end with that of the file that stays; of several files, with an AggregateError.
   */
  removeLeft(): Promise<void>;
  /** Ends timers and background work. Open files stay open. The rows may be closed afterwards. Never rejects. */
  stop(): Promise<void>;
}
