/** Triggers and schedules over HTTP; dispatcher.ts starts engines by them. */
import type { Trigger } from "../../contract/triggers.ts";
import { changeOf } from "../access.ts";
import type { Context } from "../context.ts";
import { requiredInstallation } from "../engines/index.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "../exchange.ts";
import { once } from "../idempotency.ts";
import { lastChange } from "../lag.ts";
import { pageOfItems } from "../paging.ts";
import { conflict, invalid } from "../problems.ts";
import { callWorkspace } from "../workspaces.ts";
import { checkCondition, conditionOf } from "./condition.ts";
import { findTrigger, showTrigger, triggerSeen, triggersOf } from "./rows.ts";

export { createDispatcher } from "./dispatcher.ts";

/** The trigger begins at the present: existing entries and past times start nothing. */
export function createTrigger(context: Context, call: Call<"createTrigger">): GatewayAnswer {
  const { store, clock } = context;
  const { caller, json } = call;
  const { id: workspace } = callWorkspace(context, caller, call.query.workspace);
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  const { name, on, input = null, isEnabled = true, idempotencyKey: key } = json;
  checkCondition(on, clock.wallClock());
  const answer = store.transaction(() => {
    const request = { workspace, key, same: ["createTrigger", name, json.engine, on, [input], Number(isEnabled)] };
    const effect = () => {
      const { engine, input: checked } = requiredInstallation(context, workspace, json.engine, input);
      if (
        store.prepare("SELECT 1 FROM engine_trigger WHERE workspace = ? AND name = ?").get(workspace, name) !==
        undefined
      ) {
        throw conflict(`There is a trigger ${JSON.stringify(name)} in the workspace already.`);
      }
      const id = clock.uuid();
      const { by } = changeOf(caller, key);
      const condition = JSON.stringify(on);
      const { position, dueAt } = present(context, condition);
      store
        .prepare(
          `INSERT INTO engine_trigger (id, workspace, name, engine, engine_name, condition, input, enabled, created_at,
                                       account, by, position, due_at, failures)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
        )
        .run(
          ...[id, workspace, name, engine.id, engine.name, condition, checked, Number(isEnabled)],
          ...[Math.floor(clock.wallClock()), caller.account?.id ?? null, by === null ? null : JSON.stringify(by)],
          ...[position, dueAt],
        );
      context.withNews.add(workspace);
      return { status: 201, value: shown(context, id) };
    };
    // A caller that may make a trigger sees the answer, even without the right to read files.
    return once(context, caller, request, effect, (value) => value);
  });
  context.triggers.look(workspace);
  return answer;
}

/** Returns where a trigger of this stored condition begins now. */
function present({ store, clock }: Context, stored: string) {
  const condition = conditionOf(stored);
  const dueAt = "schedule" in condition ? (condition.schedule.next(clock.wallClock()) ?? null) : null;
  return { position: lastChange(store).position, dueAt };
}

function shown({ store }: Context, id: string): Trigger {
  const row = findTrigger(store, id);
  if (row === undefined) throw new Error(`Trigger ${id} is gone within its own change.`);
  return showTrigger(row);
}

const FIELDS = ["id", "name", "engine", "workspace", "isEnabled", "createdAt", "nextAt", "failures"] as const;

export function listTriggers(context: Context, call: Call<"listTriggers">): GatewayAnswer {
  const { store } = context;
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const items = triggersOf(store, workspace.id).map(showTrigger);
  const by = (field: (typeof FIELDS)[number]) => (item: Trigger) => {
    if (field === "engine" || field === "workspace") return item[field].name;
    return field === "isEnabled" ? Number(item.isEnabled) : (item[field] ?? "");
  };
  const { position: asOf } = lastChange(store);
  return jsonAnswer(200, pageOfItems(call.query, { items, fields: FIELDS, fallback: "name", by, asOf }));
}

export function getTrigger(context: Context, call: Call<"getTrigger">): GatewayAnswer {
  return jsonAnswer(200, showTrigger(triggerSeen(context, call.caller, call.parameters.triggerId)));
}

/**
 * Executions run for the account of the last change of the trigger, so that no caller can change the actions of another
 * account. The trigger begins at the present when its condition changes or it was off, and tries again at once when it
 * was failing.
 */
export function updateTrigger(context: Context, call: Call<"updateTrigger">): GatewayAnswer {
  const { store, clock } = context;
  const { caller, json } = call;
  const before = triggerSeen(context, caller, call.parameters.triggerId);
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  const { on, isEnabled = before.enabled === 1 } = json;
  if (on !== undefined) checkCondition(on, clock.wallClock());
  const changed = store.transaction(() => {
    const input =
      json.input === undefined
        ? before.input
        : requiredInstallation(context, before.workspace, before.engine, json.input).input;
    const condition = on === undefined ? before.condition : JSON.stringify(on);
    const begins = condition !== before.condition || (isEnabled && before.enabled === 0);
    const { position, dueAt } = begins ? present(context, condition) : before;
    const { by } = changeOf(caller, null);
    store
      .prepare(
        `UPDATE engine_trigger SET condition = ?, input = ?, enabled = ?, account = ?, by = ?, position = ?, due_at = ?,
           failures = 0, retry_at = NULL, detail = NULL, watched = NULL WHERE id = ?`,
      )
      .run(
        ...[condition, input, Number(isEnabled)],
        ...[caller.account?.id ?? null, by === null ? null : JSON.stringify(by), position, dueAt, before.id],
      );
    context.withNews.add(before.workspace);
    return shown(context, before.id);
  });
  context.triggers.look(before.workspace);
  return jsonAnswer(200, changed);
}

/** The executions it has started go on. */
export function removeTrigger(context: Context, call: Call<"removeTrigger">): GatewayAnswer {
  context.store.transaction(() => {
    const { id } = triggerSeen(context, call.caller, call.parameters.triggerId);
    context.store.prepare("DELETE FROM engine_trigger WHERE id = ?").run(id);
  });
  return { status: 204, headers: {} };
}
