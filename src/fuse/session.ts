/**
 * The kernel's end of a mount: takes messages from the device, finds their row in the table of opcodes, lets the file
 * system answer, and sends the reply. Every request is answered exactly once: by its handler, or with EIO when its
 * deadline has passed. No message and no error of a handler ends the loop. It knows no operation but INIT, INTERRUPT
 * and DESTROY.
 */

import { type Done, type FileSystem, FsError, type KernelNodeId } from "../engine/api/index.ts";
import { minus } from "../lib/clocks.ts";
import { deferred } from "../lib/deferred.ts";
import { describeError, type Logger } from "../lib/log.ts";
import type { Device, OpenDevice } from "./device.ts";
import { ERRNO, type ErrorName, errorName } from "./errno.ts";
import { ROOT_NODE } from "./flags.ts";
import { type Clock, createInFlightTable, InFlight } from "./in-flight.ts";
import { type Connection, type InitRequest, negotiate, type Wishes } from "./init.ts";
import { LITTLE_ENDIAN, viewOf } from "./layout.ts";
import { idsIn, MalformedError, type Message, MIN_ANSWERABLE, opcodeOf, parseMessage } from "./message.ts";
import { notifyResend } from "./notifications.ts";
import {
  DESTROY_ROW,
  INIT_ROW,
  INTERRUPT_ROW,
  type OfSession,
  OPERATIONS,
  type Operation,
  type Served,
  takesReply,
} from "./opcodes.ts";
import { createOperationLog, summary } from "./operation-log.ts";
import { type Parts, withHeader } from "./replies.ts";
import { OUT_HEADER } from "./reply-structs.ts";
import type { WireVersion } from "./requests.ts";
import { createCrashSuspects, NOTHING_KEPT, type RequestsInHand } from "./requests-in-hand.ts";

export interface SessionOptions {
  readonly device: OpenDevice;
  readonly fileSystem: FileSystem;
  readonly log: Logger;
  readonly clock: Clock;
  /** Milliseconds for an operation that may ask the network. Default: 60,000. */
  readonly deadlineMs?: number;
  /** Operations that take more milliseconds than this are logged at any level. Default: 1,000. */
  readonly slowMs?: number;
  /** The largest number of stacked file systems for passthrough; see init.ts. Default: 0, no passthrough. */
  readonly stackDepth?: Wishes["stackDepth"];
  /** Fault points, for tests that die there. */
  readonly step?: (label: string) => void;
  /** True if the signal that interrupted the thread asks its program to end. Default: always. */
  readonly hasFatalSignal?: (thread: number) => boolean;
  /** Behave as with a kernel that resends nothing. Default: no. */
  readonly noResend?: boolean;
  /** The result of an earlier daemon's INIT, for a daemon that takes over its mount: no INIT will come. */
  readonly connection?: Connection;
  /** The requests in hand, for a daemon that takes over. Default: none. */
  readonly inHand?: RequestsInHand;
  /** Lower places of requests belong to an earlier daemon; see FileSystem.done. */
  readonly firstPlace?: number;
  /** An earlier daemon of this mount saw that the kernel has the root's attributes. Default: no. */
  readonly rootIsKnown?: boolean;
  /** The kernel has the root's attributes. Called once, before it gets an answer about the root that it may keep. */
  readonly onRootKnown?: () => void;
}

interface RequestInFlight {
  readonly operation: string;
  readonly id: number;
  readonly node: KernelNodeId;
  readonly uid: number;
  readonly pid: number;
  readonly milliseconds: number;
}

export interface Session {
  /** The result of INIT. Rejects when the kernel is too old, or the mount ends before. */
  readonly initialized: Promise<Connection>;
  /** The errno name with which the requests ended (ENODEV: unmounted), or "closed". Never rejects. */
  readonly ended: Promise<string>;
  /** The numbers of requests that came, by opcode name; "UNKNOWN" for opcodes that are not in the table. */
  operations(): Record<string, number>;
  /** The numbers of those that the device answered by itself; see native.ts. */
  moved(): Readonly<Record<string, number>>;
  /** The requests that wait for an answer, oldest first. */
  inFlight(): RequestInFlight[];
  /** Resolves when everything that came is answered. */
  drained(): Promise<void>;
  /** Another daemon takes over the requests that are not answered: they must not count as the cause of a death. */
  handOver(): void;
  /** Gives up the device. Requests in flight are cancelled and get no answer from us. */
  close(): void;
}

export const DEADLINE_MS = 60_000;
/** A request that takes longer, in milliseconds, is logged. */
export const SLOW_CALL_MS = 1000;
/**
 * The pause between two looks for a fatal signal, after a signal that was not fatal: the kernel does not report the
 * next signal.
 */
const NEXT_SIGNAL_MS = 100;
/** Labels before and after an answer. */
const FAULT_POINTS = new Map(
  [...OPERATIONS.values()].map((operation) => {
    const { name } = operation;
    return [operation, { before: `${name}: about to be answered`, after: `${name}: answered` }];
  }),
);
const BEFORE_INIT: WireVersion = { setxattrExtended: false };

export function createSession(options: SessionOptions): Session {
  const { fileSystem, log, clock, step = () => {}, deadlineMs = DEADLINE_MS, slowMs = SLOW_CALL_MS } = options;
  const { hasFatalSignal = () => true, onRootKnown = () => {} } = options;
  const counts = new Map<string, number>();
  const operationLog = createOperationLog(log, slowMs);
  const requests = createInFlightTable(clock, deadlineMs, expire, noteProgramTime, options.firstPlace);
  const requestsInHand = options.inHand ?? NOTHING_KEPT;
  const suspects = createCrashSuspects(requestsInHand, log);
  const initialized = deferred<Connection>();
  const ended = deferred<string>();
  let connection = options.connection;
  /**
   * The kernel makes the root itself, with mode 0, and asks for its attributes. The thread that asked may take the
   * answer in long after the reply. If the root is invalidated before that, the kernel drops the answer and judges by
   * mode 0: EACCES. A permitted request shows that an answer was taken in. Until one comes, the root is not invalidated
   * (kernel-cache.ts), and therefore answers about the root must not be kept by the kernel.
   */
  let rootIsKnown = options.rootIsKnown ?? false;
  let isOver = false;

  if (connection !== undefined) initialized.resolve(connection);

  function take(bytes: Uint8Array): void {
    let message: Message;
    try {
      message = parseMessage(bytes);
    } catch (error) {
      refuseUnreadable(bytes, error);
      return;
    }
    const operation = OPERATIONS.get(message.opcode);
    const name = operation?.name ?? "UNKNOWN";
    counts.set(name, (counts.get(name) ?? 0) + 1);
    if (operation === undefined) {
      log.debug({ opcode: message.opcode, id: message.id }, "unknown opcode");
      sendError(message, "ENOSYS");
      return;
    }
    try {
      perform(operation, message);
    } catch (error) {
      refuseUndecoded(operation, message, error);
    }
  }

  /** @throws the errors of decoding */
  function perform(operation: Operation, message: Message): void {
    const request = operation.decode(message, connection ?? BEFORE_INIT);
    if (operation.kind === "session") {
      performOwn(operation, message, request);
      return;
    }
    if (connection === undefined && takesReply(operation.code)) {
      log.warn({ op: operation.name, id: message.id }, "request before INIT");
      sendError(message, "EIO");
      return;
    }
    const started = clock.elapsed();
    switch (operation.kind) {
      case "served": {
        if (operation.isPermitted && message.nodeid === ROOT_NODE && !rootIsKnown) {
          rootIsKnown = true;
          onRootKnown();
        }
        const asked = new InFlight(operation.name, message, request, started, !operation.local);
        if (operation.name === "READ" && !message.resent && message.answerable)
          asked.answerFrom = (...file) => answerRead(asked, ...file);
        void answer(operation, asked);
        return;
      }
      case "silent": {
        const done = new InFlight(operation.name, message, request, started, false);
        try {
          operation.handle(fileSystem, request);
          operationLog.done(done, { result: "ok" }, clock.elapsed());
        } catch (error) {
          operationLog.done(done, { result: "EIO", error }, clock.elapsed());
        }
        return;
      }
      case "refused": {
        const done = new InFlight(operation.name, message, request, started, false);
        sendError(message, operation.error);
        operationLog.done(done, { result: operation.error }, clock.elapsed());
      }
    }
  }

  /** Never rejects. */
  async function answer(operation: Served, request: InFlight): Promise<void> {
    if (!requests.add(request)) {
      // After the RESEND of a daemon that takes over, the kernel also resends requests that this daemon has read
      // already. Without the resent mark it is a bug of the sender.
      const level = request.message.resent ? "debug" : "warn";
      log[level]({ op: operation.name, id: request.id }, "the request came twice: the first one is being handled");
      return;
    }
    const done = doneBefore(operation, request);
    // A request that was carried out and only lacks its answer cannot have caused the deaths.
    if (request.message.resent && done === undefined && !suspects.begin(request)) {
      return fail(request, new FsError("EIO", "it was in hand when two daemons died"));
    }
    let reply: unknown;
    let parts: Parts;
    const { changes } = fileSystem;
    try {
      reply = await handle(operation, request, done);
    } catch (error) {
      return fail(request, error);
    }
    if (request.isAnsweredFromFile) {
      remove(request);
      return operationLog.done(request, { result: "ok", reply: "from the file" }, clock.elapsed());
    }
    try {
      // No await from here to the reply: a change in between would make isKept wrong.
      const isKept = changes === fileSystem.changes && (rootIsKnown || request.nodeid !== ROOT_NODE);
      parts = operation.encode(reply, isKept);
    } catch (error) {
      takeBack(operation, reply);
      return fail(request, error);
    }
    if (request.answered) {
      log.warn(
        { op: request.name, id: request.id, ms: minus(clock.elapsed(), request.started) },
        "late result dropped",
      );
      // A request that only asks has changed nothing.
      if (operation.again !== undefined) fileSystem.unheard();
      return takeBack(operation, reply);
    }
    request.answered = true;
    const points = FAULT_POINTS.get(operation);
    step(points?.before ?? "");
    const arrived = send(request.message, 0, parts);
    step(points?.after ?? "");
    remove(request);
    if (!arrived) takeBack(operation, reply);
    operationLog.done(request, { result: "ok", reply }, clock.elapsed());
  }

  function answerRead(request: InFlight, descriptor: number, offset: number, size: number): boolean {
    if (isOver || request.answered || device.answerRead?.(request.id, descriptor, offset, size) !== true) return false;
    request.answered = true;
    request.isAnsweredFromFile = true;
    return true;
  }

  function doneBefore(operation: Served, { id, message }: InFlight): Done | undefined {
    return message.resent && operation.again !== undefined ? fileSystem.done(id) : undefined;
  }

  /** Runs the handler, or repeats only the answer if an earlier daemon has carried the request out. */
  function handle(operation: Served, request: InFlight, done: Done | undefined): Promise<unknown> {
    const call = { fileSystem, caller: request, nodeid: request.nodeid };
    if (done === undefined || operation.again === undefined) return operation.handle(call, request.request);
    log.info({ op: operation.name, id: request.id }, "the daemon before carried it out: only the answer is sent");
    return operation.again(call, request.request, done);
  }

  /** Removes a request that is not in hand any more. */
  function remove(request: InFlight): void {
    requests.remove(request);
    if (request.message.resent) suspects.end(request);
  }

  function fail(request: InFlight, error: unknown): void {
    if (request.answered) {
      const fields = { op: request.name, id: request.id, error: describeError(error) };
      log.debug(fields, "late failure dropped");
      return;
    }
    request.answered = true;
    const cancelled = request.isCancellation(error);
    const result = cancelled ? (request.interrupted ? "EINTR" : "EIO") : errorName(error);
    sendError(request.message, result);
    remove(request);
    const logged = cancelled ? new FsError(result, "cancelled", { cause: error }) : error;
    operationLog.done(request, { result, error: logged }, clock.elapsed());
  }

  function noteProgramTime({ hasDeadline }: InFlight, milliseconds: number): void {
    fileSystem.noteProgramTime(milliseconds, hasDeadline);
  }

  function expire(request: InFlight): void {
    const error = new FsError("EIO", `no answer within ${deadlineMs} ms`);
    request.answered = true;
    sendError(request.message, "EIO");
    remove(request);
    request.cancel(error);
    operationLog.done(request, { result: "EIO", error }, clock.elapsed());
  }

  /** Takes back an answer that the kernel did not get: its counts must not stay. */
  function takeBack(operation: Served, reply: unknown): void {
    const failed = (error: unknown) =>
      log.error({ op: operation.name, error: describeError(error) }, "taking back an unsent answer failed");
    try {
      operation.undo?.(fileSystem, reply)?.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  function performOwn(operation: OfSession, message: Message, request: unknown): void {
    if (operation === INTERRUPT_ROW) interrupt((request as { unique: number }).unique);
    else if (operation === DESTROY_ROW) send(message, 0, []);
    else initialize(message, request as InitRequest);
  }

  function interrupt(id: number): void {
    const request = requests.find(id);
    log.debug({ op: "INTERRUPT", id, found: request !== undefined }, "operation");
    if (request !== undefined) endIfFatal(request);
  }

  /**
   * Tells the handler to stop if the signal ends the program. After another signal the request goes on: a program that
   * was stopped for a while, or whose child ended, expects no error from its calls on files. The handler sends the
   * answer, because it alone knows whether it can still stop.
   */
  function endIfFatal(request: InFlight): void {
    if (isOver || requests.find(request.id) !== request) return;
    if (!hasFatalSignal(request.pid)) {
      clock.setTimer(NEXT_SIGNAL_MS, () => endIfFatal(request));
      return;
    }
    request.interrupted = true;
    request.cancel(new FsError("EINTR", "the caller was interrupted"));
  }

  function initialize(message: Message, request: InitRequest): void {
    if (connection !== undefined) {
      log.warn({ id: message.id }, "a second INIT");
      sendError(message, "EIO");
      return;
    }
    const { stackDepth = 0, noResend = false } = options;
    const outcome = negotiate(request, { stackDepth, noResend });
    if (outcome.kind === "refused") {
      log.error({ major: request.major, minor: request.minor }, outcome.reason);
      sendError(message, "EPROTO");
      initialized.reject(new Error(outcome.reason));
      return;
    }
    if (outcome.kind === "agreed") connection = outcome.connection;
    send(message, 0, INIT_ROW.encode(outcome.reply, true));
    log.info({ kernel: summary(request), reply: summary(outcome.reply) }, `INIT: ${outcome.kind}`);
    if (outcome.kind === "agreed") initialized.resolve(outcome.connection);
  }

  function refuseUndecoded(operation: Operation, message: Message, error: unknown): void {
    const result = errorName(error);
    const fields = { op: operation.name, id: message.id, node: message.nodeid, result, error: describeError(error) };
    if (error instanceof MalformedError) log.warn(fields, "malformed message");
    else if (error instanceof FsError) log.debug(fields, "operation");
    else log.error(fields, "decoding failed by a bug");
    if (takesReply(operation.code)) sendError(message, result);
  }

  /** Refuses a message that is too short for its header. Its `unique` is used if it is there and takes a reply. */
  function refuseUnreadable(bytes: Uint8Array, error: unknown): void {
    log.warn({ bytes: bytes.length, error: describeError(error) }, "malformed message");
    if (bytes.length < MIN_ANSWERABLE) return;
    const view = viewOf(bytes);
    if (!takesReply(opcodeOf(view))) return;
    const answerable = view.getUint32(8, LITTLE_ENDIAN) !== 0 || view.getUint32(12, LITTLE_ENDIAN) !== 0;
    sendError({ bytes, answerable, id: 0 }, "EINVAL");
  }

  function sendError(message: Pick<Message, "bytes" | "answerable" | "id">, name: ErrorName): void {
    send(message, -ERRNO[name], []);
  }

  /** True if the kernel took it. Never throws. */
  function send(message: Pick<Message, "bytes" | "answerable" | "id">, error: number, parts: Parts): boolean {
    // With unique 0 it would be read as a notification.
    if (isOver || !message.answerable) return false;
    const errno = reply(withHeader(message.bytes, error, parts));
    if (errno === 0) return true;
    const { id } = message;
    // The request is gone: interrupted before we read it, or the connection was aborted.
    if (errno === ERRNO.ENOENT) return false;
    if (errno !== ERRNO.EINVAL) {
      log.debug({ id, errno }, "reply not taken");
      return false;
    }
    log.error({ id, error, sizes: parts.map((part) => part.length) }, "the kernel refused a reply: a bug");
    // It may still be waiting (ENOENT if not).
    reply(withHeader(message.bytes, -ERRNO.EIO, []));
    return false;
  }

  function reply(parts: Parts): number {
    try {
      return device.reply(parts);
    } catch (error) {
      log.error({ error: describeError(error) }, "the device failed to reply");
      return ERRNO.EIO;
    }
  }

  function end(errnoName: string): void {
    if (isOver) return;
    isOver = true;
    requests.stop();
    log.info({ reason: errnoName, inFlight: requests.list().length }, "no more requests");
    for (const request of requests.list()) request.cancel(new FsError("EIO", `the mount ended: ${errnoName}`));
    initialized.reject(new Error(`the mount ended before INIT: ${errnoName}`));
    ended.resolve(errnoName);
  }

  const device: Device = options.device((messages) => {
    if (isOver) return;
    // Written down before the requests are begun: if this daemon dies, the next one can answer the waiting programs.
    if (connection?.resend === false)
      requestsInHand.inFlight([...requests.list().map(({ id }) => id), ...idsIn(messages)]);
    for (const message of messages) take(message);
  }, end);

  // Before the first message is read.
  if (options.connection !== undefined) takeOver(options.connection);

  function takeOver({ resend }: Connection): void {
    if (resend) {
      const errno = reply(notifyResend());
      if (errno !== 0) log.error({ errno }, "the kernel resends no requests: waiting programs may hang for ever");
      return;
    }
    log.info({ requests: requestsInHand.left.length }, "this kernel resends no requests: those in hand fail with EIO");
    for (const unique of requestsInHand.left)
      reply([OUT_HEADER.encode({ len: OUT_HEADER.size, error: -ERRNO.EIO, unique })]);
  }

  const moved = () => device.moved?.() ?? {};

  return {
    initialized: initialized.promise,
    ended: ended.promise,
    operations() {
      const all = new Map(counts);
      for (const [name, count] of Object.entries(moved())) {
        if (count > 0) all.set(name, (all.get(name) ?? 0) + count);
      }
      return Object.fromEntries(all);
    },
    moved,
    inFlight() {
      const now = clock.elapsed();
      return requests.list().map((request) => ({
        operation: request.name,
        id: request.id,
        node: request.nodeid,
        uid: request.uid,
        pid: request.pid,
        milliseconds: minus(now, request.started),
      }));
    },
    drained: () => requests.drained(),
    handOver: () => suspects.forgive(),
    close() {
      end("closed");
      device.close();
    },
  };
}
