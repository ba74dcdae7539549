/**
 * The parts that flows take: the three drawers, the runtime, and state in memory only (open handles, the network). A
 * flow takes the parts it uses, and reads state again after every await.
 */
import type { Client } from "../../client/client.ts";
import type { DirtyLog } from "../../content/dirty-log.ts";
import type { Layout } from "../../content/layout.ts";
import type { Workspace } from "../../contract/resources.ts";
import type { RowTime } from "../../lib/clocks.ts";
import type { Logger } from "../../lib/log.ts";
import type { SingleFlight } from "../../lib/single-flight.ts";
import type { AttemptId, InodeId, SnapshotId } from "../../metadata/ids.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Accounts, FastPath, HandleTable, Passthrough, Replays } from "../api/index.ts";
import type { Activity, Disk, Freshness, Network, ReadOnly, RowClockRuntime, Space } from "../host/index.ts";
import type { CacheFiles } from "./cache-file.ts";
import type { DirtyFiles, FileTimes, Orphans, ReadFailures, SnapshotFiles } from "./file-services.ts";
import type { FileState } from "./file-state.ts";
import type { FolderUse } from "./folder-use.ts";
import type { ForegroundThrottle } from "./foreground-throttle.ts";
import type { GroupCommit } from "./group-commit.ts";
import type { GroupSync } from "./group-sync.ts";
import type { Handles } from "./handles.ts";
import type { KernelCacheState } from "./invalidate.ts";
import type { PollState } from "./poll-state.ts";
import type { Quota } from "./quota-state.ts";
import type { ReadOrder } from "./read-order.ts";
import type { Request } from "./request.ts";
import type { Timeline } from "./timeline.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Settings of the mount. Times in milliseconds, sizes in bytes. */
export interface EngineSettings {
  /** The owner of the mount. Nodes whose attributes name no owner belong to this user. */
  readonly owner: { readonly uid: number; readonly gid: number };
  /**
   * mine: every file is shown as owned by the owner of the mount. real: owners are those of the attributes, and a new
   * file belongs to the user that makes it.
   */
  readonly owners: "mine" | "real";
  /** The default modes, 0644 and 0755, lose these bits. They are for nodes whose attributes have no mode. */
  readonly umask: number;
  /** Bytes of the cache. */
  readonly cacheLimit: number;
  /** remote: close and fsync wait until the gateway has the content. */
  readonly durability: "local" | "remote";
  /** The user asked for a read-only mount. The token's scopes or the account's role may make it read-only too. */
  readonly readOnly: boolean;
  /** For people: how to sign in when the gateway refuses the token. */
  readonly howToLogIn?: string;
  /** For the names of conflict copies. */
  readonly hostName: string;
  /** Id of this boot of the machine. */
  readonly boot: string;
  /** A change is sent after this much quiet. */
  readonly debounceMs: number;
  /** A change is sent at the latest after this time, quiet or not. */
  readonly maximumAgeMs: number;
  /** How often the journal is asked for changes. */
  readonly pollMs: number;
  /**
   * How many names are known at most: so many are read in the background, and beyond it those that were not used for
   * longest are dropped. Absent: only the folders that programs look into are listed, and none is dropped.
   */
  readonly namesAhead?: number;
  /** The most requests that write-back has in flight. */
  readonly concurrency: number;
  /**
   * From one round of the lookup probe to the next. It must not be shorter than a request may take; see
   * files/lookup-probe.ts and core/folder-use.ts.
   */
  readonly lookupProbeMs?: number;
}

/**
 * The rows, how changes of them are marked, committed and made durable, and the dirty-file log beside them. A change
 * that the database does not take fails with an FsError: ENOSPC, EROFS or EIO (Disk.commitFailed). Any other error of
 * the database is a SqliteError. Both are called the error of the rows.
 */
export interface Rows {
  readonly metadata: Metadata<Request>;
  /** Marks the rows that are to be sent. */
  readonly queue: WriteQueue;
  /** One commit for changes of the loop that come at about the same moment; see group-commit.ts. */
  readonly groupCommit: GroupCommit;
  /** When programs last used the names of each folder; see folder-use.ts. */
  readonly folderUse: FolderUse;
  /** Makes committed rows and the lines of the dirty-file log durable. Rejects with the error of the sync. */
  readonly syncRows: () => Promise<void>;
  /** The dirty-file log; see files/dirty-file-log.ts. */
  readonly dirtyLog: DirtyLog;
}

/** The local files: the open ones, their bytes on the disk, and the room there. */
export interface LocalFiles {
  /** Open cache files. */
  readonly cacheFiles: CacheFiles;
  readonly fileState: FileState;
  /** Runs work that no flow waits for. A failure is logged, unless the mount ends. */
  readonly background: (what: string, work: () => Promise<void>) => void;
  readonly paths: Layout;
  readonly passthrough: Passthrough;
  readonly fastPath: FastPath;
  readonly disk: Disk;
  readonly space: Space;
  readonly snapshotFiles: SnapshotFiles;
  readonly orphans: Orphans;
  readonly dirtyFiles: DirtyFiles;
  readonly readFailures: ReadFailures;
  readonly fileTimes: FileTimes;
  /** Bytes of small snapshots; see upload/snapshot.ts. */
  readonly snapshotBytes: Map<SnapshotId, Uint8Array>;
  /** Files that wait to be synced before their snapshot; see upload/group-sync.ts. */
  readonly groupSync: GroupSync;
  /** The latest snapshot that was taken of each inode while a writer had it open. */
  readonly lastSnapshots: Map<InodeId, { readonly at: RowTime; readonly hash: string }>;
  /** By inode: how many times in a row its upload was cancelled; see files/cancel-upload.ts. */
  readonly cancellations: Map<InodeId, number>;
  /** An upper bound of the bytes that wait to be sent; undefined: not known yet; see files/space.ts. */
  readonly unsent: { mostly: number | undefined };
}

/**
 * The kernel's side: the answers that it remembers, open handles, and the replay of changes for programs that watch.
 */
export interface Kernel {
  /** The answers that the kernel remembers. */
  readonly kernel: KernelCacheState;
  /** How long the kernel may trust an answer. */
  readonly fresh: Freshness;
  /** Remote changes that are replayed for watching programs. */
  readonly replays: Pick<Replays, "mayBeWatched">;
  readonly handles: Handles;
  readonly handleTable: HandleTable;
}

/** The gateway: how it is asked, and what is known of its state and its journal. */
export interface Remote {
  readonly client: Client;
  readonly network: Network;
  /** Folders that are being listed. */
  readonly listings: SingleFlight<InodeId>;
  /** The order of our reads and writes, for gateways that count no changes; see sync/echo.ts. */
  readonly readOrder: ReadOrder;
  /** The known points of the gateway's timeline; see timeline.ts. */
  readonly timeline: Timeline;
  /** The folders that are listed next; see remote/poll.ts. */
  readonly polled: PollState;
  /**
   * By node id: folders that were removed here and that the gateway does not delete, because they are not empty there;
   * see sync/list-removed-folder.ts.
   */
  readonly notEmpty: Map<string, { readonly since: RowTime; readonly isAsked: boolean }>;
  readonly quota: Quota;
  readonly workspace: Workspace;
  readonly readOnly: ReadOnly;
  /** Folders that are being listed before a program asked for them. */
  readonly listingPrefetches: Set<InodeId>;
  /**
   * The streams of whole trees that are under way; see remote/tree-listing.ts. When `resets` goes up, nodes that a
   * stream read before must not be applied any more.
   */
  readonly treeListings: { count: number; resets: number };
}

/** The requests in flight, the flows that wait for them, and the time of the next look at the queue. */
export interface Uploads {
  /** By attempt: a function that stops sending it. */
  readonly sending: Map<AttemptId, () => void>;
  /** The drains under way. A drain does not wait for writers to close. */
  readonly drains: { count: number };
  /** By inode: how many calls wait until the gateway has its content. They do not wait for writers to close either. */
  readonly awaited: Map<InodeId, number>;
  /** Lets programs go first. */
  readonly foregroundThrottle: ForegroundThrottle;
  readonly activity: Activity;
}

/** The surroundings: clock, timers and files of the machine, the log, the mount's settings, users and groups. */
export interface Host {
  readonly runtime: RowClockRuntime;
  readonly log: Logger;
  readonly settings: EngineSettings;
  readonly accounts: Accounts;
}
