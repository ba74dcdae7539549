/** One node: observation of its news, the plan that follows, the steps on this disk, and the effect of answers. */
export type { Verdict } from "./acknowledge.ts";
export type { Pending } from "./advance.ts";
export type { Source } from "./echo.ts";
export { isStandIn } from "./effect.ts";
export { contentOfNode } from "./from-node.ts";
export { shownUpTo } from "./index-watermark.ts";
export type { Step } from "./plan.ts";
export { QUARANTINE_REASON } from "./power-loss.ts";
export { createQuota } from "./quota.ts";
export { createSync, type Sync } from "./services.ts";
