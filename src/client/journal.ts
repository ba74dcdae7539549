/** The journal: read in pages, told of what was done, and as a stream of events, one connection each. */
import { createParser } from "eventsource-parser";
import { type JournalEntry, type JournalPage, journalEntry, journalPage } from "../contract/resources.ts";
import { checkedJson, discard, malformed, transportFailure } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { JournalOptions, JournalStreamOptions, KeyOptions } from "./client.ts";
import { EVENT_SIZE_MAX } from "./reword-events.ts";

export function readJournal(
  send: Send,
  workspaceId: string | undefined,
  position: number,
  options: JournalOptions = {},
): Promise<JournalPage> {
  const { pageSize, pageNo, signal } = options;
  // A token bound to this workspace may name it, an unbound one must.
  const query = { workspace: workspaceId, after: position, pageSize, pageNo };
  return askJson(send, { operation: "readJournal", query, signal }, journalPage);
}

export function appendJournal(
  send: Send,
  nodeId: string,
  kind: string,
  options: KeyOptions = {},
): Promise<JournalEntry> {
  const { idempotencyKey, signal } = options;
  const value = { nodeId, kind, idempotencyKey };
  return askJson(send, { operation: "appendJournal", body: { kind: "json", value }, signal }, journalEntry);
}

/**
 * One connection of server-sent events (WHATWG HTML §9.2): an event's id is the position, its data
 * the entry as JSON; comments are heartbeats. Ends when the gateway ends it.
 */
export async function* streamJournal(
  send: Send,
  position: number,
  options: JournalStreamOptions = {},
): AsyncGenerator<JournalEntry, void, undefined> {
  const operation = "streamJournal";
  const { workspace, onHeard, signal } = options;
  const headers = { accept: "text/event-stream" };
  const answer = await send({ operation, query: { workspace, after: position }, headers, signal });
  const type = answer.headers["content-type"] ?? "";
  if (!/^text\/event-stream\b/i.test(type)) {
    await discard(answer);
    throw malformed(operation, answer, `expected text/event-stream, got ${type === "" ? "no type" : type}`);
  }
  let came: string[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: EVENT_SIZE_MAX,
    onEvent: ({ data }) => came.push(data),
    onError: (error) => {
      isTooLong ||= error.type === "max-buffer-size-exceeded";
    },
  });
  const decoder = new TextDecoder();
  const chunks = answer.body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const chunk = await chunks.next().catch((error: unknown) => {
        throw transportFailure(error, operation, answer);
      });
      if (chunk.done === true) return;
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      onHeard?.();
      const events = came;
      came = [];
      for (const data of events) yield checkedJson(data, journalEntry, operation, answer);
      if (isTooLong) throw malformed(operation, answer, `an event is longer than ${EVENT_SIZE_MAX} characters`);
    }
  } finally {
    await chunks.return?.();
  }
}
