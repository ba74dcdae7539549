/** Surroundings of the engine: disk, network, clock, and whether anything may be changed. */
export { type Activity, createActivity } from "./activity.ts";
export { createDisk, type Disk, type DiskLimits, type Space } from "./disk.ts";
export { createFreshness, type Freshness, LIVE_MS, SHORT_MS } from "./freshness.ts";
export { limitList } from "./list-limit.ts";
export { createNetwork, mayRefer, type Network, OFFLINE_PATIENCE_MS, retryAfterOf, toFsError } from "./network.ts";
export { createReadOnly, type ReadOnly } from "./read-only.ts";
export { createRowClock, type RowClockRuntime } from "./row-clock.ts";
export { AccessSequences } from "./sequence-detector.ts";
