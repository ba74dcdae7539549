/** Which folders programs look into, for gateways without a journal. */

interface Visit {
  readonly at: number;
  readonly polledAt: number;
}

export interface PollState {
  /** By folder (an inode), in the order of their visits. */
  readonly visits: Map<number, Visit>;
  /** The last folder listed in turn. */
  turn: number;
}

export function createPollState(): PollState {
  return { visits: new Map(), turn: 0 };
}
