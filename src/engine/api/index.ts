/**
 * The interfaces of the engine: its calls for other parts of the program, and the calls that it makes to the kernel
 * side, to the machine and to the replayer.
 */
export type { AccountKind, Accounts } from "./accounts.ts";
export {
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
export type { FastPath } from "./fast-path.ts";
export {
  type After,
  type Attributed,
  type Caller,
  type Done,
  type EntryId,
  type EntryName,
  type FileKind,
  type FileSystem,
  type FolderEntry,
  type Found,
  type HandleId,
  handleId,
  type KernelNodeId,
  kernelNodeId,
  type NegativeEntry,
  type Opened,
  type OpenFlags,
  type SetAttributes,
  type SpaceInfo,
  type Stat,
} from "./filesystem.ts";
export type { HandleTable, KeptHandle } from "./handle-table.ts";
export { type ChangedName, type KernelCache, type KnownRows, NO_KERNEL_CACHE } from "./kernel-cache.ts";
export { type BackingId, backingId, type Passthrough } from "./passthrough.ts";
export { EVERYTHING, type Replay, type Replays, type Watched } from "./replay.ts";
