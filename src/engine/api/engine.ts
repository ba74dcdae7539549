/**
 * The engine: a workspace that is synced, without a kernel. `daemon/` starts it, serves it through `fuse/` and asks for
 * its status. The simulation runs the same engine on a virtual clock.
 */
import type { InodeId } from "../../metadata/ids.ts";
import type { FileSystem } from "./filesystem.ts";
import type { Replays } from "./replay.ts";

/** A change that waits to be sent, is being sent, or cannot be sent. */
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
  /** Bytes of content to send. */
  readonly bytes: number;
  /** Bytes of them that were handed to the network. */
  readonly bytesSent: number;
  /** How many times the request was sent. */
  readonly tries: number;
  /** Milliseconds since the node became dirty. */
  readonly ageMs: number;
  /** Milliseconds until the next try; absent when no time is set. */
  readonly nextTryMs?: number;
  /** The last error of the gateway or of the network. */
  readonly error?: string;
}

/** The disk of the state dir. Sizes in bytes. */
interface DiskStatus {
  /**
   * gone: the state dir was removed. broken: the database takes no changes, and the disk does not say why. damaged: the
   * content of the database is damaged.
   */
  readonly state: "ok" | "full" | "readOnly" | "gone" | "broken" | "damaged";
  /** The reason in one line; absent when the state is ok. */
  readonly reason?: string;
  readonly total: number;
  readonly available: number;
  /** The present size of the reserve, which is given up for rows when the disk is full. */
  readonly reserve: number;
  /** Bytes of the disk that the cache leaves free. */
  readonly keepFree: number;
  /** Bytes that may wait to be sent; absent: no limit. */
  readonly unsentLimit?: number;
}

/** A detached file; see sync/detached-files.ts. */
interface DetachedFile {
  /** The path that the file had in the mount, from "/". */
  readonly path: string;
  /** The st_ino of the open file. */
  readonly inode: InodeId;
  /** True: the name was removed. False: the name shows content that was written elsewhere. */
  readonly isRemoved: boolean;
  /** True: programs have written to it since, and there is no snapshot of that yet. */
  readonly isWritten: boolean;
}

export interface EngineStatus {
  readonly workspace: { readonly id: string; readonly name: string };
  /** The folder of the workspace that is the root of the mount; absent when all of it is mounted. */
  readonly folder?: { readonly id: string; readonly name: string };
  /** The past moment (ISO 8601, UTC) that the mount shows; absent when it shows the present. */
  readonly at?: string;
  /** The gateway answered the last request. */
  readonly online: boolean;
  /** The journal is live: all of it is applied, and the gateway was heard of a moment ago. */
  readonly live: boolean;
  /** For how many milliseconds the journal has not been live; absent while it is. */
  readonly staleMs?: number;
  /** Why the journal is not live, in one line. */
  readonly staleWhy?: string;
  /** Why nothing may be changed; absent when changes are allowed. */
  readonly readOnly?: string;
  /** Why nothing is sent although changes are allowed ("login needed: …"); absent while changes are sent. */
  readonly paused?: string;
  /** For how many milliseconds the gateway has not answered; absent while it answers. */
  readonly offlineMs?: number;
  /** How many files and folders are dirty, including those that are being sent. */
  readonly dirty: number;
  /** Requests in flight. */
  readonly uploading: number;
  /** How many files and folders are parked: refused by the gateway, readable here, and waiting for a decision. */
  readonly parked: number;
  /** Bytes that wait to be sent. Of a long queue the sum may be two seconds old; see Engine.measure. */
  readonly bytesPending: number;
  /** Nothing is dirty, and the gateway's path index and journal show every acknowledged change. */
  readonly settled: boolean;
  /** The mount shows all changes up to this position of the journal; absent where the gateway keeps no journal. */
  readonly position?: number;
  /** The name of the history folder when a node has the name .wsfs; null: nodes have all names that it could take. */
  readonly history?: string | null;
  /** Detached files; absent when there are none. */
  readonly overtaken?: readonly DetachedFile[];
  /** Conflict copies made since the mount began. */
  readonly conflicts: number;
  /**
   * `known`: how many names are known here. `rest`: the unknown names. all: there are none, so each folder can be
   * listed offline. ahead: they are read in the background. visited: they are read when a program looks into their
   * folder.
   */
  readonly names: { readonly known: number; readonly rest: "all" | "ahead" | "visited" };
  /** Bytes of all cache files on the disk. */
  readonly cacheBytes: number;
  /** Limit of the cache in bytes. */
  readonly cacheLimit: number;
  /**
   * Present when the database was damaged, or older than the files, when the mount started. `why`: in one line.
   * `files`: how many files were recovered.
   */
  readonly restored?: { readonly why: string; readonly files: number };
  /**
   * In bytes: the limit, the bytes that the gateway holds, and the bytes that unsent changes will add. Absent when the
   * workspace has no quota.
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
  /** How many of the dirty files and folders are parked. */
  readonly parked: number;
  /** Bytes not handed to the network yet. */
  readonly bytesPending: number;
  /** For people: why not everything is sent, with the first change that waits; absent while sending goes on. */
  readonly stuck?: string;
  /** Bytes handed to the network since the drain began. */
  readonly bytesSent: number;
  readonly settled: boolean;
}

export interface DrainResult {
  /** The gateway has everything. */
  readonly drained: boolean;
  /**
   * The first changes that are left, one line each with its reason, and how many more there are; empty when drained.
   */
  readonly left: readonly string[];
}

export interface RetryResult {
  /** How many changes are tried now, or as soon as anything may be sent. */
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
  /** The token was replaced. `scopes`: those of the new token; undefined: the token does not tell them. */
  tokenChanged(scopes: ReadonlySet<string> | undefined): void;
  /** The gateway answered a request of the daemon, perhaps with a refusal. */
  gatewayAnswered(): void;
  /** The database turned out to be damaged: nothing is changed or sent any more. */
  databaseDamaged(damage: Error): void;
  /** The present status. Throws when the rows cannot be read. */
  status(): EngineStatus;
  /** The part of the status whose cost does not grow with the queue. */
  condition(): EngineCondition;
  /**
   * Makes the kernel ask again for every name and attribute. For a takeover: the kernel may remember answers of another
   * daemon.
   */
  expireKernelCache(): void;
  /** Resolves when `bytesPending` of the status is exact. Rejects when the rows cannot be read. */
  measure(): Promise<void>;
  /**
   * At most `limit` changes, in slices: first those being sent, then the parked ones, then the others by age. Throws when
   * the rows cannot be read.
   */
  queue(limit: number): AsyncIterable<QueueItem[]>;
  /**
   * Makes parked, failed and waiting changes due now, also when the gateway asked for a pause. `paths`: only at these
   * paths in the mount ("/a/b") and below. Quarantined contents among them are released. Rejects when the rows cannot be
   * read or changed; changes made until then stay, and it may be called again.
   */
  retry(paths?: readonly string[]): Promise<RetryResult>;
  /**
   * Sends everything that was changed before now, without debounce. Failures of the gateway do not make it reject; an
   * error of the rows does. It ends when:
   * - all changes are acknowledged (with `settle`: and shown by path index and journal);
   * - the signal aborts;
   * - no change that is left can be sent: each was refused, or waits for a refused one.
   *
   * `onProgress` is called at most every 100 ms, and at the end.
   */
  drain(options: {
    settle: boolean;
    signal: AbortSignal;
    onProgress?: (progress: DrainProgress) => void;
  }): Promise<DrainResult>;
  /**
   * Another daemon takes over the mount. Nothing is sent any more. `quiet` must resolve when programs' requests are
   * answered or no longer awaited. Cache files stay open, because programs have them open: the process must end then.
   * Rejects only as `quiet` does.
   */
  leave(quiet: () => Promise<unknown>): Promise<void>;
  /**
   * Stops the loops, aborts requests, syncs and closes everything. Unsent changes are sent after the next start. A last
   * sync that fails is logged. Rejects with the error of the rows, or of the disk when a file cannot be closed;
   * committed changes stay.
   */
  stop(): Promise<void>;
}

/** The mount cannot start. The message is one line for the user. */
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
