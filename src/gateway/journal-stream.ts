/**
 * The journal as server-sent events. Each entry is one event with the position of the entry as its id. A reader that
 * was cut off goes on with Last-Event-ID (or after=), and gets each entry once. Entries are read from the store when
 * the reader takes them: a slow reader waits, and no entries pile up in memory.
 */

import { HEARTBEAT_MS } from "../contract/http.ts";
import { minus } from "../lib/clocks.ts";
import { roleIn } from "./access.ts";
import type { Context } from "./context.ts";
import { type EventReader, eventAnswer, HEARTBEAT, lastEventId } from "./event-stream.ts";
import type { Call, GatewayAnswer } from "./exchange.ts";
import { checkReached, entriesBetween } from "./journal.ts";
import { type Caller, goodUntil } from "./tokens.ts";
import { callWorkspace } from "./workspaces.ts";

/** Interval of checks while the lag of the journal hides changes, or nothing can be committed. */
const LAG_POLL_MS = 50;
const BATCH = 200;

export function streamJournal(context: Context, call: Call<"streamJournal">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const lastId = lastEventId(call.headers, "position");
  const from = lastId ?? call.query.after;
  checkReached(context.store, lastId === undefined ? "after" : "Last-Event-ID", from);
  return eventAnswer((reader) => events(context, workspace.id, from, call.caller, reader));
}

/** Ends when the gateway closes, or when the token expires, is revoked, or has no access to the workspace any more. */
async function* events(
  context: Context,
  workspace: string,
  from: number,
  caller: Caller,
  reader: EventReader,
): AsyncGenerator<Uint8Array> {
  const { clock, store, journalLag, news, options } = context;
  const wait = (milliseconds: number) =>
    news.wait(clock, milliseconds, workspace, (wake) => {
      reader.wake = wake;
    });
  /** The lifetime of tokens may be changed meanwhile. */
  const rest = () => goodUntil(caller, options.tokenSeconds) - clock.wallClock();
  const isAllowed = () => rest() > 0 && caller.stands() && roleIn(context, caller, workspace) !== undefined;
  let position = from;
  // The headers are sent with the first bytes.
  yield Buffer.from(": the journal\n\n");
  let sent = clock.elapsed();
  while (!news.ended && !reader.gone && isAllowed()) {
    const shown = journalLag.shown();
    const entries = entriesBetween(store, workspace, position, shown, BATCH);
    const last = entries.at(-1);
    // Nothing is sent before it is committed. Entries that were rolled back are not sent at all.
    const pending = store.committed();
    if (
      pending !== undefined &&
      (await pending.then(
        () => false,
        () => true,
      ))
    ) {
      // Without a pause, this loop would keep the thread busy while the disk is full.
      await wait(LAG_POLL_MS);
      continue;
    }
    if (last !== undefined) {
      position = last.position;
      yield Buffer.from(entries.map((entry) => `id: ${entry.position}\ndata: ${JSON.stringify(entry)}\n\n`).join(""));
      sent = clock.elapsed();
      continue;
    }
    const quiet = HEARTBEAT_MS - minus(clock.elapsed(), sent);
    if (quiet <= 0) {
      yield HEARTBEAT;
      sent = clock.elapsed();
      continue;
    }
    const hidden = entriesBetween(store, workspace, position, Number.MAX_SAFE_INTEGER, 1).length > 0;
    await wait(Math.min(quiet, hidden ? LAG_POLL_MS : quiet, Math.max(1, rest())));
  }
}
