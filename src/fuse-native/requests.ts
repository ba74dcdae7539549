/**
 * Requests of libfuse that are under way. Each is answered exactly once: by its result, or with EIO when its deadline
 * has passed. A thread of libfuse waits for the answer, so it must come whatever is thrown. This file knows no
 * operation.
 */

import { type Caller, FsError, kernelNodeId } from "../engine/api/index.ts";
import { ERRNO, errorName } from "../fuse/errno.ts";
import { type Clock, createInFlightTable, InFlight, type Origin } from "../fuse/in-flight.ts";
import { createOperationLog } from "../fuse/operation-log.ts";
import { SLOW_CALL_MS } from "../fuse/session.ts";
import { minus } from "../lib/clocks.ts";
import { describeError, type Logger } from "../lib/log.ts";

/** The treatment of one kind of call. */
export interface Kind<T> {
  /** The protocol's name of the request. */
  readonly name: string;
  /** The request waits only for the local disk, or must not be given up: it has no deadline. */
  readonly local?: boolean;
  /** The request changes something. If it succeeds after its deadline, the kernel remembers a state that is wrong. */
  readonly changes?: boolean;
  /** Takes back the result when the caller was told that the request failed. */
  undo?(value: T): unknown;
}

export interface Requests {
  /** Never throws. On success `answer` is called at once, otherwise `fail` with -errno: one of the two, once. */
  begin<T>(
    kind: Kind<T>,
    values: readonly unknown[],
    action: (caller: Caller) => Promise<T> | T,
    answer: (value: T) => void,
    fail: (result: number) => void,
  ): void;
  counts(): Record<string, number>;
  count(): number;
  drained(): Promise<void>;
  /** Cancels all requests: their callers have gone, and no answer comes in time any more. */
  cancel(reason: FsError): void;
}

export interface RequestsOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly log: Logger;
  /** Both are those of FileSystem: see there. */
  unheard(): void;
  noteProgramTime(milliseconds: number, mayAsk: boolean): void;
}

export function createRequests({ clock, deadlineMs, log, unheard, noteProgramTime }: RequestsOptions): Requests {
  const counts = new Map<string, number>();
  const operationLog = createOperationLog(log, SLOW_CALL_MS);
  const table = createInFlightTable<Origin>(clock, deadlineMs, expire, ({ hasDeadline }, milliseconds) =>
    noteProgramTime(milliseconds, hasDeadline),
  );
  const fails = new Map<InFlight<Origin>, (result: number) => void>();
  const self = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  let lastId = 0;

  function expire(request: InFlight<Origin>): void {
    const error = new FsError("EIO", `no answer within ${deadlineMs} ms`);
    answerError(request, error);
    request.cancel(error);
  }

  /** Answers with an error. A later result is dropped. */
  function answerError(request: InFlight<Origin>, error: unknown): void {
    const result = errorName(error);
    request.answered = true;
    fails.get(request)?.(-ERRNO[result]);
    forget(request);
    operationLog.done(request, { result, error }, clock.elapsed());
  }

  function forget(request: InFlight<Origin>): void {
    fails.delete(request);
    table.remove(request);
  }

  async function perform<T>(
    kind: Kind<T>,
    request: InFlight<Origin>,
    action: (caller: Caller) => Promise<T> | T,
    answer: (value: T) => void,
  ): Promise<void> {
    let value: T;
    try {
      value = await action(request);
    } catch (error) {
      if (!request.answered) answerError(request, error);
      else log.debug({ op: kind.name, id: request.id, error: describeError(error) }, "late failure dropped");
      return;
    }
    if (request.answered) {
      log.warn({ op: kind.name, id: request.id, ms: minus(clock.elapsed(), request.started) }, "late result dropped");
    } else {
      try {
        answer(value);
        request.answered = true;
        forget(request);
        operationLog.done(request, { result: "ok", reply: value }, clock.elapsed());
        return;
      } catch (error) {
        // The result could not be put into the library's form. Its thread still waits.
        answerError(request, error);
      }
    }
    if (kind.changes === true) unheard();
    await kind.undo?.(value);
  }

  return {
    begin(kind, values, action, answer, fail) {
      lastId += 1;
      counts.set(kind.name, (counts.get(kind.name) ?? 0) + 1);
      // libfuse knows the calling process, but the package does not pass it on.
      const origin = { id: lastId, nodeid: kernelNodeId(0), ...self, pid: 0, answerable: false };
      const request = new InFlight(kind.name, origin, values, clock.elapsed(), kind.local !== true);
      table.add(request);
      fails.set(request, fail);
      perform(kind, request, action, answer).catch((error: unknown) => {
        log.error({ op: kind.name, error: describeError(error) }, "taking back an unsent answer failed");
      });
    },
    counts: () => Object.fromEntries(counts),
    count: () => table.list().length,
    drained: () => table.drained(),
    cancel(reason) {
      table.stop();
      for (const request of table.list()) request.cancel(reason);
    },
  };
}
