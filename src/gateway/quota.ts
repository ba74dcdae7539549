/**
 * The size and the quota of a workspace. `used` is the size of the present files: of each file its head, on every
 * branch that has one. A program sees that size and can reduce it: deleting makes room, an earlier version costs
 * nothing, and a copy counts like any file although its bytes are shared. It is updated with each change (changes.ts,
 * tree-rows.ts), in the same transaction, and compared with the quota there. So neither two requests at once nor a
 * crash can exceed the quota.
 */
import type { UploadMetadata } from "../contract/resources.ts";
import type { Context } from "./context.ts";
import { findKey } from "./idempotency.ts";
import { MAIN, type NodeRow } from "./node-rows.ts";
import { invalid, overQuota } from "./problems.ts";
import type { Store } from "./store.ts";

/** Stands for each workspace that is not named. */
const ALL = "all";

/** Throws a 400 for a quota of an unknown workspace: it would limit nothing, and most likely the name was mistyped. */
export function checkQuotaNames(store: Store, quota: Readonly<Record<string, number>>): void {
  const names = store.prepare<string>("SELECT name FROM workspace ORDER BY name").pluck().all();
  const unknown = Object.keys(quota).find((name) => name !== ALL && !names.includes(name));
  if (unknown === undefined) return;
  const known = names.map((name) => JSON.stringify(name)).join(", ");
  throw invalid(`quota.${unknown}`, `quota: there is no workspace ${JSON.stringify(unknown)}, only ${known}`);
}

type Needs = Pick<Context, "store" | "options">;

/** Undefined: the workspace has no quota. */
export function quotaOf({ options }: Pick<Context, "options">, name: string): number | undefined {
  const { quota } = options;
  if (Object.hasOwn(quota, name)) return quota[name];
  return Object.hasOwn(quota, ALL) ? quota[ALL] : undefined;
}

/**
 * Within the transaction that adds this many bytes, before anything is written: throws a 507 when they are too many.
 */
export function requireQuota(context: Needs, workspace: string, growth: number): void {
  if (growth <= 0 || Object.keys(context.options.quota).length === 0) return;
  const row = context.store
    .prepare<{ name: string; used: number }>("SELECT name, used FROM workspace WHERE id = ?")
    .get(workspace);
  if (row === undefined) throw new Error(`Workspace ${workspace} is gone.`);
  const quota = quotaOf(context, row.name);
  if (quota !== undefined && row.used + growth > quota) throw overQuota(row.name, { quota, used: row.used, growth });
}

/** Within the transaction that adds this many bytes, or removes them. */
export function addUsed(store: Store, workspace: string, growth: number): void {
  store.prepare("UPDATE workspace SET used = used + ? WHERE id = ?").run(growth, workspace);
}

/** Returns the size of the own head of the branch, which new content on the branch replaces. */
export function headSize(store: Store, row: NodeRow, branch: string = MAIN): number {
  if (branch === MAIN) return row.size ?? 0;
  const head = store.prepare<{ size: number }>(
    "SELECT size FROM version WHERE node = ? AND branch = ? AND branch <> 'main' ORDER BY number DESC LIMIT 1",
  );
  return head.get(row.id, branch)?.size ?? 0;
}

/** Returns the size of all heads of the file: it leaves and comes back with the file. */
export function headSizes(store: Store, row: NodeRow): number {
  const others = store.prepare<{ size: number }>(
    `SELECT coalesce(sum(size), 0) AS size FROM version v WHERE node = ? AND branch <> 'main' AND number =
       (SELECT max(number) FROM version WHERE node = v.node AND branch = v.branch AND branch <> 'main')`,
  );
  return (row.size ?? 0) + (others.get(row.id)?.size ?? 0);
}

/** The number of bytes after which an upload is judged again. */
const JUDGED_BYTES = 256 * 1024;

/** Destination of an upload. */
export interface Destination {
  readonly workspace: string;
  /** The file that exists now. */
  readonly existing: NodeRow | undefined;
}

/**
 * Judges an upload while it comes in, so that an excess need not be stored: throws when the minimum size known so far
 * is too much. An upload whose key is known is not judged, because it gets its first answer. `requireQuota` decides
 * whether it fits in the end.
 */
export function earlyQuota(
  context: Needs,
  destination: () => Destination,
  { idempotencyKey: key, branch }: UploadMetadata,
): (atLeast: number) => void {
  if (Object.keys(context.options.quota).length === 0) return () => {};
  const judge = (atLeast: number) => {
    const { workspace, existing } = destination();
    if (key != null && findKey(context, workspace, key) !== undefined) return;
    const replaced = existing === undefined ? 0 : headSize(context.store, existing, branch);
    requireQuota(context, workspace, atLeast - replaced);
  };
  let judged = Number.NEGATIVE_INFINITY;
  return (atLeast) => {
    if (atLeast < judged) return;
    // Judged again, because meanwhile a request with its key may have been carried out, or the file that it replaces
    // may exist.
    judge(atLeast);
    judged = atLeast + JUDGED_BYTES;
  };
}
