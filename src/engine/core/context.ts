/**
 * What every flow gets: the three drawers, the runtime, and the little that lives in memory only
 * (open handles, what the network is like). Flows take what they need of it and re-read state after
 * every await.
 */
import type { Client } from "../../client/client.ts";
import type { DirtyLog } from "../../content/dirty-log.ts";
import type { Layout } from "../../content/layout.ts";
import type { Workspace } from "../../contract/resources.ts";
import type { Logger } from "../../lib/log.ts";
import type { SingleFlight } from "../../lib/single-flight.ts";
import type { Pass } from "../../metadata/entries.ts";
import type { AttemptId, InodeId, KernelNodeId, SnapshotId } from "../../metadata/ids.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { Accounts, FastPath, HandleId, HandleTable, Passthrough, Replays } from "../api/index.ts";
import type {
  AccessSequences,
  Activity,
  Disk,
  Freshness,
  Network,
  ReadOnly,
  RowClockRuntime,
  Space,
} from "../host/index.ts";
import type { CacheFile, SequentialReader } from "./cache-file.ts";
import type { FileState } from "./file-state.ts";
import type { ForegroundThrottle } from "./foreground-throttle.ts";
import type { GroupCommit } from "./group-commit.ts";
import type { GroupSync } from "./group-sync.ts";
import type { AcknowledgedWrites } from "./history.ts";
import type { KernelCacheState } from "./kernel-state.ts";
import type { PollState } from "./poll-state.ts";
import type { Quota } from "./quota-state.ts";
import type { ReadOrder } from "./read-order.ts";
import type { Request } from "./request.ts";

export interface EngineSettings {
  /** Of the mount: whom a node belongs to whose attributes do not say. */
  readonly owner: { readonly uid: number; readonly gid: number };
  /** mine: all is shown as the owner's of the mount. real: as its attributes say, and makers own what they make. */
  readonly owners: "mine" | "real";
  /** For modes the gateway does not know: 0644 and 0755 less this. */
  readonly umask: number;
  readonly cacheLimit: number;
  /** remote: close and fsync wait for the gateway. */
  readonly durability: "local" | "remote";
  /** Asked for by the user; the token's scopes or the account's role may make it read-only too. */
  readonly readOnly: boolean;
  /** What a person does when the gateway refuses the token, in words. */
  readonly howToLogIn?: string;
  /** In names of conflict copies. */
  readonly hostName: string;
  /** Id of this boot of the machine. */
  readonly boot: string;
  /** A change is sent after this much quiet … */
  readonly debounceMs: number;
  /** … and after this long at the latest. */
  readonly maximumAgeMs: number;
  /** How often the journal is asked for changes. */
  readonly pollMs: number;
  /** Requests in flight for write-back. */
  readonly concurrency: number;
  /** From one round of asking the kernel what it has to the next, no less than a request may take; see ask-kernel.ts. */
  readonly lookupProbeMs?: number;
}

export type Handle =
  | {
      readonly kind: "file";
      readonly live: CacheFile;
      readonly write: boolean;
      readonly append: boolean;
      readonly reader: SequentialReader;
    }
  | {
      readonly kind: "folder";
      readonly inode: InodeId;
      /** What is being listed; undefined before the first readdir. */
      pass: Pass | undefined;
    };

/** What is known: the rows, how changes of them are committed and made durable, and the log of dirty files beside them. */
export interface Rows {
  readonly metadata: Metadata<Request>;
  /** One commit for what the loop changes at about the same moment; see together.ts. */
  readonly groupCommit: GroupCommit;
  /** Makes committed rows survive power loss. */
  readonly syncRows: () => Promise<void>;
  /** Which files programs wrote to, beside the rows; see staged-files.ts. */
  readonly dirtyLog: DirtyLog;
}

/** The local files: those that are open, their bytes on the disk, and the room there. */
export interface LocalFiles {
  /** Open live files by lineage. */
  readonly cacheFiles: Map<KernelNodeId, CacheFile>;
  readonly fileState: FileState;
  readonly paths: Layout;
  readonly passthrough: Passthrough;
  readonly fastPath: FastPath;
  readonly disk: Disk;
  readonly space: Space;
  /** Bytes of small cuts by generation; see small-cuts.ts. */
  readonly snapshotBytes: Map<SnapshotId, Uint8Array>;
  /** Files that are about to be cut, to be synced first; see sync-together.ts. */
  readonly groupSync: GroupSync;
  /** The latest cut of an inode that a writer had open. */
  readonly lastSnapshots: Map<InodeId, { readonly at: number; readonly hash: string }>;
  /** Bytes that wait to be sent, never less than there are; see space.ts. */
  readonly unsent: { mostly: number };
  /** Why the rows were older than the files at the start, and how many files the list of changed ones brought back. */
  readonly restored: { why: string | undefined; files: number };
}

/** What the kernel has of us: what it remembers, open handles, what programs that watch are told. */
export interface Kernel {
  /** What the kernel remembers of us. */
  readonly kernel: KernelCacheState;
  /** How long it may. */
  readonly fresh: Freshness;
  /** What others changed, to be told to programs that watch. */
  readonly replays: Pick<Replays, "mayBeWatched">;
  readonly handles: Map<HandleId, Handle>;
  readonly handleTable: HandleTable;
}

/** The gateway: how it is asked, what is known of its state and of its journal. */
export interface Remote {
  readonly client: Client;
  readonly network: Network;
  /** Folders being listed. */
  readonly listings: SingleFlight<InodeId>;
  /** For gateways that count no changes; see echo.ts. */
  readonly readOrder: ReadOrder;
  /** See past.ts. */
  readonly acknowledgedWrites: AcknowledgedWrites;
  /** Which folders are listed again next; see poll.ts. */
  readonly polled: PollState;
  /** Folders removed here, by node id, that the gateway does not delete because something is in them; see look-inside.ts. */
  readonly notEmpty: Map<string, { readonly since: number; readonly isAsked: boolean }>;
  readonly quota: Quota;
  readonly workspace: Workspace;
  readonly readOnly: ReadOnly;
  /** Folders whose subfolders are looked into one after the other; see folders-ahead.ts. */
  readonly directorySequences: AccessSequences;
  /** Folders that are being listed before anybody asked for them. */
  readonly listingPrefetches: Set<InodeId>;
}

/** What is being sent, who waits for it, and when the queue is looked at again. */
export interface Uploads {
  /** How to stop sending an attempt, by its id. */
  readonly sending: Map<AttemptId, () => void>;
  /** How many drains are under way: they wait for no writer. */
  readonly drains: { count: number };
  /** Inodes for whose content somebody waits until the gateway has it, and how many do: that waits for no writer either. */
  readonly awaited: Map<InodeId, number>;
  /** Whether programs go first. */
  readonly foregroundThrottle: ForegroundThrottle;
  /** How often a writer gave up an upload of this inode in a row. */
  readonly cancellations: Map<InodeId, number>;
  readonly activity: Activity;
}

/** The machine: clock, timers and files, the log, the mount's settings, users. */
export interface Host {
  readonly runtime: RowClockRuntime;
  readonly log: Logger;
  readonly settings: EngineSettings;
  readonly accounts: Accounts;
}

/** All of it, as it is put together at the start; a flow takes the parts it uses. */
export interface Context extends Rows, LocalFiles, Kernel, Remote, Uploads, Host {}
