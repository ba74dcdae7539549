/** Builds the engine, and recovers from a crash, from power loss or from an earlier daemon. */
export type { EngineSettings } from "../core/index.ts";
export type { DiskLimits } from "../host/index.ts";
export { createParts } from "./parts.ts";
export { recoverContents } from "./recover.ts";
export { atOnce, ONE_TRY, type RetryBudget, retryAtStart } from "./retry-at-start.ts";
export { type EngineOptions, startEngine } from "./start-engine.ts";
export { findRoot, viewKey } from "./view.ts";
export { notVisible, noWorkspace } from "./which-workspace.ts";
