/** The folders that programs look into. They are listed first (remote/poll.ts, ops/prefetch-tree.ts). */
import type { ElapsedTime } from "../../lib/clocks.ts";
import type { After, InodeId } from "../../metadata/ids.ts";

/** The times at which a program last looked into the folder, and at which it was last listed for that. */
interface Visit {
  readonly at: ElapsedTime;
  /** Undefined: never. */
  readonly polledAt: ElapsedTime | undefined;
}

export interface PollState {
  /** By folder (an inode), in the order of the visits. */
  readonly visits: Map<InodeId, Visit>;
  /** The last folder that was listed in turn. */
  turn: After<InodeId>;
}

export function createPollState(): PollState {
  return { visits: new Map(), turn: 0 };
}
