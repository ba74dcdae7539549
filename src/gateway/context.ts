/** What every flow of the gateway is handed: its store, blobs, clock and the readers that lag. */
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
  /** Largest content of one version, bytes. */
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
  /** A fresh id of a node or version. */
  readonly newId: () => string;
  readonly store: Store;
  readonly accounts: Accounts;
  readonly apiKeys: ApiKeys;
  /** The engines that there are. */
  readonly registered: Engines;
  /** Runs them; absent where none can be run, as in a simulation. */
  readonly engines: EngineQueue | undefined;
  /** Starts engines by triggers. */
  readonly triggers: { look(workspace: string): void };
  readonly blobs: Blobs;
  readonly options: Readonly<GatewayOptions>;
  readonly pathLag: Lag;
  readonly journalLag: Lag;
  readonly births: Births;
  /** Blobs that are being written, or are not referred to yet: not to be collected. */
  readonly staged: Set<string>;
  /** Of each copy under way the position at which it began to read: what was a head there or since is not to be thinned. */
  readonly copying: Set<{ readonly position: number }>;
  /** Of this store's rows, as long as it is open. */
  readonly lists: SortedLists;
  /** Of journal entries, fired when they are committed; and when options change. */
  readonly news: Signal;
  /** Workspaces that got entries since the last commit. */
  readonly told: Set<string>;
}
