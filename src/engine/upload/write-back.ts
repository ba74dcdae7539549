/**
 * The write-back loop. It takes the rows that are due, the longest due first, lets them advance, takes the snapshots
 * that they need, and sends their requests, as many at a time as the concurrency limit allows. Snapshots (the disk) go
 * some way ahead of requests (the network), so that neither waits for the other. The queue is the table; memory holds
 * only what is in flight or next. A crash at any point loses at most the knowledge of an answer, and the attempt row
 * repeats the request. No turn of the loop is long, however many rows wait. While programs are busy,
 * core/foreground-throttle.ts limits the rows that are begun.
 */
import { setMaxListeners } from "node:events";
import { type ElapsedTime, earlierOf, earliestOf, laterOf, minus, plus, type RowTime } from "../../lib/clocks.ts";
import { sleep, type Timer } from "../../lib/runtime.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { NodeRowId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { PRIORITIES, type Priority } from "../../metadata/priority.ts";
import {
  FOREGROUND_LOOK_MS,
  GROUP_COMMIT_MS,
  type Host,
  type LocalFiles,
  MANY,
  type Remote,
  type Request,
  type Rows,
  scopesOf,
  type Uploads,
} from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { beginAttempt } from "./attempt.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { createExpedite } from "./expedite.ts";
import { openEndedPauseReason, pauseReason } from "./pause-reason.ts";
import { retryPause, send } from "./send.ts";
import { createSlots, priorityOf, type Slot } from "./slots.ts";
import { takeSnapshot } from "./snapshot.ts";
import { createOfflineSnapshots } from "./snapshot-offline.ts";
import { SNAPSHOT_AGAIN_MS } from "./snapshot-times.ts";

/** The concurrency limit at the start. */
const LIMIT_FIRST = 8;
/** Rows looked at in one go. */
const LOOKED_AT = 32;
/** Arrivals (nodes that wait for their name) looked at in one go. */
const ARRIVALS = 20;
/** Requests in flight get this time to finish when the mount ends. */
const GRACE_MS = 2_000;
/** The most rows of each priority class with a snapshot under way, or ready and waiting for a slot. */
const AHEAD: Readonly<Record<Priority, number>> = { small: 128, bulk: 4 };

interface InFlight {
  readonly node: NodeRowId;
  /** Bytes handed to the network so far. */
  readonly sent: number;
}

export interface WriteBack {
  /** Begins the loop. Rows that were waiting when the last mount ended are due at once. */
  start(): void;
  /**
   * No more requests go out. Those in flight are aborted after two seconds. Resolves when all have ended. Never
   * rejects.
   */
  stop(): Promise<void>;
  /** The attempts in flight. */
  inFlight(): InFlight[];
  /** Bytes handed to the network since the start. */
  readonly bytesSent: number;
}

/** Begins work, once the transaction that led to it is committed. */
type Start = () => void;

/** The next work on a row. "send": a request, for which there is no slot yet. */
type Next = { readonly snapshotOf: NodeRow } | { readonly attempt: Attempt<Request> } | "send";

export function createWriteBack(context: Rows & LocalFiles & Remote & Uploads & Host & Tree & Sync): WriteBack {
  const { metadata, runtime, settings, network, activity, foregroundThrottle } = context;
  const limit = createConcurrencyLimit(LIMIT_FIRST, settings.concurrency);
  const slots = createSlots(() => limit.value);
  const expedite = createExpedite(context);
  const busy = new Map<NodeRowId, Promise<void>>();
  /** Rows with something to send, in the order in which they get slots. */
  const ready: Readonly<Record<Priority, Set<NodeRowId>>> = { small: new Set(), bulk: new Set() };
  const snapshotsUnderWay: Record<Priority, number> = { small: 0, bulk: 0 };
  const progress = new Map<NodeRowId, number>();
  const stopped = new AbortController();
  // Each snapshot under way listens to this signal, so there is no limit to the listeners.
  setMaxListeners(0, stopped.signal);
  let isStopping = false;
  let bytesSent = 0;
  let timer: Timer | undefined;
  /** The time for which the next look is set. Undefined: none is. */
  let nextLook: RowTime | undefined;
  /** The time of the next complete look. A look before that only gives the foreground throttle its next turn. */
  let wholeLook: RowTime | undefined;
  let lookedAt: ElapsedTime | undefined;
  /** The time since which requests may be sent. Undefined: they may not. */
  let sendableSince: RowTime | undefined;
  /** The arrival that was tried last. Undefined: the first one is next. */
  let arrivalsTurn: string | undefined;
  /** The number of rows that may be begun in this turn. */
  let room = Number.POSITIVE_INFINITY;
  const unsubscribe: (() => void)[] = [];
  const offlineSnapshots = createOfflineSnapshots(context, async (row) => {
    if (isStopping || busy.has(row.id)) return;
    keepBusy(
      row.id,
      async () => void (await snapshot(row)),
      () => {},
    );
    await busy.get(row.id);
  });

  /**
   * Looks at the table at the row time `at`, or soon if that has passed. Many calls make one look, at the earliest of
   * their times. `isWhole` false: the look only gives the foreground throttle its next turn.
   */
  function lookAt(at?: RowTime, isWhole = true): void {
    const now = runtime.now();
    const time = at === undefined ? now : laterOf(at, now);
    if (isWhole) wholeLook = wholeLook === undefined ? time : earlierOf(wholeLook, time);
    if ((nextLook !== undefined && time >= nextLook) || isStopping) return;
    nextLook = time;
    timer?.cancel();
    // With many requests under way, those that end at about the same moment share one look, and the next ones one
    // commit.
    const since = busy.size < MANY ? undefined : lookedAt;
    const rest = since === undefined ? 0 : Math.ceil(GROUP_COMMIT_MS - minus(runtime.elapsed(), since));
    timer = runtime.setTimer(Math.max(0, minus(time, now), rest), look);
  }

  const lookSoon = () => lookAt();

  function look(): void {
    nextLook = undefined;
    lookedAt = runtime.elapsed();
    if (isStopping) return;
    try {
      if (wholeLook !== undefined && runtime.now() >= wholeLook) {
        wholeLook = undefined;
        if (expedite.goOn()) lookSoon();
        if (context.planner.endLinkLeases()) lookSoon();
        context.detachedFiles.resolve();
        arrivalsTurn = context.observer.retryArrivals(arrivalsTurn, ARRIVALS);
        if (arrivalsTurn !== undefined) lookSoon();
      }
      if (canSend()) {
        sendableSince ??= runtime.now();
        feed();
      } else {
        sendableSince = undefined;
        for (const priority of PRIORITIES) ready[priority].clear();
      }
    } catch (error) {
      context.log.error({ err: error }, "the write-back loop failed, it goes on");
    }
    wakeLater();
    if (wholeLook !== undefined) lookAt(wholeLook);
  }

  const mightSend = () => openEndedPauseReason(context) === undefined;
  const canSend = () => pauseReason(context) === undefined;

  /**
   * True: the disk is in trouble, or unsent content fills more than half of its limit. Programs that make more would
   * soon be refused, so they do not go first.
   */
  function isUrgent(): boolean {
    const { disk, unsent } = context;
    if (disk.trouble !== undefined) return true;
    return disk.unsentLimit !== undefined && (unsent.mostly === undefined || unsent.mostly > disk.unsentLimit / 2);
  }

  /** Decides in one transaction, with the changes that wait for a group commit. The work begins after the commit. */
  function feed(): void {
    const isIdle = busy.size + ready.small.size + ready.bulk.size === 0;
    const starts = context.groupCommit.now(() => {
      room = isUrgent() ? Number.POSITIVE_INFINITY : foregroundThrottle.room(isIdle);
      // Bulk first: it never takes more than its share, and the rest is for small requests.
      return (["bulk", "small"] as const).flatMap(fill);
    });
    for (const start of starts) start();
  }

  /** The work due in one priority class: requests to be repeated, and rows that need a snapshot or are to be sent. */
  function fill(priority: Priority): Start[] {
    const now = runtime.now();
    const repeated = repeat(priority, now);
    let freeSlots = slots.room(priority) - repeated.starts.length;
    const next = nextRows(priority, now, freeSlots, repeated.nodes);
    const starts = next.ids.map((id): Start => {
      const step = begin(priority, id, now, freeSlots > 0);
      if (step === "send") return () => void ready[priority].add(id);
      if (step !== undefined && "attempt" in step) freeSlots -= 1;
      return () => {
        ready[priority].delete(id);
        if (step === undefined) return;
        if ("snapshotOf" in step) runSnapshot(priority, step.snapshotOf);
        else run(priority, id, (slot) => sendAttempt(step.attempt, slot));
      };
    });
    return [...repeated.starts, ...next.taken, ...starts];
  }

  /** The rows that get the free slots, and as many more as are to be made ready next. */
  function nextRows(
    priority: Priority,
    now: RowTime,
    freeSlots: number,
    repeated: ReadonlySet<NodeRowId>,
  ): { ids: NodeRowId[]; taken: Start[] } {
    const sent = [...ready[priority]].slice(0, freeSlots);
    const ahead = snapshotsUnderWay[priority] + ready[priority].size - sent.length;
    // Rows are taken many at a time: they share a sync, and a look at the table.
    if (ahead > AHEAD[priority] / 2 || room === 0) return { ids: sent, taken: [] };
    const wanted = LOOKED_AT + busy.size + repeated.size + ready[priority].size;
    const isUnderWay = (id: NodeRowId) => busy.has(id) || repeated.has(id) || ready[priority].has(id);
    const rows = metadata.nodes.due(priority, now, wanted).filter((id) => !isUnderWay(id));
    const looked = rows.slice(0, Math.min(LOOKED_AT, AHEAD[priority] - ahead, room));
    const [first] = looked;
    const due = (first === undefined ? undefined : metadata.nodes.get(first)?.due) ?? now;
    // A row that waited for the gateway is not late.
    const taken = takeRoom(looked.length, minus(now, laterOf(due, sendableSince ?? now)));
    // The other rows have their turn later, so that other work of this thread comes in between.
    if (rows.length >= LOOKED_AT && room > 0) lookSoon();
    return { ids: [...sent, ...looked], taken };
  }

  function takeRoom(rows: number, lateMs: number): Start[] {
    if (rows === 0) return [];
    room -= rows;
    return [() => foregroundThrottle.begun(rows, lateMs)];
  }

  function repeat(priority: Priority, now: RowTime): { starts: Start[]; nodes: Set<NodeRowId> } {
    const freeSlots = slots.room(priority);
    // Half of the slots are for requests that were not tried yet.
    const left = ready[priority].size === 0 ? 0 : Math.floor(freeSlots / 2);
    const free = Math.min(freeSlots - left, room);
    if (free <= 0) return { starts: [], nodes: new Set() };
    const all = metadata.attempts.due(priority, now, LOOKED_AT + busy.size).filter((node) => !busy.has(node));
    const due = all.slice(0, free);
    const starts = due.map((node): Start => {
      const begun = takeRoom(1, 0);
      return () => {
        for (const tell of begun) tell();
        run(priority, node, async (slot) => {
          const attempt = metadata.attempts.openOf(node);
          if (attempt !== undefined) await sendAttempt(attempt, slot);
        });
      };
    });
    return { starts, nodes: new Set(due) };
  }

  /** The next work on the row. Undefined: nothing, not now, or the row is of the other priority class. */
  function begin(priority: Priority, id: NodeRowId, now: RowTime, hasRoom: boolean): Next | undefined {
    const part = metadata.part(() => {
      const row = metadata.nodes.get(id);
      // The row may have changed while it was ready, and be due later now.
      if (row?.due == null || row.due > now) return undefined;
      const actual = priorityOf(bytesOf(row));
      if (row.priority !== actual) {
        // The row goes on in its own priority class, and keeps its time.
        metadata.nodes.update(row.id, { priority: actual });
        lookSoon();
        if (actual !== priority) return undefined;
      }
      return nextOf(id, hasRoom);
    });
    if ("value" in part) return part.value;
    putOff(id, part.error);
    return undefined;
  }

  /** Tries the row again later. Our code has a mistake, but one row must not keep the others from being sent. */
  function putOff(node: NodeRowId, error: unknown): void {
    context.log.error({ err: error, node }, "write-back of a node failed, it is tried again");
    const later = plus(runtime.now(), retryPause(context, 4));
    const attempt = metadata.attempts.openOf(node);
    if (attempt !== undefined) metadata.attempts.failed(attempt.id, later, String(error));
    if (metadata.nodes.get(node) !== undefined) metadata.nodes.update(node, { due: later });
  }

  function inodeOf(row: NodeRow) {
    const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
    return entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  }

  function bytesOf(row: NodeRow): number {
    const inode = inodeOf(row);
    return inode?.kind === "file" && inode.content !== "clean" ? inode.size : 0;
  }

  function run(priority: Priority, node: NodeRowId, work: (slot: Slot) => Promise<void>): void {
    const slot = slots.enter(priority);
    keepBusy(node, () => work(slot), slot.leave);
  }

  function runSnapshot(priority: Priority, row: NodeRow): void {
    snapshotsUnderWay[priority] += 1;
    const work = async () => {
      if (await snapshot(row)) ready[priority].add(row.id);
    };
    keepBusy(row.id, work, () => {
      snapshotsUnderWay[priority] -= 1;
    });
  }

  function keepBusy(node: NodeRowId, work: () => Promise<void>, then: () => void): void {
    const done = work()
      .catch((error: unknown) => metadata.transaction(() => putOff(node, error)))
      .catch((error: unknown) => context.log.error({ err: error, node }, "the rows cannot be changed"))
      .finally(() => {
        then();
        busy.delete(node);
        lookSoon();
      });
    busy.set(node, done);
  }

  /**
   * Advances the row, and returns the work that is left on it. A request is stored as an attempt already, unless there
   * is no slot for it ("send"). Undefined: nothing, or not now.
   */
  function nextOf(id: NodeRowId, hasRoom: boolean): Next | undefined {
    const pending = context.planner.advance(id);
    if (pending === undefined || pending.step.do === "wait") return undefined;
    if (pending.step.do === "snapshot") return { snapshotOf: pending.row };
    if (!hasRoom) return "send";
    const attempt = beginAttempt(context, pending);
    return attempt === undefined ? undefined : { attempt };
  }

  /** Takes a snapshot. Returns false if there is none; then the row is tried again later, or parked. */
  async function snapshot(row: NodeRow): Promise<boolean> {
    const inode = inodeOf(row);
    if (inode === undefined) return false;
    let due: RowTime;
    try {
      const result = await takeSnapshot(context, inode.id, stopped.signal);
      context.readFailures.ended(inode.kernelNodeId);
      if (result === "quarantined") {
        context.powerLoss.park(row.id);
        return false;
      }
      if (result !== "busy") return true;
      due = plus(runtime.now(), SNAPSHOT_AGAIN_MS);
    } catch (error) {
      if (isStopping) return false;
      const tries = context.readFailures.couldNotRead(row, inode, error);
      if (tries === undefined) return false;
      due = plus(runtime.now(), retryPause(context, tries));
    }
    if (metadata.nodes.get(row.id) !== undefined) metadata.nodes.update(row.id, { due });
    return false;
  }

  async function sendAttempt(attempt: Attempt<Request>, slot: Slot): Promise<void> {
    runtime.step("attempt: in the rows");
    const stop = new AbortController();
    const abort = () => {
      stop.abort();
      slot.stop();
    };
    if (stopped.signal.aborted) abort();
    context.sending.set(attempt.id, abort);
    progress.set(attempt.node, 0);
    network.needs(scopesOf(attempt.request.do));
    let since = runtime.elapsed();
    let wasFull = false;
    try {
      await send(context, attempt, stop.signal, {
        async turn() {
          const isTurn = await slot.turn();
          since = runtime.elapsed();
          wasFull = slots.isFull;
          // If this is false, the request has not gone out, and its row is looked at again.
          return isTurn && !isStopping && canSend();
        },
        progress(sent) {
          bytesSent += sent - (progress.get(attempt.node) ?? 0);
          progress.set(attempt.node, sent);
        },
        over(outcome) {
          const now = runtime.elapsed();
          if (outcome === "tooMuch") limit.tooMuch(since, now);
          // The duration of a bulk request depends on its size, and tells nothing about the gateway.
          else if (outcome === "answered" && attempt.priority === "small")
            limit.answered(now, minus(now, since), wasFull, runtime.worked());
          // The slot is free already, so that other requests can go out while this answer is stored.
          slot.leave();
          lookSoon();
        },
      });
    } finally {
      progress.delete(attempt.node);
      context.sending.delete(attempt.id);
    }
  }

  function wakeLater(): void {
    if (!mightSend()) return;
    const now = runtime.now();
    const pauseMs = network.pauseMs("changes");
    const isLimited = Number.isFinite(room);
    // If rows are in work and no row was left out, every row that is due now is in work, waits for a slot, or has a
    // time of its own. Each row in work causes another look when it ends, so only later times count. If the throttle or
    // a pause left rows out, all times count.
    const isAny = busy.size === 0 || isLimited || pauseMs > 0;
    const first = earliestOf([
      isAny ? metadata.attempts.nextDue() : metadata.attempts.nextAt(now),
      isAny ? metadata.nodes.nextDue() : metadata.nodes.nextDueAfter(now),
      metadata.linkLeases.nextEnd(),
    ]);
    if (first === undefined) return;
    const next = isLimited ? laterOf(first, plus(now, FOREGROUND_LOOK_MS)) : first;
    lookAt(pauseMs === 0 ? next : laterOf(next, plus(now, Math.ceil(pauseMs))), next === first);
  }

  return {
    start() {
      // The mount may have ended while it was still waiting for something at its start.
      if (isStopping) return;
      unsubscribe.push(
        activity.onWake((at) => lookAt(at)),
        activity.onExpedite((folder) => {
          expedite.begin(folder);
          lookSoon();
        }),
      );
      offlineSnapshots.start();
      // Rows that were waiting when the last mount ended are due at once.
      expedite.begin();
      lookSoon();
    },
    async stop() {
      isStopping = true;
      offlineSnapshots.stop();
      for (const end of unsubscribe) end();
      timer?.cancel();
      const allDone = async () => void (await Promise.all(busy.values()));
      // An aborted request without a key may arrive after the next mount has asked for its effect.
      await Promise.race([allDone(), sleep(runtime, GRACE_MS)]);
      stopped.abort();
      for (const abort of context.sending.values()) abort();
      await allDone();
    },
    inFlight: () => [...progress].map(([node, sent]) => ({ node, sent })),
    get bytesSent() {
      return bytesSent;
    },
  };
}
