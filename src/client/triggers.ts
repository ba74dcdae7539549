/** Calls of triggers and schedules, which start engines automatically. */
import { type Trigger, type TriggerPage, type TriggerPatch, trigger, triggerPage } from "../contract/triggers.ts";
import { discard } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { CallOptions, KeyOptions, PageOptions, TriggerDescription, WorkspaceOptions } from "./client.ts";
import { pageQuery } from "./listings.ts";

export function createTrigger(
  send: Send,
  description: TriggerDescription,
  { workspace, idempotencyKey, signal }: WorkspaceOptions & KeyOptions = {},
): Promise<Trigger> {
  const body = { kind: "json", value: { ...description, idempotencyKey } } as const;
  return askJson(send, { operation: "createTrigger", query: { workspace }, body, signal }, trigger);
}

export function listTriggers(send: Send, options: PageOptions & WorkspaceOptions = {}): Promise<TriggerPage> {
  const { workspace, signal } = options;
  return askJson(send, { operation: "listTriggers", query: { workspace, ...pageQuery(options) }, signal }, triggerPage);
}

export function getTrigger(send: Send, triggerId: string, { signal }: CallOptions = {}): Promise<Trigger> {
  return askJson(send, { operation: "getTrigger", parameters: { triggerId }, signal }, trigger);
}

export function updateTrigger(
  send: Send,
  triggerId: string,
  patch: TriggerPatch,
  { signal }: CallOptions = {},
): Promise<Trigger> {
  const body = { kind: "json", value: patch } as const;
  return askJson(send, { operation: "updateTrigger", parameters: { triggerId }, body, signal }, trigger);
}

export async function removeTrigger(send: Send, triggerId: string, { signal }: CallOptions = {}): Promise<void> {
  await discard(await send({ operation: "removeTrigger", parameters: { triggerId }, signal }));
}
