/**
 * Durability "remote": close and fsync wait until the gateway has the content. If it does not get the content, they
 * fail with the reason.
 */
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { FsError, fromDisk } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import { OFFLINE_PATIENCE_MS } from "../host/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { itemOf } from "./queue-list.ts";

/** Milliseconds between two looks, when a snapshot met a write, or when no progress is announced. */
export const WAIT_LOOK_MS = 250;
/**
 * After this time without a request of the file, the call fails. The file may wait for ever, for instance for a folder
 * that the gateway refused. It is still sent when that is possible.
 */
const STANDSTILL_MS = 60_000;

/**
 * Resolves when the gateway has all bytes that were written before the call, also while the file stays open. Rejects
 * with an FsError:
 * - EINTR: `signal` aborted;
 * - EACCES: a login or scope is lacking, or the gateway forbids it; EROFS: nothing may be changed;
 * - EDQUOT: the workspace is full, or the content is too large for the gateway;
 * - EIO: the gateway does not answer, the request failed several times, or nothing was sent for STANDSTILL_MS;
 * - else as fromDisk says: the content could not be read.
 */
export async function untilGatewayHas(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync & Outgoing,
  inodeId: InodeId,
  signal: AbortSignal,
): Promise<void> {
  const { awaited } = context;
  awaited.set(inodeId, (awaited.get(inodeId) ?? 0) + 1);
  try {
    await context.foregroundThrottle.unthrottled(() => untilItHas(context, inodeId, signal));
  } finally {
    const others = (awaited.get(inodeId) ?? 1) - 1;
    if (others > 0) awaited.set(inodeId, others);
    else awaited.delete(inodeId);
  }
}

async function untilItHas(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync & Outgoing,
  inodeId: InodeId,
  signal: AbortSignal,
): Promise<void> {
  const { metadata, runtime, network, activity } = context;
  let offlineSince: ElapsedTime | undefined;
  let expedited: number | undefined;
  let stoodMs = 0;
  for (;;) {
    if (signal.aborted) throw new FsError("EINTR", "interrupted while the gateway was waited for");
    const inode = metadata.inodes.get(inodeId);
    if (inode === undefined) return;
    const rows = metadata.entries.ofInode(inodeId).flatMap((entry) => metadata.nodes.ofEntry(entry.id) ?? []);
    // A detached file gets a row with its next snapshot.
    const isToBeNamed = inode.content === "dirty" && metadata.detachedFiles.get(inodeId) !== undefined;
    if (!isToBeNamed && rows.every((row) => hasContent(inode, row))) return;
    refuse(context, rows);

    offlineSince = network.isOnline ? undefined : (offlineSince ?? runtime.elapsed());
    if (offlineSince !== undefined && minus(runtime.elapsed(), offlineSince) >= OFFLINE_PATIENCE_MS) {
      throw new FsError("EIO", "the gateway does not answer");
    }
    const isBusy = (await snapshot(context, inode, signal)) === "busy";
    if (!isBusy && expedited !== inode.changes) {
      // Once for each change: after a refusal or failure, the row has its own time for the next try.
      expedited = inode.changes;
      context.queue.enqueueInode(inodeId);
    }
    if (stoodMs >= STANDSTILL_MS) throw new FsError("EIO", `the gateway does not get it: ${reasons(context, rows)}`);
    const before = runtime.elapsed();
    const limit = new AbortController();
    const stop = () => limit.abort();
    signal.addEventListener("abort", stop, { once: true });
    await Promise.race([
      isBusy ? sleep(runtime, WAIT_LOOK_MS, limit.signal) : activity.nextProgress(limit.signal),
      sleep(runtime, WAIT_LOOK_MS, limit.signal),
    ]);
    limit.abort();
    signal.removeEventListener("abort", stop);
    stoodMs = rows.some(({ id }) => metadata.attempts.openOf(id)) ? 0 : stoodMs + minus(runtime.elapsed(), before);
  }
}

/** True: the gateway acknowledged the newest content. Unsent names and attributes do not matter here. */
function hasContent(inode: Inode, row: NodeRow): boolean {
  if (row.base === null) return false;
  return inode.content !== "dirty" || (inode.hash !== null && inode.hash === row.base.hash);
}

/** Throws the error of the call if the content cannot be sent. */
function refuse(context: Rows & Remote & Sync & Outgoing, rows: NodeRow[]): void {
  const { network, metadata, quota } = context;
  const login = context.pauses.loginNeeded();
  if (login !== undefined) throw new FsError("EACCES", login);
  if (context.readOnly.why !== undefined) throw new FsError("EROFS", context.readOnly.why);
  for (const row of rows) {
    if (row.parked !== null) throw new FsError(parkedCode(row.parked), row.parked);
    const scope = row.nodeId === null ? "node.node.create" : "node.node.update";
    if (!network.may(scope)) throw new FsError("EACCES", `the token lacks ${scope}`);
    if (!context.planner.fits(row))
      throw new FsError("EDQUOT", quota.excess(context.planner.growthOf(row)) ?? "over quota");
    const attempt = metadata.attempts.openOf(row.id);
    if (attempt?.lastError != null && attempt.tries >= 3) throw new FsError("EIO", attempt.lastError);
  }
}

function reasons(context: Rows & LocalFiles & Remote & Host & Tree & Sync & Outgoing, rows: NodeRow[]): string {
  return rows.map((row) => itemOf(context, row, undefined).why).join("; ");
}

/** The errno for a parked row, by the gateway's words. */
function parkedCode(reason: string): "EDQUOT" | "EACCES" | "EIO" {
  if (/quota|too large|\b413\b|\b507\b/i.test(reason)) return "EDQUOT";
  return /forbidden|\b403\b/i.test(reason) ? "EACCES" : "EIO";
}

async function snapshot(context: Outgoing, inode: Inode, signal: AbortSignal) {
  try {
    return await context.snapshots.take(inode.id, signal, () => context.snapshots.attempt(inode.id));
  } catch (error) {
    if (signal.aborted)
      throw new FsError("EINTR", "interrupted while the content was read for sending", { cause: error });
    throw fromDisk(error, "the content could not be read for sending");
  }
}
