/**
 * Follows the journal by a stream of events. When the stream breaks, it is resumed after the last entry, so that no
 * entry is lost and none comes twice. When the gateway has no stream, the journal is polled.
 */
import type { JournalEntry } from "../../contract/resources.ts";
import { hasNoStream, RemoteError } from "../errors.ts";
import { type Context, type RequestOptions, read } from "./context.ts";

export interface FollowOptions extends RequestOptions {
  /** Only entries after this position. 0: from the start. Default: only entries from now on. */
  readonly after?: number | undefined;
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
  /** The wait between two polls of a gateway without a stream, milliseconds. Default 1000. */
  readonly pollMs?: number | undefined;
  /** Called at each break, before the wait for the next try. Undefined: the gateway ended the stream. */
  readonly onBreak?: ((error: RemoteError | undefined) => void) | undefined;
}

const POLL_MS = 1000;
const POLL_PAGE = 1000;

export async function* follow(
  context: Context,
  options: FollowOptions = {},
): AsyncGenerator<JournalEntry, void, undefined> {
  const { workspace = context.workspace, onBreak, signal } = options;
  let position = options.after ?? (await presentPosition(context, options));
  let tried = 1;
  const onHeard = () => {
    tried = 1;
  };
  for (;;) {
    let broken: RemoteError | undefined;
    try {
      const client = await context.load();
      for await (const entry of client.streamJournal(position, { workspace, onHeard, signal })) {
        // A gateway may begin too early.
        if (entry.position <= position) continue;
        position = entry.position;
        yield entry;
      }
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      if (hasNoStream(error)) break;
      broken = error;
    }
    onBreak?.(broken);
    // An end without an error is also followed by a wait, because the next stream may end at once.
    await context.retrier.waitForever(
      broken ?? new RemoteError("offline", "streamJournal: the stream ended"),
      tried,
      options,
    );
    tried += 1;
  }
  yield* poll(context, position, options);
}

async function presentPosition(context: Context, options: FollowOptions): Promise<number> {
  const { workspace = context.workspace, signal } = options;
  const page = await read(context, options, (client) => client.readJournal(workspace, 0, { pageSize: 1, signal }));
  return page.asOf;
}

async function* poll(
  context: Context,
  from: number,
  options: FollowOptions,
): AsyncGenerator<JournalEntry, void, undefined> {
  const { workspace = context.workspace, pollMs = POLL_MS, onBreak, signal } = options;
  let position = from;
  for (let tried = 1; ; ) {
    const before = position;
    try {
      const client = await context.load();
      const page = await client.readJournal(workspace, position, { pageSize: POLL_PAGE, signal });
      tried = 1;
      for (const entry of page.items) {
        if (entry.position <= position) continue;
        position = entry.position;
        yield entry;
      }
      // Some gateways give the total of the whole journal. So the next page is read at once only after new entries.
      if (page.items.length < page.totalCount && position > before) continue;
    } catch (error) {
      if (error instanceof RemoteError) onBreak?.(error);
      await context.retrier.waitForever(error, tried, options);
      tried += 1;
      continue;
    }
    await context.retrier.pause(pollMs, signal);
  }
}
