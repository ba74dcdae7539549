/** What every flow is given, in parts (Rows, LocalFiles, Kernel, Remote, Uploads, Host), and the records that live in memory only. */
export {
  type Download,
  isLongerThanShown,
  type LiveFile,
  mayBeUnrecorded,
  type Origin,
  type Pace,
  type SequentialReader,
  UNCUT,
} from "./cache-file.ts";
export type { Context, EngineSettings, Handle } from "./context.ts";
export { dueTime, lookAfterQuiet, lookAgain, lookAgainAtInode, markInode, markNode } from "./enqueue.ts";
export { alone, type Cutting, createByteState, inBackground, stopBytes, type Unreadable } from "./file-state.ts";
export { isPassing, tryAgainAfter } from "./foreground-retry.ts";
export { createRightOfWay, RIGHT_OF_WAY_LOOK_MS } from "./foreground-throttle.ts";
export { createTogether, MANY, TOGETHER_MS } from "./group-commit.ts";
export { createSyncTogether } from "./group-sync.ts";
export { addHandle } from "./handles.ts";
export { hasVersion } from "./has-version.ts";
export {
  type Acknowledgment,
  createAcknowledged,
  type Followed,
  forgetPast,
  isPastGone,
  lastFollowed,
  noteAcknowledged,
  noteFollowed,
  notePastGone,
  toAsk,
} from "./history.ts";
export { absentUnknown, asAsked, expireEverything, noteAbsent, noteListed, tellKernel } from "./invalidate.ts";
export { createToldKernel } from "./kernel-state.ts";
export { createPollState } from "./poll-state.ts";
export type { Quota } from "./quota-state.ts";
export { createReadOrder } from "./read-order.ts";
export { areBirthsSigned, canExchange, isKeyed, parseRequest, type Request, scopesOf } from "./request.ts";
