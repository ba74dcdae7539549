/** One node: what was heard of it (observe), the plan that follows, the steps on this disk, and what answers mean. */
export { acknowledge, refused, type Verdict } from "./acknowledge.ts";
export { advance, type Pending } from "./advance.ts";
export { withHash } from "./content-hash.ts";
export { detachedFiles, pathOf, renameDetached, resolveDetached } from "./detached-files.ts";
export { forgetEchoes, type Source, withRevision } from "./echo.ts";
export { isStandIn } from "./effect.ts";
export { askMoreSeldom, isUntellable, notVisible, readNode, readOrHidden, refreshNode } from "./fetch-node.ts";
export { growthOf } from "./growth.ts";
export {
  askIndexWatermark,
  forgetDeletions,
  noteIndexWatermark,
  positionsNotAhead,
  shownUpTo,
} from "./index-watermark.ts";
export { endLinkLeases } from "./link-groups.ts";
export { listRemovedFolder } from "./list-removed-folder.ts";
export { freeConflictName, moveToConflictName, moveToTemporaryName } from "./name-conflicts.ts";
export { isStaleRead, newestRevision, observeDeletion, observeNode, retryArrivals, revisionOf } from "./observe.ts";
export { keyOfContent, recognizeOwn } from "./own-writes.ts";
export { plan, type Step, type Waiting } from "./plan.ts";
export { distrustContents, NO_BOOT, parkQuarantined, QUARANTINE_REASON, wentDown } from "./power-loss.ts";
export { createQuota, fits } from "./quota.ts";
export { exchangeOf } from "./rename-cycles.ts";
export { isRelistDue } from "./request-relist.ts";
export { areConfirmed, confirmByJournal, isAnyUnconfirmed } from "./unconfirmed.ts";
export { viewOf } from "./view.ts";
