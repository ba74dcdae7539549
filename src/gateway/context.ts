/** What every flow of the gateway is handed: its store, blobs, clock and the readers that lag. */
import type { Clock } from "../lib/runtime.ts";
import type { Blobs } from "./blobs.ts";
import type { Lag } from "./lag.ts";
import type { Signal } from "./signal.ts";
import type { SortedLists } from "./sorted-lists.ts";
import type { Store } from "./store.ts";

export interface GatewayOptions {
  /** How long after a change reads by path and listings show it, milliseconds. */
  pathLagMs: number;
  /** How long after a change the journal shows it, milliseconds. */
  journalLagMs: number;
  /** How long after its creation a node is not found by its id, milliseconds. */
  idLagMs: number;
  /** Each answer takes at least this long, milliseconds. */
  latencyMs: number;
  /** Share of requests that fail, 0..1. */
  failRate: number;
  /** Largest content of one version, bytes. */
  maxFileBytes: number;
}

export const DEFAULT_OPTIONS: GatewayOptions = {
  pathLagMs: 0,
  journalLagMs: 0,
  idLagMs: 0,
  latencyMs: 0,
  failRate: 0,
  maxFileBytes: 64 * 2 ** 30,
};

export interface Context {
  readonly clock: Clock;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly options: Readonly<GatewayOptions>;
  readonly pathLag: Lag;
  readonly journalLag: Lag;
  /** Of this store's rows, as long as it is open. */
  readonly lists: SortedLists;
  /** Fired after every transaction, and when options change. */
  readonly news: Signal;
}
