/** Waits until the gateway has everything that was changed before now, and lists the changes that cannot be sent. */
import { type ElapsedTime, minus, type RowTime } from "../../lib/clocks.ts";
import { sleep } from "../../lib/runtime.ts";
import type { DetachedFileRow } from "../../metadata/detached-files.ts";
import type { InodeId, NodeRowId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { DrainProgress, DrainResult } from "../api/index.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import type { Backlog } from "../files/index.ts";
import type { Step, Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing, WriteBack } from "../upload/index.ts";
import { itemOf, pausedKinds } from "./queue-list.ts";
import { WAIT_LOOK_MS } from "./until-remote.ts";

/** Milliseconds between two reports of progress, except the last. */
const REPORT_MS = 100;
/** At most this many rows are made due at once although they could wait longer. */
const EXPEDITED_ROWS = 500;
/**
 * Milliseconds. A row that is refused again and again would be sent without a pause. So rows are made due ever more
 * seldom while none is done, with no longer pause than this.
 */
const EXPEDITE_MAX_MS = 10_000;
/** With more rows left than this, there is no look at each progress, but only one every WAIT_LOOK_MS. */
const FEW = 500;
/** If nothing was acknowledged or under way for this time, the rest waits for refused changes. */
const STALLED_MS = 10_000;
const LEFT_LINES = 20;
/** After this time without progress the report says for what the first row waits. */
const QUIET_MS = 3_000;

interface DrainOptions {
  /** Also wait until everything is settled. */
  readonly settle: boolean;
  /** The drain ends when it aborts, with changes left. */
  readonly signal: AbortSignal;
  /** Called at most every 100 ms, and at the end. */
  readonly onProgress?: (progress: DrainProgress) => void;
}

/**
 * Resolves when everything that was changed before now is at the gateway, when no change that is left can be sent, or
 * when the signal aborts. `left` lists the changes that are not there. Failures of the gateway do not make it reject.
 * Rejects with the error of the rows.
 */
export async function drain(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync & Outgoing,
  writeBack: WriteBack,
  backlog: Pick<Backlog, "bytes">,
  options: DrainOptions,
): Promise<DrainResult> {
  context.drains.count += 1;
  try {
    return await context.foregroundThrottle.unthrottled(() => drainAll(context, writeBack, backlog, options));
  } finally {
    context.drains.count -= 1;
  }
}

async function drainAll(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync & Outgoing,
  writeBack: WriteBack,
  backlog: Pick<Backlog, "bytes">,
  options: DrainOptions,
): Promise<DrainResult> {
  const { metadata, runtime, activity } = context;
  const start = runtime.now();
  const sentBefore = writeBack.bytesSent;
  activity.expedite();
  runtime.step("drain: begun");
  const withSnapshot = new Set<InodeId>();
  let settled = false;
  let reportedAt: ElapsedTime | undefined;
  let expeditedAt: ElapsedTime | undefined;
  let leftBefore: number | undefined;
  let movedAt = runtime.elapsed();
  let doneAt = movedAt;
  let progressBefore: string | undefined;
  let progressAt = movedAt;
  for (;;) {
    // Not at each progress: a refusal is progress too.
    const pause = Math.min(EXPEDITE_MAX_MS, Math.max(WAIT_LOOK_MS, minus(runtime.elapsed(), doneAt)));
    if (expeditedAt === undefined || minus(runtime.elapsed(), expeditedAt) >= pause) {
      expeditedAt = runtime.elapsed();
      metadata.nodes.expedite(runtime.now(), EXPEDITED_ROWS);
      activity.wake();
    }
    await snapshotOpenFiles(context, start, withSnapshot, options.signal);
    const { dirty, parked } = metadata.nodes.countDirtyBefore(start);
    const left = dirty - countAfterSnapshot(context, start) + unnamedOf(context, start).length;
    if (left === 0 && options.settle && !settled) settled = await isSettled(context, options.signal);
    // After a rollback, contents that the gateway lost are not counted as dirty yet.
    const isDone = left === 0 && (settled || !options.settle) && !context.timeline.isRolledBack();
    if (left !== leftBefore) doneAt = runtime.elapsed();
    if (left !== leftBefore || isUnderWay(context, writeBack)) movedAt = runtime.elapsed();
    leftBefore = left;
    const isRefused = parked > 0 || context.readOnly.why !== undefined || pausedKinds(context).length > 0;
    const isStuck = left > 0 && (left === parked || (isRefused && minus(runtime.elapsed(), movedAt) >= STALLED_MS));
    const isReportDue = reportedAt === undefined || minus(runtime.elapsed(), reportedAt) >= REPORT_MS;
    if (isDone || isStuck || isReportDue) {
      reportedAt = runtime.elapsed();
      const bytesSent = writeBack.bytesSent - sentBefore;
      const progress = `${left} ${parked} ${bytesSent}`;
      if (progress !== progressBefore) progressAt = runtime.elapsed();
      progressBefore = progress;
      const isQuiet = minus(runtime.elapsed(), progressAt) >= QUIET_MS;
      const stuck =
        left > 0
          ? whatIsStuck(context, writeBack, start, parked, isQuiet)
          : isDone
            ? undefined
            : context.timeline.isRolledBack()
              ? "the gateway's data were set back: it is asked what it still has"
              : context.pauses.reason()?.why;
      const underWay = writeBack.inFlight().reduce((sum, { sent }) => sum + sent, 0);
      options.onProgress?.({
        dirty: left,
        parked,
        bytesPending: Math.max(0, backlog.bytes() - underWay),
        bytesSent,
        settled,
        ...(stuck === undefined ? {} : { stuck }),
      });
    }
    if (isDone) runtime.step("drain: done");
    if (isDone) return { drained: true, left: [] };
    if (isStuck || options.signal.aborted) return { drained: false, left: describe(context, writeBack, start, left) };
    const limit = new AbortController();
    const stop = () => limit.abort();
    options.signal.addEventListener("abort", stop, { once: true });
    const look = sleep(runtime, WAIT_LOOK_MS, limit.signal);
    await (left > FEW ? look : Promise.race([activity.nextProgress(limit.signal), look]));
    limit.abort();
    options.signal.removeEventListener("abort", stop);
  }
}

/**
 * True: something is being sent, will be sent again, is being written, or could be sent if the gateway answered. The
 * drain waits for it.
 */
function isUnderWay(context: Rows & LocalFiles & Remote & Outgoing, writeBack: WriteBack): boolean {
  if (writeBack.inFlight().length > 0) return true;
  if (context.readOnly.why !== undefined) return false;
  if (context.metadata.attempts.nextDue() !== undefined) return true;
  if (context.network.isUndecided) return true;
  if ([...context.cacheFiles.values()].some(({ writers }) => writers > 0)) return true;
  return context.pauses.reason() !== undefined;
}

function whatIsStuck(
  context: Rows & LocalFiles & Remote & Host & Tree & Sync & Outgoing,
  writeBack: WriteBack,
  start: RowTime,
  parked: number,
  isQuiet: boolean,
): string | undefined {
  const lineOf = (row: NodeRow) => line(context, writeBack, row);
  const pauseReason = context.pauses.reason()?.why;
  const reasons = [...(pauseReason === undefined ? [] : [pauseReason]), ...pausedKinds(context)];
  if (parked > 0) reasons.push([`${parked} parked`, ...context.metadata.nodes.parked(1).map(lineOf)].join(": "));
  if (isQuiet && reasons.length === 0) reasons.push(...unsent(context, start).slice(0, 1).map(lineOf));
  return reasons.length === 0 ? undefined : reasons.join("; ");
}

/** The path of a row, and why it still waits. */
function line(
  context: Rows & LocalFiles & Remote & Host & Tree & Sync & Outgoing,
  writeBack: WriteBack,
  row: NodeRow,
): string {
  const sent = writeBack.inFlight().find(({ node }) => node === row.id)?.sent;
  const { path, why } = itemOf(context, row, sent);
  return `${path}: ${why}`;
}

/**
 * Counts rows that are dirty only because of writes after the snapshot that this drain took: the gateway has that
 * snapshot, and the file is still open for writing.
 */
function countAfterSnapshot(context: Rows & LocalFiles & Sync, start: RowTime): number {
  const { metadata, cacheFiles } = context;
  const rows = new Set<NodeRowId>();
  for (const cacheFile of cacheFiles.values()) {
    if (cacheFile.writers === 0) continue;
    for (const entry of metadata.entries.ofInode(cacheFile.inode)) {
      const row = metadata.nodes.ofEntry(entry.id);
      if (row !== undefined && isAfterSnapshot(context, row, cacheFile.inode, start)) rows.add(row.id);
    }
  }
  return rows.size;
}

function isAfterSnapshot(context: Rows & LocalFiles & Sync, row: NodeRow, inode: InodeId, start: RowTime): boolean {
  const { metadata, lastSnapshots } = context;
  if (row.dirtySince === null || row.dirtySince > start || row.parked !== null || row.nodeId === null) return false;
  if (metadata.attempts.openOf(row.id) !== undefined) return false;
  // A remote change would hide the local one in the step, and the drain does not wait for it. So `seen` is left out.
  const step = context.planner.step({ ...row, seen: null });
  if (step.do === "nothing") return true;
  const snapshot = lastSnapshots.get(inode);
  const hasArrived = snapshot !== undefined && snapshot.at >= start && row.base?.hash === snapshot.hash;
  return hasArrived && isForWriter(step);
}

const isForWriter = (step: Step) => step.do === "wait" && step.for === "writer";

function inodeOf(context: Rows, row: NodeRow) {
  const entry = row.entry === null ? undefined : context.metadata.entries.get(row.entry);
  return entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
}

/**
 * Takes one snapshot of each file that is open for writing. A file that is being written, or cannot be sent yet, is
 * tried again at the next look.
 */
async function snapshotOpenFiles(
  context: Rows & LocalFiles & Host & Tree & Sync & Outgoing,
  start: RowTime,
  done: Set<InodeId>,
  signal: AbortSignal,
): Promise<void> {
  for (const cacheFile of [...context.cacheFiles.values()]) {
    const { inode } = cacheFile;
    if (cacheFile.writers === 0 || done.has(inode) || signal.aborted) continue;
    try {
      await cacheFile.detectWrites();
      if (cacheFile.isContentDirty && !isSent(context, inode, start) && wantsSnapshot(context, inode)) {
        await context.snapshots.take(inode, signal, () => context.snapshots.attempt(inode));
      }
      if (isSent(context, inode, start)) done.add(inode);
    } catch (error) {
      context.log.warn({ err: error, inode }, "no snapshot of an open file could be taken");
    }
  }
}

/** True: content that the file had when the drain began, or later, is at all its nodes or on its way there. */
function isSent(
  { metadata, lastSnapshots, nodeRows }: Rows & LocalFiles & Tree,
  inode: InodeId,
  start: RowTime,
): boolean {
  const snapshot = lastSnapshots.get(inode);
  if (snapshot === undefined || snapshot.at < start) return false;
  return nodeRows.ofInode(inode).every(({ id, base }) => {
    const request = metadata.attempts.openOf(id)?.request;
    return (
      base?.hash === snapshot.hash || (request !== undefined && "hash" in request && request.hash === snapshot.hash)
    );
  });
}

/** Detached files that were written before the drain began and have no snapshot since. They have no node row yet. */
function unnamedOf({ metadata }: Rows, start: RowTime): DetachedFileRow[] {
  const isUnsent = ({ inode, dirtySince }: DetachedFileRow) =>
    dirtySince !== null && dirtySince <= start && metadata.inodes.get(inode)?.content === "dirty";
  return metadata.detachedFiles.all().filter(isUnsent);
}

/** True: the file waits for nothing but a snapshot. */
function wantsSnapshot(context: Rows & Tree & Sync, inode: InodeId): boolean {
  if (context.metadata.detachedFiles.get(inode) !== undefined) return true;
  return context.nodeRows.ofInode(inode).some((row) => {
    const step = context.planner.step(row);
    return step.do === "snapshot" || isForWriter(step);
  });
}

/** True: the gateway's path index and journal show every acknowledged change. False also when a question failed. */
export async function isSettled(context: Rows & Remote & Sync, signal: AbortSignal): Promise<boolean> {
  const { metadata, client, network } = context;
  const { settings } = metadata;
  // Without positions there is no way to find out.
  if (!client.features.isFull) return true;
  const isInJournal = () => settings.getNumber("cursor") >= settings.getNumber("written");
  const isIndexed = () => settings.getNumber("indexed") >= settings.getNumber("written");
  if (!isInJournal()) return false;
  if (isIndexed() && !context.shown.isAnyUnconfirmed()) return true;
  // A gateway that throttles, and counts refused requests too, would throttle for ever if it were asked.
  if (network.pauseMs("listNodes") > 0) return false;
  try {
    if (!(await context.shown.areConfirmed(signal))) return false;
    if (!isIndexed()) await context.shown.ask(signal);
  } catch (error) {
    network.failed(error);
    return false;
  }
  return isInJournal() && isIndexed() && !context.shown.isAnyUnconfirmed();
}

function describe(
  context: Rows & LocalFiles & Remote & Host & Tree & Sync & Outgoing,
  writeBack: WriteBack,
  start: RowTime,
  count: number,
): string[] {
  if (count === 0) return ["the gateway's index does not show everything yet"];
  const rows = unsent(context, start);
  const unnamed = unnamedOf(context, start).map(
    (one) => `${context.detachedFiles.pathOf(one)}: written here after it was changed elsewhere, and open still`,
  );
  const lines = [...rows.map((row) => line(context, writeBack, row)), ...unnamed];
  return count > lines.length ? [...lines, `and ${count - lines.length} more`] : lines;
}

/** The first unsent rows that were changed before the drain began: the parked ones, then the others by age. */
function unsent(context: Rows & LocalFiles & Sync, start: RowTime): NodeRow[] {
  const { nodes } = context.metadata;
  const isUnsent = (row: NodeRow) => {
    const inode = inodeOf(context, row);
    return (
      inode === undefined ||
      context.cacheFiles.writersOf(inode) === 0 ||
      !isAfterSnapshot(context, row, inode.id, start)
    );
  };
  const parked = nodes.parked(LEFT_LINES);
  const others = nodes.dirty(LEFT_LINES * 2 + context.cacheFiles.size).filter((row) => row.parked === null);
  return [...parked, ...others]
    .filter((row) => (row.dirtySince === null || row.dirtySince <= start) && isUnsent(row))
    .slice(0, LEFT_LINES);
}
