/**
 * Calls of libfuse that are under way: each is a request, and answered exactly once, by what it does or with EIO when
 * its deadline has passed. A thread of libfuse waits for that, whatever is thrown. Knows no operation.
 */

import { type Caller, FsError, kernelNodeId } from "../engine/api/index.ts";
import { ERRNO, errorName } from "../fuse/errno.ts";
import { type Clock, createInFlightTable, InFlight, type Origin } from "../fuse/in-flight.ts";
import { createOperationLog } from "../fuse/operation-log.ts";
import { SLOW_CALL_MS } from "../fuse/session.ts";
import { describeError, type Logger } from "../lib/log.ts";

/** How one kind of call is done and answered. */
export interface Kind<T> {
  /** The protocol's name of it. */
  readonly name: string;
  /** It waits for the local disk alone, or must not be given up: no deadline. */
  readonly local?: boolean;
  /** It changes something: what the kernel believes is wrong when this is done after it was told that it failed. */
  readonly changes?: boolean;
  /** Takes back what it gave, when its caller has been told that it failed. */
  undo?(value: T): unknown;
}

export interface Requests {
  /** Never throws. `answer` is called at once when it is done, `fail` with -errno else, one of the two and once. */
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
  /** Nothing is answered in time any more: whoever waits has gone. */
  cancel(reason: FsError): void;
}

export interface RequestsOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly log: Logger;
  /** The file system's, both: see there. */
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
    settle(request, error);
    request.cancel(error);
  }

  /** With an error; what is still to come is dropped. */
  function settle(request: InFlight<Origin>, error: unknown): void {
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
      if (!request.answered) settle(request, error);
      else log.debug({ op: kind.name, id: request.id, error: describeError(error) }, "late failure dropped");
      return;
    }
    if (request.answered) {
      log.warn({ op: kind.name, id: request.id, ms: clock.elapsed() - request.started }, "late result dropped");
    } else {
      try {
        answer(value);
        request.answered = true;
        forget(request);
        operationLog.done(request, { result: "ok", reply: value }, clock.elapsed());
        return;
      } catch (error) {
        // It could not be put into the library's form; its thread waits all the same.
        settle(request, error);
      }
    }
    if (kind.changes === true) unheard();
    await kind.undo?.(value);
  }

  return {
    begin(kind, values, action, answer, fail) {
      lastId += 1;
      counts.set(kind.name, (counts.get(kind.name) ?? 0) + 1);
      // Who asks libfuse knows, and the package does not say.
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
