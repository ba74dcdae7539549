/** The folders that programs look into. They are listed first (remote/poll.ts, ops/prefetch-tree.ts). */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { After, InodeId } from "../../metadata/ids.ts";

/** When a program last looked into a folder, and when the folder was last listed for that reason. */
interface Visit {
  readonly at: ElapsedTime;
  /** Undefined: never. */
  readonly polledAt: ElapsedTime | undefined;
}

export interface PollState {
  /** By folder (an inode), in the order of the visits. */
  readonly visits: Map<InodeId, Visit>;
  /** The folder at which the listing of all folders in turn has arrived. */
  turn: After<InodeId>;
}

export function createPollState(): PollState {
  return { visits: new Map(), turn: 0 };
}
