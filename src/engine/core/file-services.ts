/** The services of files/ for other rooms. None of them needs an open file. */
import type { ContentSource } from "../../contract/http.ts";
import type { Time } from "../../lib/time.ts";
import type { Attempt, Snapshot } from "../../metadata/attempts.ts";
import type { InodeId, KernelNodeId, NodeRowId, SnapshotId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";

/** Snapshots that exist: where their bytes are, how they end, and how their uploads are cancelled. */
export interface SnapshotFiles {
  /** Reads the bytes from wherever they are at this moment. Reading fails with the error of the disk. */
  source(snapshot: Snapshot): ContentSource;
  /** The snapshot was sent, or is not wanted any more. It stays if another attempt will still send it. */
  drop(id: SnapshotId): void;
  /** Removes the row of a snapshot that no attempt needs, and its file if it has one of its own. */
  remove(snapshot: Snapshot): void;
  /**
   * Syncs the copy of a snapshot at this path, because the row says that the snapshot is synced. Rejects with the error
   * of the disk.
   */
  syncCopy(path: string): Promise<void>;
  /** Cancels the uploads of older content of this inode: newer content was saved. */
  yieldToNewer(inode: InodeId): void;
  /** Call it in the transaction in which the name of the row is removed or becomes another file's. */
  cancelUpload(row: NodeRowId): void;
  /** The snapshot cannot be read any more: a new one is taken of the content that is left. */
  giveUpUnreadable(attempt: Attempt<unknown>): void;
}

/** Orphans and superseded kernel node ids: kept while the kernel, a handle or an upload needs them. */
export interface Orphans {
  /** FORGET: the kernel forgot these kernel node ids. Never fails. */
  forgotten(kernelNodeIds: readonly { readonly kernelNodeId: KernelNodeId }[]): void;
  /** An answer is about to tell the kernel of the inode. */
  lookedUp(inode: Inode): void;
  /**
   * Removes forgotten orphans at once. For a takeover: the next daemon would not know that they were forgotten. Never
   * fails: a removal that the rows do not take is tried again.
   */
  dropForgotten(): void;
  /** Removes superseded bytes, or an orphan, now or as soon as nothing needs them any more. */
  dropIfUnused(kernelNodeId: KernelNodeId): void;
  /** Call it in a transaction. Removes an orphan with its bytes, unless it is open. */
  removeInode(inode: Inode): void;
  /** Removes bytes and rows of a kernel node id that cannot be reached any more, unless it is open or being sent. */
  dropKernelNodeId(kernelNodeId: KernelNodeId): void;
  /**
   * The inode lost its last name, and no program here removed it. The inode gets a new kernel node id, so that the
   * kernel looks the name up again.
   */
  renewIfOrphan(inode: InodeId): void;
  /** Starts the lookup probe, which finds the orphans and kernel node ids for which no FORGET will come. */
  startProbe(): void;
  stopProbe(): void;
}

/** The dirty-file log names the files that hold bytes the gateway does not have. */
export interface DirtyFiles {
  /** The content is about to change or has changed, and the rows say so. The log has it after the next flush. */
  dirty(inode: Inode): void;
  /**
   * The gateway has the content, or it is not wanted any more. This may be called in the transaction that says so: the
   * log is written later, if the rows still say so then.
   */
  clean(kernelNodeId: KernelNodeId): void;
  /** The file has another name, or none. */
  named(inode: InodeId): void;
  /** Rewrites the log from the rows. Never rejects: a failure is logged, and the log stays as it was. */
  renew(): Promise<void>;
}

/** Contents that could not be read for sending. */
export interface ReadFailures {
  get(kernelNodeId: KernelNodeId): { readonly tries: number; readonly why: string } | undefined;
  /**
   * `inode`: as it was at the try. Returns how many tries to read its present content have failed: none, if it has
   * other content by now. Undefined: the row was parked.
   */
  couldNotRead(row: NodeRow, inode: Inode, error: unknown): number | undefined;
  /** Notes a failure, so that the queue can say why the content is not sent. */
  note(inode: InodeId, kernelNodeId: KernelNodeId, error: unknown): void;
  /** The content could be read. */
  ended(kernelNodeId: KernelNodeId): void;
  /** Forgets earlier failures: the content is removed, or a person wants it tried again. */
  forget(inode: Inode): void;
}

/** Times of modification and change, as the rows have them. */
export interface FileTimes {
  /** The mtime that a program set; if none did, the time at which the gateway changed the node. */
  mtimeOf(inode: Inode): Time;
  /**
   * The ctime of an inode whose file has this mtime. `known`: the mtime in the rows. `present`: the time now, by the
   * clock that stamps files.
   */
  ctimeOf(inode: Inode, known: Time, mtime: Time, present: Time): Time;
  /** The content is about to go to another node: it keeps its mtime. Call it in a transaction. */
  pinMtime(inode: InodeId): void;
}
