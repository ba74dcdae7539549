/** The local files: opened, fetched, written, made durable, evicted; passthrough and the fast path; what the kernel forgot. */
export { isUncut, reopenFile, requireCurrent, rowOfNewFile, setAside } from "./backing-file.ts";
export { type Backlog, createBacklog } from "./backlog.ts";
export { endUpload, giveUpUnreadable, giveWay, syncCopy } from "./cancel-upload.ts";
export { hasNoWriter, leaveToFormerWriters, passedToWriters } from "./detached-writers.ts";
export { renewList, tellDone, tellNamed, tellWritten } from "./dirty-file-log.ts";
export { despiteFullDisk } from "./disk-room.ts";
export { letRead } from "./fast-path.ts";
export { fetchAhead, requireChecked, SMALL, untilChecked } from "./fetch.ts";
export { removeLeft } from "./file-removal.ts";
export { isStill } from "./is-unchanged.ts";
export { createAskKernel } from "./lookup-probe.ts";
export { makeSafe } from "./make-durable.ts";
export { closePassed } from "./mapping-wait.ts";
export { comesFrom } from "./missing-ranges.ts";
export { dropForgotten, forget, told } from "./on-forget.ts";
export {
  closeLive,
  forgetLineage,
  liveStat,
  openLive,
  rowsFromFile,
  setLiveTimes,
  syncName,
  writersOf,
} from "./open-close.ts";
export { dropIfUnused, handOver, removeInode } from "./orphans.ts";
export { endPassing, letIn, passOn } from "./passthrough.ts";
export { goesOn, untilAnswered, untilHeard } from "./pending-truncate.ts";
export { bringIn, createReader, createWholeReader } from "./readahead.ts";
export { hearWrites } from "./revoke-leases.ts";
export { markWritten } from "./set-dirty.ts";
export { handedDown, isSetGroupId, withoutPrivileges } from "./set-id-bits.ts";
export { dropGeneration, generationSource, hashLive, removeGeneration } from "./snapshot-source.ts";
export { createSpace, isTight, requireRoom } from "./space.ts";
export { ctimeOf, mtimeOf, pinMtime, withPinnedMtime } from "./times.ts";
export { fetchPast, layOver } from "./uncached-read.ts";
export { couldNotRead, forgetFailures, noteUnreadable } from "./unreadable.ts";
export { prove } from "./verify.ts";
export { holdForSending } from "./without-folder.ts";
export { allocateBytes, truncateBytes, writeBytes } from "./write-bytes.ts";
export { noticeWrites, TICK_MS } from "./write-detection.ts";
