/** Puts the parts of the engine together, for a start and for tests. A part that needs a later one gets it when it asks. */
import { type KernelCache, NO_KERNEL_CACHE } from "../api/index.ts";
import {
  createMemory,
  type Host,
  type Kernel,
  type LocalFiles,
  type Remote,
  type Rows,
  type Uploads,
} from "../core/index.ts";
import { addLocalFiles } from "../files/index.ts";
import { createPrefetch, type Prefetch } from "../ops/index.ts";
import { createIncoming, type Incoming } from "../remote/index.ts";
import { createSync, type Sync } from "../sync/index.ts";
import { createTree, type Tree } from "../tree/index.ts";
import { createOutgoing, type Outgoing } from "../upload/index.ts";
import { countHandles, NO_ACCOUNTS, NO_FAST_PATH, NO_PASSTHROUGH } from "./absent.ts";
import { createSyncRows } from "./sync-rows.ts";

export interface Parts
  extends Rows,
    LocalFiles,
    Kernel,
    Remote,
    Uploads,
    Host,
    Tree,
    Sync,
    Incoming,
    Outgoing,
    Prefetch {}

type All = Parameters<typeof addLocalFiles>[0];
type Made = keyof ReturnType<typeof createMemory> | "unsent" | "syncRows";
type Late = "replays" | "quota";
type Optional = "accounts" | "passthrough" | "fastPath" | "handleTable";

/** Without an optional one, the machine or the mount does not have it; see absent.ts. */
type Needs = Omit<All, Made | Late | Optional> & { readonly [Name in Late]: () => All[Name] } & {
  readonly [Name in Optional]?: All[Name] | undefined;
} & {
  readonly kernelCache?: KernelCache | undefined;
  /** Makes committed rows durable. */
  readonly syncRows: () => Promise<void>;
};

/** Returns more of the room files/ than Parts shows: tests of that room look into it. */
export function createParts(needs: Needs) {
  const {
    accounts = NO_ACCOUNTS,
    passthrough = NO_PASSTHROUGH,
    fastPath = NO_FAST_PATH,
    handleTable = countHandles(),
    kernelCache = NO_KERNEL_CACHE,
    syncRows,
    replays,
    quota,
    ...rest
  } = needs;
  const withFiles = addLocalFiles({
    ...createMemory({ ...rest, handleTable, kernelCache }),
    ...rest,
    accounts,
    passthrough,
    fastPath,
    handleTable,
    syncRows: createSyncRows(rest.metadata, syncRows),
    unsent: { mostly: undefined },
    get replays() {
      return replays();
    },
    get quota() {
      return quota();
    },
  });
  const withTree = Object.assign(withFiles, createTree(withFiles));
  const withSync = Object.assign(withTree, createSync(withTree));
  const withRemote = Object.assign(withSync, createIncoming(withSync), createOutgoing(withSync));
  return Object.assign(withRemote, createPrefetch(withRemote));
}
