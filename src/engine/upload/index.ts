/** What was changed here goes out: snapshots, the queue, how many requests at a time. */
export { attemptAtOnce } from "./attempt.ts";
export { heldBack, heldBackUntilToldOtherwise, loginNeeded } from "./held-back.ts";
export { type CutResult, cutGeneration, makeWhole } from "./snapshot.ts";
export { cutAfterSync, cutWhenQuiet } from "./snapshot-open.ts";
export { createWriteBack, type InFlight, type WriteBack } from "./write-back.ts";
