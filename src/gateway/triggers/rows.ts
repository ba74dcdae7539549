/** The rows of triggers. */
import { type Trigger, triggerCondition } from "../../contract/triggers.ts";
import { checkAccess, shownAuthor } from "../access.ts";
import type { Context } from "../context.ts";
import { notFound } from "../problems.ts";
import type { Store } from "../store.ts";
import type { Caller } from "../tokens.ts";

export interface TriggerRow {
  readonly id: string;
  readonly workspace: string;
  readonly workspaceName: string;
  readonly name: string;
  readonly engine: string;
  readonly engineName: string;
  /** JSON. */
  readonly condition: string;
  /** JSON. */
  readonly input: string;
  readonly enabled: number;
  readonly createdAt: number;
  /** Id of the account that its executions run for; null: no account. */
  readonly account: string | null;
  /** JSON of an Author. */
  readonly by: string | null;
  /** For a journal condition: entries up to here are handled. */
  readonly position: number;
  /** For a schedule: the next due time. */
  readonly dueAt: number | null;
  readonly failures: number;
  /** The trigger starts nothing before this time. */
  readonly retryAt: number | null;
  readonly detail: string | null;
  readonly lastExecution: string | null;
  /** One of its executions, whose end has to be checked. */
  readonly watched: string | null;
}

const SELECT = `SELECT t.id, t.workspace, w.name AS workspaceName, t.name, t.engine, t.engine_name AS engineName, t.condition,
    t.input, t.enabled, t.created_at AS createdAt, t.account, t.by, t.position, t.due_at AS dueAt, t.failures,
    t.retry_at AS retryAt, t.detail, t.last_execution AS lastExecution, t.watched
  FROM engine_trigger t JOIN workspace w ON w.id = t.workspace`;

export function findTrigger(store: Store, id: string): TriggerRow | undefined {
  return store.prepare<TriggerRow>(`${SELECT} WHERE t.id = ?`).get(id);
}

export function triggersOf(store: Store, workspace: string): TriggerRow[] {
  return store.prepare<TriggerRow>(`${SELECT} WHERE t.workspace = ? ORDER BY t.name`).all(workspace);
}

export function enabledTriggersOf(store: Store, workspace: string): TriggerRow[] {
  return store.prepare<TriggerRow>(`${SELECT} WHERE t.workspace = ? AND t.enabled = 1 ORDER BY t.name`).all(workspace);
}

/**
 * Throws a 404 when there is no such trigger or the account has no role in its workspace, and a 403 when the role or
 * the token is not enough.
 */
export function triggerSeen(context: Context, caller: Caller, id: string): TriggerRow {
  const unseen = () => notFound(`There is no trigger ${JSON.stringify(id)}.`);
  const row = findTrigger(context.store, id);
  if (row === undefined) throw unseen();
  checkAccess(context, caller, row.workspace, unseen);
  return row;
}

const moment = (time: number | null) => (time === null ? null : new Date(time).toISOString());

export function showTrigger(row: TriggerRow): Trigger {
  return {
    id: row.id,
    name: row.name,
    workspace: { id: row.workspace, name: row.workspaceName },
    engine: { id: row.engine, name: row.engineName },
    on: triggerCondition.parse(JSON.parse(row.condition)),
    input: JSON.parse(row.input),
    isEnabled: row.enabled === 1,
    createdAt: new Date(row.createdAt).toISOString(),
    by: shownAuthor(row.by),
    lastExecutionId: row.lastExecution,
    nextAt: row.enabled === 1 ? moment(row.retryAt ?? row.dueAt) : null,
    failures: row.failures,
    detail: row.detail,
  };
}
