/**
 * A workspace at work without a kernel: what `daemon/` starts, serves through `fuse/` and asks for
 * its state. The same engine runs in the simulation on a virtual clock.
 */
import type { InodeId } from "../../metadata/ids.ts";
import type { FileSystem } from "./filesystem.ts";
import type { Replays } from "./replay.ts";

/** One thing that waits to be sent, or cannot be. */
export interface QueueItem {
  /** Path in the mount, from "/"; of a deletion, where it was. */
  readonly path: string;
  readonly what: "folder" | "upload" | "copy" | "version" | "move" | "attributes" | "delete";
  /**
   * due: as soon as there is a place. quiet: waits for more changes. open: some program writes to it.
   * waiting: for something else, see `why`. retry: it failed, `nextTryMs` says when it is tried again.
   */
  readonly state: "sending" | "due" | "quiet" | "open" | "waiting" | "retry" | "parked";
  /** The state in words. */
  readonly why: string;
  readonly bytes: number;
  readonly bytesSent: number;
  readonly tries: number;
  /** Milliseconds since it became dirty. */
  readonly ageMs: number;
  readonly nextTryMs?: number;
  /** What the gateway or the network said last. */
  readonly error?: string;
}

/** The disk of the state dir; sizes in bytes. */
export interface DiskStatus {
  /** broken: the database takes no changes, and the disk does not say why. damaged: the database is not what was written to it. */
  readonly state: "ok" | "full" | "readOnly" | "gone" | "broken" | "damaged";
  /** One line, where it is not ok. */
  readonly reason?: string;
  readonly total: number;
  readonly available: number;
  /** Kept back for rows, as long as the disk is not full. */
  readonly reserve: number;
  /** Left free by the cache. */
  readonly keepFree: number;
  /** As many bytes may wait to be sent. */
  readonly unsentLimit?: number;
}

/** Programs have it open for writing, and its name has gone on without that; see sync/detached-files.ts. */
export interface DetachedFile {
  /** Where it was, in the mount, from "/". */
  readonly path: string;
  /** The st_ino of what they have open. */
  readonly inode: InodeId;
  /** The name was removed; else it shows what was written elsewhere. */
  readonly isRemoved: boolean;
  /** They have written to it since; it is not cut yet. */
  readonly isWritten: boolean;
}

export interface EngineStatus {
  readonly workspace: { readonly id: string; readonly name: string };
  /** The gateway answered the last thing it was asked. */
  readonly online: boolean;
  /** What others change is heard of at once: all the journal shows is here, and it was heard of a moment ago. */
  readonly live: boolean;
  /** How long it has not been so; absent while it is. */
  readonly staleMs?: number;
  /** Why, in one line. */
  readonly staleWhy?: string;
  /** Why nothing may be changed; absent when it may. */
  readonly readOnly?: string;
  /** Why nothing is sent although it could ("login needed: …"); absent when it is. */
  readonly paused?: string;
  /** How long the gateway has not answered; absent while it does. */
  readonly offlineMs?: number;
  /** Files and folders whose last state the gateway does not have yet, those being sent included. */
  readonly dirty: number;
  readonly uploading: number;
  /** Refused by the gateway: kept, readable, waiting for somebody to decide. */
  readonly parked: number;
  readonly bytesPending: number;
  /** The gateway's path index and journal show all that was sent. */
  readonly settled: boolean;
  /** The name of the history folder where it is not .wsfs, since a node has that name; null: nodes have all its names. */
  readonly history?: string | null;
  /** Absent where there are none. */
  readonly overtaken?: readonly DetachedFile[];
  /** Copies kept beside a remote change since the mount began. */
  readonly conflicts: number;
  readonly cacheBytes: number;
  readonly cacheLimit: number;
  /** The database was damaged, or older than its files, when the mount started; `files` were brought back. */
  readonly restored?: { readonly why: string; readonly files: number };
  /** Absent where the workspace has none. Bytes: what it may hold, what it holds, what is to come more. */
  readonly quota?: { readonly limit: number; readonly used: number; readonly waiting: number };
  /** Absent where nobody looks at the disk. */
  readonly disk?: DiskStatus;
  /** Age of the oldest unsent change, 0 when there is none. */
  readonly oldestPendingMs: number;
}

export type EngineCondition = Pick<EngineStatus, "workspace" | "online" | "readOnly" | "paused">;

export interface DrainProgress {
  readonly dirty: number;
  /** Of these, refused by the gateway. */
  readonly parked: number;
  /** Not handed to the network yet. */
  readonly bytesPending: number;
  /** Why nothing is sent, or not all of it, with the first that waits; absent while all goes on. */
  readonly stuck?: string;
  /** Bytes handed to the network since the drain began. */
  readonly bytesSent: number;
  readonly settled: boolean;
}

export interface DrainResult {
  readonly drained: boolean;
  /** What is left, and why, one line each; empty when drained. */
  readonly left: readonly string[];
}

export interface RetryResult {
  /** So many are tried now, or as soon as something may be sent. */
  readonly retried: number;
  /** Why nothing is sent at the moment, and when that is over by itself. */
  readonly held?: { readonly why: string } | undefined;
  /** Paths where nothing waits. */
  readonly unknown: readonly string[];
}

export interface Engine {
  readonly fileSystem: FileSystem;
  /** What others changed, to be told to programs that watch. */
  readonly replays: Replays;
  /** Whose the files are shown as. */
  readonly owners: "mine" | "real";
  /** The token is another one: what it may do. */
  tokenChanged(scopes: ReadonlySet<string> | undefined): void;
  /** The gateway answers, if only with a refusal. */
  gatewayAnswered(): void;
  /** The database turned out to be damaged: no more changes. */
  databaseDamaged(damage: Error): void;
  status(): EngineStatus;
  /** The part of it that costs no more with a long queue. */
  condition(): EngineCondition;
  /** The kernel asks for each name and attribute again: it may hold what another daemon told it. */
  expireKernelCache(): void;
  /** Resolves when `bytesPending` of the status is of now; of a long queue it may be two seconds old. */
  measure(): Promise<void>;
  /** At most `limit` of what waits: what is being sent, what was refused, then the oldest first. In slices. */
  queue(limit: number): AsyncIterable<QueueItem[]>;
  /** Has what was refused, failed or waits tried now: all, or what is at these paths and below. */
  retry(paths?: readonly string[]): Promise<RetryResult>;
  /**
   * Sends everything that was changed before now, without debounce. Ends when all of it is
   * acknowledged (and shown by path index and journal, with `settle`), when the signal aborts, or
   * when nothing is left that could be sent: what was refused, what waits for that, and open files.
   */
  drain(options: {
    settle: boolean;
    signal: AbortSignal;
    onProgress?: (progress: DrainProgress) => void;
  }): Promise<DrainResult>;
  /**
   * A daemon after this one goes on with the mount. Nothing is sent any more; `quiet` resolves when programs' requests
   * are answered or no longer awaited. Files stay open, as programs have them: the process is to end now.
   */
  leave(quiet: () => Promise<unknown>): Promise<void>;
  /** Stops the loops, aborts requests, syncs and closes everything. The rest goes on with the next start. */
  stop(): Promise<void>;
}

/** Why a mount cannot start: one line for the user, and the exit code. */
export class StartError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StartError";
    this.exitCode = exitCode;
  }
}

/** What a later release has left is not for this one. */
export class OutdatedError extends StartError {}
