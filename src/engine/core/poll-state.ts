/** Which folders programs look into, for gateways without a journal. */
import type { After, InodeId } from "../../metadata/ids.ts";

interface Visit {
  readonly at: number;
  readonly polledAt: number;
}

export interface PollState {
  /** By folder (an inode), in the order of their visits. */
  readonly visits: Map<InodeId, Visit>;
  /** The last folder listed in turn. */
  turn: After<InodeId>;
}

export function createPollState(): PollState {
  return { visits: new Map(), turn: 0 };
}
