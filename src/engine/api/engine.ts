/**
 * The engine: a workspace that is synced, without a kernel. `daemon/` starts it, serves it through `fuse/` and asks for
 * its status. The simulation runs the same engine on a virtual clock.
 */
import type { InodeId } from "../../metadata/ids.ts";
import type { FileSystem } from "./filesystem.ts";
import type { Replays } from "./replay.ts";

/** A change that waits to be sent, or cannot be sent. */
export interface QueueItem {
  /** Path in the mount, from "/". Of a deletion: the path that the node had. */
  readonly path: string;
  readonly what: "folder" | "upload" | "copy" | "version" | "move" | "attributes" | "delete";
  /**
   * - sending: a request is under way.
   * - due: it is sent as soon as there is a slot.
   * - quiet: it waits for more changes.
   * - open: a program has the file open for writing.
   * - waiting: it waits for something else, see `why`.
   * - retry: it failed; `nextTryMs` says when it is tried again.
   * - parked: the gateway refused it.
   */
  readonly state: "sending" | "due" | "quiet" | "open" | "waiting" | "retry" | "parked";
  /** The state in words, for people. */
  readonly why: string;
  /** Bytes to send, in all. */
  readonly bytes: number;
  readonly bytesSent: number;
  readonly tries: number;
  /** Milliseconds since the node became dirty. */
  readonly ageMs: number;
  /** Milliseconds until the next try. */
  readonly nextTryMs?: number;
  /** The last error of the gateway or of the network. */
  readonly error?: string;
}

/** The disk of the state dir. Sizes in bytes. */
export interface DiskStatus {
  /**
   * broken: the database takes no changes, and the disk does not say why. damaged: the database does not hold what was
   * written to it.
   */
  readonly state: "ok" | "full" | "readOnly" | "gone" | "broken" | "damaged";
  /** The reason in one line; absent when the state is ok. */
  readonly reason?: string;
  readonly total: number;
  readonly available: number;
  /** Size of the reserve as it is now: room for rows, given up when the disk is full. */
  readonly reserve: number;
  /** Bytes of the disk that the cache leaves free. */
  readonly keepFree: number;
  /** Bytes that may wait to be sent; absent: no limit. */
  readonly unsentLimit?: number;
}

/** A file that programs have open for writing while its name went on without it; see sync/detached-files.ts. */
export interface DetachedFile {
  /** The path that the file had in the mount, from "/". */
  readonly path: string;
  /** The st_ino of the open file. */
  readonly inode: InodeId;
  /** True: the name was removed. False: the name shows what was written elsewhere. */
  readonly isRemoved: boolean;
  /** Programs wrote to it since, and no snapshot of that exists yet. */
  readonly isWritten: boolean;
}

export interface EngineStatus {
  readonly workspace: { readonly id: string; readonly name: string };
  /** The folder of the workspace that is the root of the mount; absent when all of it is mounted. */
  readonly folder?: { readonly id: string; readonly name: string };
  /** The moment (ISO 8601, UTC) at which the mount shows everything; absent when it shows what is there now. */
  readonly at?: string;
  /** The gateway answered the last request. */
  readonly online: boolean;
  /** Remote changes are heard of at once: all of the journal is applied, and the journal was heard of a moment ago. */
  readonly live: boolean;
  /** Milliseconds since the journal is not live; absent while it is. */
  readonly staleMs?: number;
  /** Why the journal is not live, in one line. */
  readonly staleWhy?: string;
  /** Why nothing may be changed; absent when changes are allowed. */
  readonly readOnly?: string;
  /** Why nothing is sent although it could be ("login needed: …"); absent when it is sent. */
  readonly paused?: string;
  /** Milliseconds since the gateway does not answer; absent while it does. */
  readonly offlineMs?: number;
  /** Files and folders whose last state the gateway does not have yet, including those being sent. */
  readonly dirty: number;
  /** Requests in flight. */
  readonly uploading: number;
  /** Files and folders that the gateway refused: kept, readable, and waiting for a person's decision. */
  readonly parked: number;
  readonly bytesPending: number;
  /** Nothing is dirty, and the gateway's path index and journal show all that was sent. */
  readonly settled: boolean;
  /** The mount shows all changes up to this position of the journal; absent where the gateway keeps no journal. */
  readonly position?: number;
  /** The name of the history folder where it is not .wsfs, since a node has that name; null: nodes have all its names. */
  readonly history?: string | null;
  /** Detached files; absent when there are none. */
  readonly overtaken?: readonly DetachedFile[];
  /** Conflict copies made since the mount began. */
  readonly conflicts: number;
  /**
   * Names of files and folders that are known here. all: the whole workspace, so that each folder can be listed offline.
   * ahead: the rest is read in the background. visited: the rest is read when a program looks into its folder.
   */
  readonly names: { readonly known: number; readonly rest: "all" | "ahead" | "visited" };
  /** Bytes of all cache files on the disk. */
  readonly cacheBytes: number;
  /** Limit of the cache in bytes. */
  readonly cacheLimit: number;
  /**
   * The database was damaged or older than the files when the mount started. `files`: how many files were recovered.
   */
  readonly restored?: { readonly why: string; readonly files: number };
  /**
   * Bytes: the limit, what the gateway holds, and what it will hold more once all is sent. Absent when the workspace
   * has no quota.
   */
  readonly quota?: { readonly limit: number; readonly used: number; readonly waiting: number };
  /** Absent when the disk is not watched. */
  readonly disk?: DiskStatus;
  /** Age of the oldest unsent change in milliseconds; 0 when there is none. */
  readonly oldestPendingMs: number;
}

/** The part of the status that is cheap to read. */
export type EngineCondition = Pick<EngineStatus, "workspace" | "folder" | "at" | "online" | "readOnly" | "paused">;

/** The progress of a drain. */
export interface DrainProgress {
  readonly dirty: number;
  /** The number of dirty files and folders that the gateway refused. */
  readonly parked: number;
  /** Bytes not handed to the network yet. */
  readonly bytesPending: number;
  /** Why nothing, or not everything, is sent, with the first change that waits; absent while sending goes on. */
  readonly stuck?: string;
  /** Bytes handed to the network since the drain began. */
  readonly bytesSent: number;
  readonly settled: boolean;
}

export interface DrainResult {
  /** The gateway has everything. */
  readonly drained: boolean;
  /** Each change that is left, and the reason, in one line; empty when drained. */
  readonly left: readonly string[];
}

export interface RetryResult {
  /** The number of changes that are tried now, or as soon as anything may be sent. */
  readonly retried: number;
  /** Why nothing is sent at the moment; absent when changes are sent, or will be by themselves within a known time. */
  readonly held?: { readonly why: string } | undefined;
  /** Paths at which nothing waits. */
  readonly unknown: readonly string[];
}

export interface Engine {
  readonly fileSystem: FileSystem;
  /** Remote changes that are replayed for programs that watch. */
  readonly replays: Replays;
  /** mine: every file is shown as owned by the owner of the mount. real: owners are those of the attributes. */
  readonly owners: "mine" | "real";
  /** The token was replaced. `scopes`: what the new token may do; undefined: the token does not say. */
  tokenChanged(scopes: ReadonlySet<string> | undefined): void;
  /** The gateway answered, perhaps with a refusal. */
  gatewayAnswered(): void;
  /** The database turned out to be damaged: nothing is changed or sent any more. */
  databaseDamaged(damage: Error): void;
  /** The status of now. Of a long queue, `bytesPending` may be two seconds old; see `measure`. */
  status(): EngineStatus;
  /** The part of the status whose cost does not grow with the queue. */
  condition(): EngineCondition;
  /**
   * The kernel looks up each name and attribute again. For a takeover: the kernel may remember answers of another
   * daemon.
   */
  expireKernelCache(): void;
  /**
   * Resolves when `bytesPending` of the status is exact. Without it, the sum over a long queue may be two seconds old.
   */
  measure(): Promise<void>;
  /** At most `limit` changes that wait, in slices: those being sent, then the parked ones, then the oldest first. */
  queue(limit: number): AsyncIterable<QueueItem[]>;
  /**
   * Tries now what was refused, failed or waits, also when the gateway asked for a pause. `paths`: only at these paths
   * and below. Quarantined contents among them are released.
   */
  retry(paths?: readonly string[]): Promise<RetryResult>;
  /**
   * Sends everything that was changed before now, without debounce. It ends when:
   * - all of it is acknowledged (with `settle`: and shown by path index and journal);
   * - the signal aborts;
   * - nothing is left that could be sent: only what was refused, what waits for that, and open files.
   */
  drain(options: {
    settle: boolean;
    signal: AbortSignal;
    onProgress?: (progress: DrainProgress) => void;
  }): Promise<DrainResult>;
  /**
   * Another daemon takes over the mount. Nothing is sent any more. `quiet` resolves when programs' requests are
   * answered or no longer awaited. Files stay open, because programs have them open: the process must end now.
   */
  leave(quiet: () => Promise<unknown>): Promise<void>;
  /** Stops the loops, aborts requests, syncs and closes everything. Unsent changes are sent after the next start. */
  stop(): Promise<void>;
}

/** The mount cannot start. The message is one line for the user; the exit code is 1 unless said otherwise. */
export class StartError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StartError";
    this.exitCode = exitCode;
  }
}

/** The state dir was written by a later release, and this release cannot read it. */
export class OutdatedError extends StartError {}
