/**
 * The parts that flows take (Rows, LocalFiles, Kernel, Remote, Uploads, Host), and the services and state behind them
 * that live in memory only.
 */
export { type CacheFile, SnapshotPacing } from "./cache-file.ts";
export type { EngineSettings, Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "./context.ts";
export type { SnapshotProgress } from "./file-state.ts";
export { isRetryable, retryDelay } from "./foreground-retry.ts";
export { FOREGROUND_LOOK_MS } from "./foreground-throttle.ts";
export { GROUP_COMMIT_MS, MANY } from "./group-commit.ts";
export type { Handle } from "./handles.ts";
export { hasVersion } from "./has-version.ts";
export { KernelCacheState } from "./invalidate.ts";
export { createMemory } from "./memory.ts";
export type { Quota } from "./quota-state.ts";
export { parseRequest, type Request, scopesOf } from "./request.ts";
