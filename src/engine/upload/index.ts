/** Local changes go out: snapshots, the write-back queue, how many requests at a time. */
export { attemptAtOnce } from "./attempt.ts";
export { loginNeeded, openEndedPauseReason, pauseReason } from "./pause-reason.ts";
export { type SnapshotResult, takeSnapshot } from "./snapshot.ts";
export { snapshotAfterSync, snapshotWhenQuiet } from "./snapshot-open.ts";
export { createWriteBack, type InFlight, type WriteBack } from "./write-back.ts";
