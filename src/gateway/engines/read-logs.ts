/**
 * Logs over HTTP: as pages, and as server-sent events. Each line is one event with the number of the line as its id, so
 * that a reader that was cut off, also by a restart of the gateway, goes on with Last-Event-ID. The last event is
 * `end`.
 */

import type { LogEnd, LogLine } from "../../contract/engines.ts";
import type { ExecutionState } from "../../contract/execution-states.ts";
import { HEARTBEAT_MS } from "../../contract/http.ts";
import { minus } from "../../lib/clocks.ts";
import { roleIn } from "../access.ts";
import type { Context } from "../context.ts";
import { type EventReader, eventAnswer, HEARTBEAT, lastEventId } from "../event-stream.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "../exchange.ts";
import { lastChange } from "../lag.ts";
import type { Page } from "../paging.ts";
import type { Store } from "../store.ts";
import { type Caller, goodUntil } from "../tokens.ts";
import { executionSeen, findExecution } from "./execution-rows.ts";

/** Number of events made at once. */
const BATCH = 100;
/** Interval of checks while nothing can be committed. */
const UNCOMMITTED_POLL_MS = 50;

const isFinal = (state: ExecutionState) => state !== "queued" && state !== "running";
const isCommitted = (store: Store) =>
  Promise.resolve(store.committed()).then(
    () => true,
    () => false,
  );

export async function readLogs(context: Context, call: Call<"readLogs">): Promise<GatewayAnswer> {
  const { id } = executionSeen(context, call.caller, call.parameters.executionId);
  const { after, pageNo, pageSize } = call.query;
  const logs = context.engines?.logs;
  const before = after + (pageNo - 1) * pageSize;
  const count = (await logs?.count(id)) ?? 0;
  const items = (await logs?.lines(id, before, pageSize)) ?? [];
  const last = items.at(-1)?.number;
  const page: Page<LogLine> = {
    items,
    totalCount: Math.max(0, count - after),
    pageNo,
    pageSize,
    asOf: lastChange(context.store).position,
    next: last !== undefined && last < count ? String(last) : null,
  };
  return jsonAnswer(200, page);
}

export function streamLogs(context: Context, call: Call<"streamLogs">): GatewayAnswer {
  const { id, workspace } = executionSeen(context, call.caller, call.parameters.executionId);
  const from = lastEventId(call.headers, "line's number") ?? call.query.after;
  return eventAnswer((reader) => events(context, { id, workspace }, from, call.caller, reader));
}

/**
 * Ends after `end`. Ends without it when the gateway closes, when the execution is forgotten, or when the token
 * expires, is revoked, or has no access to the workspace any more.
 */
async function* events(
  context: Context,
  { id, workspace }: { readonly id: string; readonly workspace: string },
  from: number,
  caller: Caller,
  reader: EventReader,
): AsyncGenerator<Uint8Array> {
  const { clock, store, news, options } = context;
  const logs = context.engines?.logs;
  /**
   * Waits for lines and the end of the execution; also for the end of the gateway, and for changes of the caller's
   * rights.
   */
  const wait = async (milliseconds: number) => {
    const wakes: (() => void)[] = [];
    reader.wake = () => {
      for (const wake of wakes) wake();
    };
    const signals =
      logs === undefined ? [[news, workspace] as const] : [[news, workspace] as const, [logs.news, id] as const];
    await Promise.race(
      signals.map(([signal, name]) => signal.wait(clock, milliseconds, name, (wake) => wakes.push(wake))),
    );
    reader.wake();
  };
  const rest = () => goodUntil(caller, options.tokenSeconds) - clock.wallClock();
  const isAllowed = () => rest() > 0 && caller.stands() && roleIn(context, caller, workspace) !== undefined;
  let number = from;
  let end: LogEnd | undefined;
  // The headers are sent with the first bytes.
  yield Buffer.from(": the log\n\n");
  let sent = clock.elapsed();
  while (!news.ended && !reader.gone && isAllowed()) {
    const lines = (await logs?.lines(id, number, BATCH)) ?? [];
    if (lines.length > 0) {
      number = lines.at(-1)?.number ?? number;
      yield Buffer.from(lines.map((line) => `id: ${line.number}\ndata: ${JSON.stringify(line)}\n\n`).join(""));
      sent = clock.elapsed();
      continue;
    }
    if (end !== undefined) {
      yield Buffer.from(`event: end\ndata: ${JSON.stringify(end)}\n\n`);
      return;
    }
    // Nothing else happens from here to the wait: no news is missed.
    const row = findExecution(store, id);
    if (row === undefined) return;
    if (isFinal(row.state)) {
      // Nothing is sent before it is committed. The last lines are read once more.
      const { state, exitCode, detail } = row;
      if (await isCommitted(store)) end = { state, exitCode, detail };
      else await wait(UNCOMMITTED_POLL_MS);
      continue;
    }
    const quiet = HEARTBEAT_MS - minus(clock.elapsed(), sent);
    if (quiet <= 0) {
      yield HEARTBEAT;
      sent = clock.elapsed();
      continue;
    }
    await wait(Math.min(quiet, Math.max(1, rest())));
  }
}
