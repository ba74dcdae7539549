/** Calls about the journal: its pages, the record of an activity, and a stream of events over one connection. */
import { type JournalEntry, type JournalPage, journalEntry, journalPage } from "../contract/resources.ts";
import { checkedJson } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { JournalOptions, JournalStreamOptions, KeyOptions } from "./client.ts";
import { readEvents } from "./events.ts";
import { flag } from "./listings.ts";

export function readJournal(
  send: Send,
  workspaceId: string | undefined,
  position: number,
  options: JournalOptions = {},
): Promise<JournalPage> {
  const { nodeId, since, by, mount, before, orderBy, after = position, pageSize, pageNo, signal } = options;
  const filter = { nodeId, since, by, mount, before: flag(before) };
  // A token that is bound to this workspace may name it; an unbound token must.
  const query = { workspace: workspaceId, ...filter, orderBy, after, pageSize, pageNo };
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

/** One connection of server-sent events. An event's id is the position, its data the entry as JSON. */
export async function* streamJournal(
  send: Send,
  position: number,
  options: JournalStreamOptions = {},
): AsyncGenerator<JournalEntry, void, undefined> {
  const { workspace, onHeard, signal } = options;
  const call = { operation: "streamJournal", query: { workspace, after: position }, signal } as const;
  for await (const { data, answer } of readEvents(send, call, onHeard)) {
    yield checkedJson(data, journalEntry, call.operation, answer);
  }
}
