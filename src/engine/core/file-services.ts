/** The services of files/ for other rooms, about files that need not be open. */
import type { ContentSource } from "../../contract/http.ts";
import type { Time } from "../../lib/time.ts";
import type { Attempt, Snapshot } from "../../metadata/attempts.ts";
import type { InodeId, KernelNodeId, NodeRowId, SnapshotId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";

/** Snapshots that exist: where their bytes are, how they end, and how their uploads are cancelled. */
export interface SnapshotFiles {
  /** The bytes, from where they are at this moment. */
  source(snapshot: Snapshot): ContentSource;
  /** It was sent, or is not to be sent. It stays if another attempt will still send it. */
  drop(id: SnapshotId): void;
  /** Removes the row of a snapshot that no attempt needs, and its file if it has one of its own. */
  remove(snapshot: Snapshot): void;
  /** The row says that the snapshot is synced, so its copy must be synced too. */
  syncCopy(path: string): Promise<void>;
  /** Cancels the uploads of content that is older than what was saved by now. */
  yieldToNewer(inode: InodeId): void;
  /** Call it in the transaction in which the name of the row is removed or becomes another file's. */
  cancelUpload(row: NodeRowId): void;
  /** The snapshot cannot be read any more: a new one is taken of what is left of the content. */
  giveUpUnreadable(attempt: Attempt<unknown>): void;
}

/** Orphans and superseded kernel node ids: kept while the kernel, a handle or an upload needs them. */
export interface Orphans {
  /** FORGET. */
  forgotten(lineages: readonly { readonly lineage: KernelNodeId }[]): void;
  /** The kernel is told of the inode. */
  lookedUp(inode: Inode): void;
  /** Removes at once what the kernel forgot. For a takeover: the next daemon would not know of it. */
  dropForgotten(): void;
  /** Superseded bytes go, and an orphan goes, unless something needs them: then later. */
  dropIfUnused(lineage: KernelNodeId): void;
  /** Call it in a transaction. Removes an orphan with its bytes, unless it is open. */
  removeInode(inode: Inode): void;
  /** Removes bytes and rows of a kernel node id that cannot be reached any more, unless it is open or being sent. */
  dropKernelNodeId(lineage: KernelNodeId): void;
  /** The last name of the inode went, and no program here did that: the kernel has to look the name up again. */
  handOver(inode: InodeId): void;
  /** The lookup probe finds those for which no FORGET will come. */
  startProbe(): void;
  stopProbe(): void;
}

/** The dirty-file log says which files hold what only this machine has. */
export interface DirtyFiles {
  /** The content is about to change or has changed, and the rows say so. The log has it after the next flush. */
  dirty(inode: Inode): void;
  /** For when the caller's transaction is committed: the gateway has the content, or it is not wanted any more. */
  clean(lineage: KernelNodeId): void;
  /** The file has another name, or none. */
  named(inode: InodeId): void;
  /** Rewrites the log so that it says what the rows say and nothing else. */
  renew(): Promise<void>;
}

/** Contents that could not be read for sending. */
export interface ReadFailures {
  get(lineage: KernelNodeId): { readonly tries: number; readonly why: string } | undefined;
  /**
   * `inode`: as it was at the try. Returns how many tries have failed; 0: it is other content by now; undefined: the
   * row is parked.
   */
  couldNotRead(row: NodeRow, inode: Inode, error: unknown): number | undefined;
  /** For those who ask why the content is not sent. */
  note(inode: InodeId, lineage: KernelNodeId, error: unknown): void;
  /** The content could be read. */
  ended(lineage: KernelNodeId): void;
  /** Earlier failures do not count any more: the content goes, or a person wants it tried again. */
  forget(inode: Inode): void;
}

/** Times of modification and change, as the rows have them. */
export interface FileTimes {
  /** If no program set it, the time at which the gateway changed the node. */
  mtimeOf(inode: Inode): Time;
  /**
   * The ctime of an inode whose file has this mtime. `known`: the mtime in the rows; `present`: the time by the clock
   * that stamps files.
   */
  ctimeOf(inode: Inode, known: Time, mtime: Time, present: Time): Time;
  /** The content is about to go to another node: it keeps its mtime. Call it in a transaction. */
  pinMtime(inode: InodeId): void;
}
