/** The context of every flow of the gateway: the store, blobs, clock and the readers that lag. */
import type { Clock } from "../lib/runtime.ts";
import type { Accounts, ApiKeys, Engines } from "./accounts/index.ts";
import type { Births } from "./births.ts";
import type { Blobs } from "./blobs.ts";
import type { EngineQueue } from "./engines/engine-queue.ts";
import { type FaultOptions, faultOptions } from "./fault-options.ts";
import type { Lag } from "./lag.ts";
import type { Signal } from "./signal.ts";
import type { SortedLists } from "./sorted-lists.ts";
import type { Store } from "./store.ts";

export interface GatewayOptions extends FaultOptions {
  /** Largest content of a version, bytes. */
  maxFileBytes: number;
  /** Largest JSON body or metadata part, bytes. */
  maxJsonBytes: number;
}

export const DEFAULT_OPTIONS: GatewayOptions = {
  ...faultOptions.parse({}),
  maxFileBytes: 64 * 2 ** 30,
  maxJsonBytes: 2 ** 20,
};

export interface Context {
  readonly clock: Clock;
  /** A new id for a node or version. */
  readonly newId: () => string;
  readonly store: Store;
  readonly accounts: Accounts;
  readonly apiKeys: ApiKeys;
  /** The registered engines. */
  readonly registered: Engines;
  /** Runs engines. Absent where none can run, as in a simulation. */
  readonly engines: EngineQueue | undefined;
  /** Starts engines by triggers. */
  readonly triggers: { look(workspace: string): void };
  readonly blobs: Blobs;
  readonly options: Readonly<GatewayOptions>;
  readonly pathLag: Lag;
  readonly journalLag: Lag;
  readonly births: Births;
  /** Blobs that are being written, or that no row refers to yet. They must not be collected. */
  readonly staged: Set<string>;
  /**
   * For each copy under way, the position at which it began to read. Versions that were heads then or later must not be
   * thinned.
   */
  readonly copying: Set<{ readonly position: number }>;
  /** Lists of this store's rows, while it is open. */
  readonly lists: SortedLists;
  /** Signals committed journal entries, and changes of the options. */
  readonly news: Signal;
  /** Workspaces that got entries since the last commit. */
  readonly withNews: Set<string>;
}
