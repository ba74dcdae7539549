/**
 * The features of a gateway of this contract, beyond the plainest calls. Another gateway may lack each of them. This is
 * the one list that profiles, the client and the engine share. docs/gateway/profiles.md describes the cost of a missing
 * feature.
 */
export const FEATURES = {
  /** Writes return a position; lists tell up to which position they are complete (`asOf`). */
  positions: "positions of changes and asOf of lists",
  /** The changes after a position can be read. */
  journal: "reading the journal",
  /** Every node counts its changes. */
  revisions: "a revision of each node",
  /** If-Match and If-None-Match are respected. */
  conditions: "conditional requests",
  /** Uploads and new versions take an idempotency key. */
  uploadKeys: "idempotency keys of uploads",
  /** New folders and copies take an idempotency key. */
  folderKeys: "idempotency keys of new folders and copies",
  /** Moves, attributes, exchanges, deletions and restores take an idempotency key. */
  changeKeys: "idempotency keys of moves, attributes, exchanges, deletions and restores",
  /** Two nodes take each other's place in one request, on condition of both revisions. */
  exchanges: "exchanging the places of two nodes in one request",
  /** Nodes tell the key of their latest change. */
  lastKey: "the key of a node's latest change",
  /** Nodes tell the hash of their content. */
  hashes: "the hash of a node's content",
  /** Parts of a content can be read. */
  ranges: "ranges of content",
  /** Earlier versions can be read. */
  versions: "reading earlier versions",
  /**
   * Deleted nodes are listed, the journal can be filtered, a tree can go back to a moment, and a node can come back to
   * another place.
   */
  history: "lists of deleted nodes, filters of the journal, restoring trees",
  /** New content can name a version that the gateway has, instead of sending bytes. */
  references: "content by reference",
  /** Nodes carry attributes of files: modes, times, links, extended attributes. */
  attributes: "attributes of nodes",
  /** Pages of one snapshot, by `after`. */
  snapshots: "pages of one snapshot",
  /** A listing can be asked for a single name. */
  names: "one name of a folder",
} as const;

export type Feature = keyof typeof FEATURES;
export type Features = Readonly<Record<Feature, boolean>>;

export const FEATURE_NAMES = Object.keys(FEATURES) as Feature[];

/** Features that mean nothing without another one. */
export const FEATURE_NEEDS: Readonly<Partial<Record<Feature, Feature>>> = {
  journal: "positions",
  references: "versions",
};

export function everyFeature(value: boolean): Features {
  return Object.fromEntries(FEATURE_NAMES.map((name) => [name, value])) as Record<Feature, boolean>;
}

/** The gateway of this contract has all features. */
export const ALL_FEATURES: Features = everyFeature(true);

/**
 * The settle time: no gateway lags by more than this. A list without positions is at most this old. An id that answers
 * 404 for this long is gone. A request that was given up has arrived by then, or never will.
 */
export const SETTLE_MS = 5 * 60_000;
