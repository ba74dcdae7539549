/**
 * The write-back loop: takes rows whose time has come, lets them advance, and sends what is left to
 * send, a few at a time. The queue is the table; what is in memory is only what is in flight. A
 * crash at any point loses at most the knowledge of an answer, and the attempt row repeats it.
 */
import { setMaxListeners } from "node:events";
import PQueue from "p-queue";
import { sleep, type Timer } from "../lib/runtime.ts";
import type { Attempt } from "../metadata/attempts.ts";
import type { NodeRow } from "../metadata/nodes.ts";
import { advance, type Pending } from "./advance.ts";
import { mindClock } from "./clock-set.ts";
import type { Context } from "./context.ts";
import { cutGeneration } from "./cut.ts";
import { OWN_KEY_MS } from "./given-up.ts";
import { retryArrivals } from "./observe.ts";
import { parkHeld } from "./power-loss.ts";
import type { Request } from "./request.ts";
import { backoff, send } from "./send.ts";

/** A cut that did not come about (a writer came in between) is tried again after this. */
const RECUT_MS = 1_000;
/** Rows taken from the table at once, per place in flight. */
const FEED = 2;
const ARRIVALS = 200;
/** What is under way at the end may finish for so long. */
const GRACE_MS = 2_000;
/** Steps of a row in one go: a cut and what it is sent by. Then others have their turn. */
const TURNS_MAX = 3;

export interface WriteBack {
  start(): void;
  /** Nothing new is sent; what is in flight may finish for a moment, then it is aborted and awaited. */
  stop(): Promise<void>;
  /** Attempts in flight, with the bytes each has handed to the network. */
  inFlight(): { node: number; sent: number }[];
  /** Bytes handed to the network since the start. */
  readonly bytesSent: number;
}

export function createWriteBack(context: Context): WriteBack {
  const { metadata, runtime, settings, network, activity } = context;
  const queue = new PQueue({ concurrency: settings.concurrency });
  const busy = new Set<number>();
  const progress = new Map<number, number>();
  const stopped = new AbortController();
  // As many listen as requests are in flight.
  setMaxListeners(0, stopped.signal);
  let isStopping = false;
  let bytesSent = 0;
  let timer: Timer | undefined;
  let nextLook = Number.POSITIVE_INFINITY;
  let unsubscribe = () => {};

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
      metadata.attempts.removeAbandonedBefore(runtime.now() - OWN_KEY_MS);
      if (metadata.arrivals.count() > 0) retryArrivals(context, ARRIVALS);
      if (canSend()) feed();
    } catch (error) {
      context.log.error({ err: error }, "the write-back loop failed, it goes on");
    }
    wakeLater();
  }

  /** An answer that cannot be written down would be asked for again and again. */
  function canSend(): boolean {
    const { disk } = context;
    if (!disk.hasRows || disk.trouble === "readOnly") return false;
    return !settings.readOnly && network.isOnline && network.loginNeeded === undefined;
  }

  function feed(): void {
    const now = runtime.now();
    const room = settings.concurrency * FEED - busy.size;
    if (room <= 0) return;
    for (const attempt of metadata.attempts.due(now, settings.concurrency * FEED)) {
      if (!busy.has(attempt.node)) run(attempt.node, () => sendAttempt(attempt));
    }
    for (const row of metadata.nodes.due(now, settings.concurrency * FEED + busy.size)) {
      if (busy.size >= settings.concurrency * FEED) break;
      if (!busy.has(row.id)) step(row);
    }
  }

  function step(row: NodeRow): void {
    const pending = advance(context, row.id);
    if (pending === undefined || pending.step.do === "wait") return;
    run(row.id, () => carryOut(row));
  }

  function inodeOf(row: NodeRow) {
    const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
    return entry === undefined ? undefined : metadata.inodes.get(entry.inode);
  }

  function run(node: number, work: () => Promise<void>): void {
    busy.add(node);
    void queue
      .add(work)
      .catch((error: unknown) => context.log.error({ err: error, node }, "write-back of a node failed"))
      .finally(() => {
        busy.delete(node);
        lookSoon();
      });
  }

  async function carryOut(row: NodeRow): Promise<void> {
    // Its turn came later, or a cut took its time: what was to be done then may not be what is to be done now.
    for (let turn = 0; turn < TURNS_MAX && !isStopping && canSend(); turn += 1) {
      const pending = advance(context, row.id);
      if (pending === undefined || pending.step.do === "wait") return;
      if (pending.step.do !== "cut") {
        const attempt = prepare(context, pending);
        runtime.step("attempt: in the rows");
        if (attempt !== undefined) await sendAttempt(attempt);
        return;
      }
      if (!(await cut(pending.row))) return;
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
    const limit = new AbortController();
    const abort = () => limit.abort();
    stopped.signal.addEventListener("abort", abort, { once: true });
    context.sending.set(attempt.id, abort);
    progress.set(attempt.node, 0);
    try {
      await send(context, attempt, limit.signal, (sent) => {
        bytesSent += sent - (progress.get(attempt.node) ?? 0);
        progress.set(attempt.node, sent);
      });
    } finally {
      progress.delete(attempt.node);
      stopped.signal.removeEventListener("abort", abort);
      context.sending.delete(attempt.id);
    }
  }

  function wakeLater(): void {
    if (!canSend()) return;
    const now = runtime.now();
    const times = [
      metadata.attempts.nextAt(now),
      busy.size === 0 ? metadata.nodes.nextDue() : metadata.nodes.nextDueAfter(now),
    ];
    lookAt(Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY)));
  }

  return {
    start() {
      unsubscribe = activity.onWake(lookAt);
      lookSoon();
    },
    async stop() {
      isStopping = true;
      unsubscribe();
      timer?.cancel();
      // A request without a key that is broken off may arrive later than the next mount asks about it.
      await Promise.race([queue.onIdle(), sleep(runtime, GRACE_MS)]);
      stopped.abort();
      await queue.onIdle();
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
    });
  });
}

/** A name nobody uses, in the same folder, for as long as it takes the others of the ring to move. */
function unring(context: Context, row: NodeRow, ifRevision: number): Request | undefined {
  if (row.nodeId === null || row.base?.parent == null) return undefined;
  const name = `.wsfs-moving-${context.runtime.uuid()}`;
  return { do: "patch", nodeId: row.nodeId, ifRevision, parent: row.base.parent, name };
}
