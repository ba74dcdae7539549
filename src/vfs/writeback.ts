/**
 * The write-back loop: takes rows whose time has come, the longest due first, lets them advance, and
 * sends what is left to send, as many at a time as the gateway takes well. The queue is the table;
 * what is in memory is only what is in flight. A crash at any point loses at most the knowledge of
 * an answer, and the attempt row repeats it. No stretch of it is long, however much waits.
 */
import { setMaxListeners } from "node:events";
import { sleep, type Timer } from "../lib/runtime.ts";
import type { Attempt } from "../metadata/attempts.ts";
import type { NodeRow } from "../metadata/nodes.ts";
import { advance, type Pending } from "./advance.ts";
import { mindClock } from "./clock-set.ts";
import type { Context } from "./context.ts";
import { cutGeneration } from "./cut.ts";
import { OWN_KEY_MS } from "./given-up.ts";
import { createHaste } from "./haste.ts";
import { BULK, createLanes, type Lane, laneOf, SMALL } from "./lanes.ts";
import { createLimit } from "./limit.ts";
import { retryArrivals } from "./observe.ts";
import { parkHeld } from "./power-loss.ts";
import { type Request, scopesOf } from "./request.ts";
import { backoff, send } from "./send.ts";

/** A cut that did not come about (a writer came in between) is tried again after this. */
const RECUT_MS = 1_000;
/** Requests in flight at first. */
const LIMIT_FIRST = 8;
/** Rows looked at in one go. */
const LOOKED_AT = 16;
/** The same of nodes that wait for their name. */
const ARRIVALS = 20;
/** How often keys of requests that were given up are looked through. */
const FORGET_MS = 60_000;
/** What is under way at the end may finish for so long. */
const GRACE_MS = 2_000;
/** Steps of a row in one go: a cut and what it is sent by. Then others have their turn. */
const TURNS_MAX = 3;

export interface InFlight {
  readonly node: number;
  /** Bytes handed to the network. */
  readonly sent: number;
}

export interface WriteBack {
  start(): void;
  /** Nothing new is sent; what is in flight may finish for a moment, then it is aborted and awaited. */
  stop(): Promise<void>;
  /** Attempts in flight. */
  inFlight(): InFlight[];
  /** Bytes handed to the network since the start. */
  readonly bytesSent: number;
}

type Next = { readonly cut: NodeRow } | { readonly attempt: Attempt<Request> };

export function createWriteBack(context: Context): WriteBack {
  const { metadata, runtime, settings, network, activity } = context;
  const lanes = createLanes();
  const limit = createLimit(LIMIT_FIRST, settings.concurrency);
  const haste = createHaste(context);
  const busy = new Map<number, Promise<void>>();
  const progress = new Map<number, number>();
  const stopped = new AbortController();
  // As many listen as requests are in flight.
  setMaxListeners(0, stopped.signal);
  let isStopping = false;
  let bytesSent = 0;
  let timer: Timer | undefined;
  let nextLook = Number.POSITIVE_INFINITY;
  let arrivalsTurn = "";
  let forgotAt = Number.NEGATIVE_INFINITY;
  const unsubscribe: (() => void)[] = [];

  /** Looks at the table at this time, or soon when it has passed. Many calls make one look, at the earliest of their times. */
  function lookAt(time: number): void {
    if (time >= nextLook || isStopping) return;
    nextLook = time;
    timer?.cancel();
    timer = runtime.setTimer(Math.max(0, time - runtime.now()), look);
  }

  const lookSoon = () => lookAt(0);

  function look(): void {
    nextLook = Number.POSITIVE_INFINITY;
    if (isStopping) return;
    try {
      mindClock(context);
      forgetGivenUp();
      if (haste.goOn()) lookSoon();
      arrivalsTurn = retryArrivals(context, arrivalsTurn, ARRIVALS);
      if (arrivalsTurn !== "") lookSoon();
      if (canSend()) feed();
    } catch (error) {
      context.log.error({ err: error }, "the write-back loop failed, it goes on");
    }
    wakeLater();
  }

  function forgetGivenUp(): void {
    if (runtime.elapsed() - forgotAt < FORGET_MS) return;
    forgotAt = runtime.elapsed();
    metadata.attempts.removeAbandonedBefore(runtime.now() - OWN_KEY_MS);
  }

  /** An answer that cannot be written down would be asked for again and again. */
  function mightSend(): boolean {
    const { disk } = context;
    if (!disk.hasRows || disk.trouble === "readOnly") return false;
    return !settings.readOnly && network.isOnline && network.loginNeeded === undefined;
  }

  function canSend(): boolean {
    return mightSend() && network.pauseMs === 0;
  }

  function feed(): void {
    // Bulk first: it never takes more than its share, and the rest is for small things.
    for (const lane of [BULK, SMALL] as const) fill(lane);
  }

  /** What is due on one lane, requests to be repeated and rows to be looked at, in the order of their times. */
  function fill(lane: Lane): void {
    const now = runtime.now();
    let room = lanes.room(lane, limit.value);
    if (room === 0) return;
    const wanted = LOOKED_AT + busy.size;
    const attempts = metadata.attempts.due(lane, now, wanted).filter(({ node }) => !busy.has(node));
    const rows = metadata.nodes.due(lane, now, wanted).filter(({ id }) => !busy.has(id));
    for (let looked = 0; room > 0; looked += 1) {
      // The others have their turn after this, and whoever else uses this thread.
      if (looked === LOOKED_AT) {
        lookSoon();
        return;
      }
      const [attempt] = attempts;
      const [row] = rows;
      const isAttemptFirst = attempt !== undefined && (row === undefined || attempt.nextAt <= row.due);
      if (isAttemptFirst) {
        attempts.shift();
        if (!busy.has(attempt.node)) run(lane, attempt.node, () => sendAttempt(attempt));
      } else if (row !== undefined) {
        rows.shift();
        if (!busy.has(row.id)) begin(lane, row.id);
      } else return;
      room = lanes.room(lane, limit.value);
    }
  }

  function begin(lane: Lane, id: number): void {
    try {
      const row = metadata.nodes.get(id);
      if (row === undefined) return;
      const actual = laneOf(bytesOf(row));
      if (row.bulk !== actual) {
        // It goes on its own lane, with its time.
        metadata.nodes.update(row.id, { bulk: actual });
        lookSoon();
        if (actual !== lane) return;
      }
      const next = nextOf(id);
      if (next !== undefined) run(lane, id, () => carryOut(next));
    } catch (error) {
      putOff(id, error);
    }
  }

  /** A mistake of ours. One row must not keep the others from being sent. */
  function putOff(node: number, error: unknown): void {
    context.log.error({ err: error, node }, "write-back of a node failed, it is tried again");
    try {
      const later = runtime.now() + backoff(context, 4);
      const attempt = metadata.attempts.openOf(node);
      if (attempt !== undefined) metadata.attempts.failed(attempt.id, later, String(error));
      if (metadata.nodes.get(node) !== undefined) metadata.nodes.update(node, { due: later });
    } catch (failure) {
      context.log.error({ err: failure, node }, "the rows cannot be changed");
    }
  }

  function inodeOf(row: NodeRow) {
    const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
    return entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  }

  function bytesOf(row: NodeRow): number {
    const inode = inodeOf(row);
    return inode?.kind === "file" && inode.content !== "clean" ? inode.size : 0;
  }

  function run(lane: Lane, node: number, work: () => Promise<void>): void {
    lanes.enter(lane);
    const done = work()
      .catch((error: unknown) => putOff(node, error))
      .finally(() => {
        lanes.leave(lane);
        busy.delete(node);
        lookSoon();
      });
    busy.set(node, done);
  }

  /** What is to be done for the row beyond this moment; a request is a row already. Undefined: nothing, or not now. */
  function nextOf(id: number): Next | undefined {
    return metadata.transaction(() => {
      const pending = advance(context, id);
      if (pending === undefined || pending.step.do === "wait") return undefined;
      if (pending.step.do === "cut") return { cut: pending.row };
      const attempt = prepare(context, pending);
      return attempt === undefined ? undefined : { attempt };
    });
  }

  async function carryOut(first: Next): Promise<void> {
    let next: Next | undefined = first;
    for (let turn = 0; next !== undefined && turn < TURNS_MAX; turn += 1) {
      if ("attempt" in next) {
        runtime.step("attempt: in the rows");
        return sendAttempt(next.attempt);
      }
      if (!(await cut(next.cut)) || isStopping || !canSend()) return;
      // It took its time: what was to be done then may not be what is to be done now.
      next = nextOf(next.cut.id);
    }
  }

  /** False: it did not come about, and is tried again later. */
  async function cut(row: NodeRow): Promise<boolean> {
    const inode = inodeOf(row);
    if (inode === undefined) return false;
    let due: number;
    try {
      const result = await cutGeneration(context, inode.id, stopped.signal);
      if (result === "held") {
        parkHeld(context, row.id);
        return false;
      }
      if (result !== "busy") return true;
      due = runtime.now() + RECUT_MS;
    } catch (error) {
      if (isStopping) return false;
      due = runtime.now() + backoff(context, 2);
      context.log.warn({ err: error, inode: inode.id }, "the content could not be read for sending, it is tried again");
    }
    if (metadata.nodes.get(row.id) !== undefined) metadata.nodes.update(row.id, { due });
    return false;
  }

  async function sendAttempt(attempt: Attempt<Request>): Promise<void> {
    if (isStopping || !canSend()) return;
    // Abandoned or answered while it waited for its turn.
    if (metadata.attempts.openOf(attempt.node)?.id !== attempt.id) return;
    const stop = new AbortController();
    const abort = () => stop.abort();
    stopped.signal.addEventListener("abort", abort, { once: true });
    context.sending.set(attempt.id, abort);
    progress.set(attempt.node, 0);
    network.needs(scopesOf(attempt.request.do));
    const since = runtime.elapsed();
    const wasFull = lanes.inFlight >= limit.value;
    try {
      const outcome = await send(context, attempt, stop.signal, (sent) => {
        bytesSent += sent - (progress.get(attempt.node) ?? 0);
        progress.set(attempt.node, sent);
      });
      const now = runtime.elapsed();
      if (outcome === "tooMuch") limit.tooMuch(since, now);
      // How long bulk takes says how much it is.
      else if (outcome === "answered" && attempt.bulk === SMALL) limit.answered(now, now - since, wasFull);
    } finally {
      progress.delete(attempt.node);
      stopped.signal.removeEventListener("abort", abort);
      context.sending.delete(attempt.id);
    }
  }

  function wakeLater(): void {
    if (!mightSend()) return;
    const now = runtime.now();
    const { pauseMs } = network;
    // Whoever is in flight looks again when it ends: nothing else can go before that, or it has its own time.
    const times = [
      lanes.inFlight === 0 ? metadata.attempts.nextDue() : metadata.attempts.nextAt(now),
      lanes.inFlight === 0 ? metadata.nodes.nextDue() : metadata.nodes.nextDueAfter(now),
    ];
    const next = Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY));
    lookAt(pauseMs === 0 ? next : Math.max(next, now + Math.ceil(pauseMs)));
  }

  return {
    start() {
      unsubscribe.push(
        activity.onWake(lookAt),
        activity.onHasten((folder) => {
          haste.begin(folder);
          lookSoon();
        }),
      );
      // What was waiting when the last mount ended is looked at at once.
      haste.begin();
      lookSoon();
    },
    async stop() {
      isStopping = true;
      for (const end of unsubscribe) end();
      timer?.cancel();
      const allDone = async () => void (await Promise.all(busy.values()));
      // A request without a key that is broken off may arrive later than the next mount asks about it.
      await Promise.race([allDone(), sleep(runtime, GRACE_MS)]);
      stopped.abort();
      await allDone();
    },
    inFlight: () => [...progress].map(([node, sent]) => ({ node, sent })),
    get bytesSent() {
      return bytesSent;
    },
  };
}

/** The request becomes a row before it is sent. */
function prepare(context: Context, pending: Pending): Attempt<Request> | undefined {
  const { metadata, runtime } = context;
  return metadata.transaction(() => {
    const { row, step } = pending;
    const request =
      step.do === "send" ? step.request : step.do === "unring" ? unring(context, row, step.ifRevision) : undefined;
    if (request === undefined) return undefined;
    const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
    const needsBytes = (request.do === "upload" || request.do === "content") && request.size > 0;
    const generation = needsBytes && entry !== undefined ? metadata.generations.newestOf(entry.inode) : undefined;
    if (needsBytes && generation === undefined) throw new Error(`node row ${row.id} has nothing to send`);
    const now = runtime.now();
    return metadata.attempts.create({
      node: row.id,
      key: runtime.uuid(),
      request,
      generation: generation?.id ?? null,
      nextAt: now,
      createdAt: now,
      bulk: needsBytes ? laneOf(request.size) : SMALL,
    });
  });
}

/** A name nobody uses, in the same folder, for as long as it takes the others of the ring to move. */
function unring(context: Context, row: NodeRow, ifRevision: number): Request | undefined {
  if (row.nodeId === null || row.base?.parent == null) return undefined;
  const name = `.wsfs-moving-${context.runtime.uuid()}`;
  return { do: "patch", nodeId: row.nodeId, ifRevision, parent: row.base.parent, name };
}
