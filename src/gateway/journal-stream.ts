/**
 * The journal as server-sent events: one event an entry, its id the entry's position, so that a
 * reader that was cut off goes on with Last-Event-ID (or after=) without loss or doubling. Entries
 * are read from the store when the reader takes them: a slow one waits, nothing is piled up for it.
 */

import { HEARTBEAT_MS } from "../contract/http.ts";
import { roleIn } from "./access.ts";
import type { Context } from "./context.ts";
import { type EventReader, eventAnswer, HEARTBEAT, lastEventId } from "./event-stream.ts";
import type { Call, GatewayAnswer } from "./exchange.ts";
import { checkReached, entriesBetween } from "./journal.ts";
import { type Caller, goodUntil } from "./tokens.ts";
import { callWorkspace } from "./workspaces.ts";

/** While the journal's lag hides changes, or nothing can be committed: how often is looked whether it is still so. */
const LAG_POLL_MS = 50;
const BATCH = 200;

export function streamJournal(context: Context, call: Call<"streamJournal">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const seen = lastEventId(call.headers, "position");
  const from = seen ?? call.query.after;
  checkReached(context.store, seen === undefined ? "after" : "Last-Event-ID", from);
  return eventAnswer((reader) => events(context, workspace.id, from, call.caller, reader));
}

/** Ends when the gateway closes, or the token expires, is revoked, or sees nothing of the workspace any more. */
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
  /** How long tokens live may be set anew meanwhile. */
  const rest = () => goodUntil(caller, options.tokenSeconds) - clock.wallClock();
  const isAllowed = () => rest() > 0 && caller.stands() && roleIn(context, caller, workspace) !== undefined;
  let position = from;
  // Headers go out with the first bytes.
  yield Buffer.from(": the journal\n\n");
  let sent = clock.elapsed();
  while (!news.ended && !reader.gone && isAllowed()) {
    const shown = journalLag.shown();
    const entries = entriesBetween(store, workspace, position, shown, BATCH);
    const last = entries.at(-1);
    // Nothing is told before it is committed; what was undone is not told at all.
    const pending = store.committed();
    if (
      pending !== undefined &&
      (await pending.then(
        () => false,
        () => true,
      ))
    ) {
      // Asked at once, a store that is full would be asked for ever.
      await wait(LAG_POLL_MS);
      continue;
    }
    if (last !== undefined) {
      position = last.position;
      yield Buffer.from(entries.map((entry) => `id: ${entry.position}\ndata: ${JSON.stringify(entry)}\n\n`).join(""));
      sent = clock.elapsed();
      continue;
    }
    const quiet = sent + HEARTBEAT_MS - clock.elapsed();
    if (quiet <= 0) {
      yield HEARTBEAT;
      sent = clock.elapsed();
      continue;
    }
    const hidden = entriesBetween(store, workspace, position, Number.MAX_SAFE_INTEGER, 1).length > 0;
    await wait(Math.min(quiet, hidden ? LAG_POLL_MS : quiet, Math.max(1, rest())));
  }
}
