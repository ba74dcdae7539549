/** Builds the engine, and takes over what a crash, power loss or the daemon before has left. */
export type { EngineSettings } from "../core/index.ts";
export type { DiskLimits } from "../host/index.ts";
export { atOnce, ONE_TRY, type RetryBudget, retryAtStart } from "./retry-at-start.ts";
export { type EngineOptions, startEngine } from "./start-engine.ts";
export { notVisible, noWorkspace } from "./which-workspace.ts";
