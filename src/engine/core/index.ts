/**
 * What flows are given, in parts (Rows, LocalFiles, Kernel, Remote, Uploads, Host), and the records that live in memory
 * only.
 */
export { type CacheFile, type SnapshotPace, SnapshotPacing } from "./cache-file.ts";
export type { EngineSettings, Handle, Host, Kernel, LocalFiles, Remote, Rows, Uploads } from "./context.ts";
export { dueTime, enqueue, enqueueAfterQuiet, enqueueInode, setInodeDirty, setNodeDirty } from "./enqueue.ts";
export { inBackground, type SnapshotProgress } from "./file-state.ts";
export { isRetryable, retryDelay } from "./foreground-retry.ts";
export { createForegroundThrottle, RIGHT_OF_WAY_LOOK_MS } from "./foreground-throttle.ts";
export { createGroupCommit, MANY, TOGETHER_MS } from "./group-commit.ts";
export { createGroupSync } from "./group-sync.ts";
export { addHandle } from "./handles.ts";
export { hasVersion } from "./has-version.ts";
export {
  type Acknowledgment,
  createAcknowledgedWrites,
  forgetHistory,
  type HistoryPoint,
  isRolledBack,
  lastHistoryPoint,
  noteAcknowledged,
  noteHistoryPoint,
  noteRollback,
  toAsk,
} from "./history.ts";
export {
  byKernelRequest,
  expireAllEntries,
  invalidateKernel,
  negativeUnknown,
  noteListed,
  noteNegative,
} from "./invalidate.ts";
export { createKernelCacheState } from "./kernel-state.ts";
export { createPollState } from "./poll-state.ts";
export type { Quota } from "./quota-state.ts";
export { createReadOrder } from "./read-order.ts";
export { areCreationsKeyed, canExchange, isKeyed, parseRequest, type Request, scopesOf } from "./request.ts";
