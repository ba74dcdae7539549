/**
 * Cache files: opened, fetched, written, made durable, evicted; passthrough and the fast path; what the kernel forgot.
 */
export { isUncut, quarantineFile, reopenFile, requireCurrent, rowOfNewFile } from "./backing-file.ts";
export { type Backlog, createBacklog } from "./backlog.ts";
export { cancelUpload, giveUpUnreadable, syncCopy, yieldToNewer } from "./cancel-upload.ts";
export { hasNoWriter, leaveToDetachedWriters, withPassthroughWriters } from "./detached-writers.ts";
export { logClean, logDirty, logNames, renewList } from "./dirty-file-log.ts";
export { despiteFullDisk } from "./disk-room.ts";
export { grantRead } from "./fast-path.ts";
export { prefetchRange, requireChecked, SMALL, untilChecked } from "./fetch.ts";
export { removeLeft } from "./file-removal.ts";
export { isStill } from "./is-unchanged.ts";
export { createLookupProbe } from "./lookup-probe.ts";
export { makeDurable } from "./make-durable.ts";
export { closePassthrough } from "./mapping-wait.ts";
export { comesFrom, leaveOriginForGood } from "./missing-ranges.ts";
export { dropForgottenByKernel, onForget, onLookup } from "./on-forget.ts";
export {
  cacheFileStat,
  closeCacheFile,
  dropKernelNodeId,
  openCacheFile,
  rowsFromFile,
  setCacheFileTimes,
  shown,
  syncName,
  writersOf,
} from "./open-close.ts";
export { dropIfUnused, handOver, removeInode } from "./orphans.ts";
export { admitWriter, attachPassthrough, detachPassthrough } from "./passthrough.ts";
export { threadWentOn, untilTruncateKnown, whileTruncating } from "./pending-truncate.ts";
export { createReader, createWholeReader, fetchAround } from "./readahead.ts";
export { revokeWriteLeases } from "./revoke-leases.ts";
export { setContentClean, setContentDirty } from "./set-dirty.ts";
export { handedDown, isSetGroupId, withoutPrivileges } from "./set-id-bits.ts";
export { dropSnapshot, hashCacheFile, removeSnapshot, snapshotSource } from "./snapshot-source.ts";
export { createSpace, isTight, requireRoom } from "./space.ts";
export { ctimeOf, mtimeOf, pinMtime, withPinnedMtime } from "./times.ts";
export { fetchUncached, fetchVersionRange, layOver, type VersionContent } from "./uncached-read.ts";
export { couldNotRead, forgetFailures, noteUnreadable } from "./unreadable.ts";
export { verify } from "./verify.ts";
export { keepOpenForUpload } from "./without-folder.ts";
export { allocateBytes, truncateBytes, writeBytes } from "./write-bytes.ts";
export { detectWrites, TICK_MS } from "./write-detection.ts";
