/** The services of upload/ for other rooms. Each method is a flow of this room, whose own file says more. */
import type { RowTime } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { CacheFile, Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { attemptAtOnce } from "./attempt.ts";
import { loginNeeded, openEndedPauseReason, pauseReason } from "./pause-reason.ts";
import { type SnapshotResult, takeSnapshot } from "./snapshot.ts";
import { snapshotAfterSync, snapshotWhenQuiet } from "./snapshot-open.ts";

/** Snapshots of the content that programs write. */
interface Snapshots {
  /**
   * Rejects with an FsError if the bytes cannot be had, or with the signal's reason. `onSnapshot`: runs in the
   * transaction of a new snapshot.
   */
  take(inode: InodeId, signal: AbortSignal, onSnapshot?: () => void): Promise<SnapshotResult>;
  /** Call it in the transaction of a new snapshot: its requests are stored at once. */
  attempt(inode: InodeId): void;
  /** Call it after a change of an open file. */
  whenQuiet(cacheFile: CacheFile): void;
  /** A program called fsync. */
  afterSync(cacheFile: CacheFile): void;
}

/** The reasons for which nothing at all is sent, in words for people. Undefined: rows are sent. */
interface Pauses {
  /** `at`: the row time at which the pause ends by itself. */
  reason(): { readonly why: string; readonly at?: RowTime } | undefined;
  /** The reason, unless the pause ends by itself. */
  openEnded(): string | undefined;
  /** The gateway's words when it refused the token, and the remedy for a person. */
  loginNeeded(): string | undefined;
}

export interface Outgoing {
  readonly snapshots: Snapshots;
  readonly pauses: Pauses;
}

export function createOutgoing(context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync): Outgoing {
  return {
    snapshots: {
      take: (inode, signal, onSnapshot) => takeSnapshot(context, inode, signal, onSnapshot),
      attempt: (inode) => attemptAtOnce(context, inode),
      whenQuiet: (cacheFile) => snapshotWhenQuiet(context, cacheFile),
      afterSync: (cacheFile) => snapshotAfterSync(context, cacheFile),
    },
    pauses: {
      reason: () => pauseReason(context),
      openEnded: () => openEndedPauseReason(context),
      loginNeeded: () => loginNeeded(context),
    },
  };
}
