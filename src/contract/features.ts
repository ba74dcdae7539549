/**
 * The features of a gateway, for profiles, the client and the engine. docs/gateway/profiles.md describes the cost of a
 * lesser gateway.
 */
export interface Features {
  /**
   * The tier. Full: positions, the journal, revisions, conditions, keys of every change and the key of a node's latest
   * change, exchanges, versions, references, history, lists at one position and of one name. Plain (false): the
   * service's specification shows none of these. It does show keys of uploads, so uploads take a key in either tier.
   */
  readonly isFull: boolean;
  /** Parts of a content can be read. */
  readonly ranges: boolean;
  /** Nodes carry the hash of their content. */
  readonly hashes: boolean;
  /** Nodes carry attributes of files: modes, times, links, extended attributes. */
  readonly attributes: boolean;
}

/** The gateway of this contract has all features. */
export const ALL_FEATURES: Features = { isFull: true, ranges: true, hashes: true, attributes: true };

/**
 * The settle time: no gateway lags by more than this. A list without positions is at most this old. An id that answers
 * 404 for this long is gone. A request that was given up has arrived by then, or never will.
 */
export const SETTLE_MS = 5 * 60_000;
