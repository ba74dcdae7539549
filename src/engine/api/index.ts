/**
 * The interfaces of the engine: what may be asked of it, and what it asks of the kernel side, of the machine and of
 * watchers.
 */
export { type AccountKind, type Accounts, NO_ACCOUNTS } from "./accounts.ts";
export {
  type DetachedFile,
  type DrainProgress,
  type DrainResult,
  type Engine,
  type EngineCondition,
  type EngineStatus,
  OutdatedError,
  type QueueItem,
  type RetryResult,
  StartError,
} from "./engine.ts";
export { FsError, type FsErrorCode, fromDisk } from "./errors.ts";
export { type FastPath, NO_FAST_PATH } from "./fast-path.ts";
export {
  type After,
  type Attributed,
  type Caller,
  type Done,
  type EntryId,
  type FileKind,
  type FileSystem,
  type FolderEntry,
  type Found,
  type HandleId,
  handleId,
  type KernelNodeId,
  kernelNodeId,
  type Mark,
  type NegativeEntry,
  type Opened,
  type OpenFlags,
  type SetAttributes,
  type SpaceInfo,
  type Stat,
} from "./filesystem.ts";
export { countHandles, type HandleTable, type KeptHandle } from "./handle-table.ts";
export { type ChangedName, type KernelCache, type KnownRows, NO_KERNEL_CACHE } from "./kernel-cache.ts";
export { NO_PASSTHROUGH, type Passthrough } from "./passthrough.ts";
export { EVERYTHING, type Place, type Replay, type Replays, type Watched } from "./replay.ts";
