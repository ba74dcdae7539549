/** Makes the state that lives in memory only, and the services of this room. */
import { createSingleFlight } from "../../lib/single-flight.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { HandleTable, KernelCache } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "./context.ts";
import { createWriteQueue } from "./enqueue.ts";
import { FolderUse } from "./folder-use.ts";
import { createForegroundThrottle } from "./foreground-throttle.ts";
import { createGroupCommit } from "./group-commit.ts";
import { createGroupSync } from "./group-sync.ts";
import { Handles } from "./handles.ts";
import { KernelCacheState } from "./invalidate.ts";
import { createPollState } from "./poll-state.ts";
import { createReadOrder } from "./read-order.ts";
import type { Request } from "./request.ts";
import { Timeline } from "./timeline.ts";

/**
 * A list that no program waits for any more pauses, and goes on if a program asks for it within this time. For a very
 * large folder a program may have to ask several times.
 */
const LIST_STANDS_MS = 60_000;

type InMemory = Pick<Rows, "queue" | "groupCommit" | "folderUse"> &
  Pick<LocalFiles, "groupSync" | "snapshotBytes" | "lastSnapshots" | "cancellations"> &
  Pick<Kernel, "kernel" | "handles"> &
  Pick<Remote, "timeline" | "listings" | "readOrder" | "polled" | "notEmpty" | "listingPrefetches" | "treeListings"> &
  Pick<Uploads, "foregroundThrottle" | "sending" | "drains" | "awaited">;

export function createMemory(
  of: Pick<Host, "runtime" | "settings"> &
    Pick<Uploads, "activity"> & {
      readonly metadata: Metadata<Request>;
      readonly handleTable: HandleTable;
      readonly kernelCache: KernelCache;
    },
): InMemory {
  const { metadata, runtime, settings } = of;
  const sending: Uploads["sending"] = new Map();
  return {
    queue: createWriteQueue(of),
    groupCommit: createGroupCommit(runtime, metadata, sending),
    folderUse: new FolderUse(metadata, runtime, settings.lookupProbeMs),
    groupSync: createGroupSync(),
    snapshotBytes: new Map(),
    lastSnapshots: new Map(),
    cancellations: new Map(),
    kernel: new KernelCacheState(of.kernelCache, metadata, runtime),
    handles: new Handles(of.handleTable, runtime),
    timeline: new Timeline(metadata),
    listings: createSingleFlight(runtime, LIST_STANDS_MS),
    readOrder: createReadOrder(),
    polled: createPollState(),
    notEmpty: new Map(),
    listingPrefetches: new Set(),
    treeListings: { count: 0, resets: 0 },
    foregroundThrottle: createForegroundThrottle(runtime, settings.maximumAgeMs),
    sending,
    drains: { count: 0 },
    awaited: new Map(),
  };
}
