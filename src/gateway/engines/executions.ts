/** Executions over HTTP and for triggers: started, listed, cancelled. */
import type { Author, JournalEntry } from "../../contract/resources.ts";
import { includesRole } from "../../contract/roles.ts";
import { sleep } from "../../lib/runtime.ts";
import { changeOf } from "../access.ts";
import type { Context } from "../context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "../exchange.ts";
import { once } from "../idempotency.ts";
import { lastChange } from "../lag.ts";
import { pageOfItems } from "../paging.ts";
import { conflict, invalid, lacksGrant, notFound, tooMany } from "../problems.ts";
import { callWorkspace } from "../workspaces.ts";
import {
  executionFor,
  executionSeen,
  findExecution,
  insertExecution,
  moveExecution,
  showExecution,
} from "./execution-rows.ts";
import { checkedInput } from "./input.ts";
import { findInstallation, requiredEngine } from "./installations.ts";

/** The largest number of waiting executions of a workspace. */
const WAITING_MAX = 1000;
const RETRY_AFTER_SECONDS = 5;
/** The longest time for which an answer waits for the processes of a cancelled execution to end. */
const CANCEL_MS = 10_000;

interface Wanted {
  readonly workspace: string;
  /** Name or id. */
  readonly engine: string;
  readonly input: unknown;
  readonly account: string | null;
  readonly by: Author | null;
}

/**
 * Returns the engine, its installation in the workspace, and the input as JSON. Throws a ProblemError: 404 if there is
 * no such engine, 409 if it is not installed, 400 or 413 if it does not accept the input.
 */
export function requiredInstallation(context: Context, workspace: string, nameOrId: string, given: unknown) {
  const engine = requiredEngine(context, nameOrId);
  const installation = findInstallation(context.store, workspace, engine.id);
  if (installation === undefined) throw conflict(`The engine ${engine.name} is not installed in the workspace.`);
  return { engine, installation, input: checkedInput(engine, given) };
}

/** Called within a transaction. Returns the id of the new execution. */
function enqueue(
  context: Context,
  { workspace, account, by, ...wanted }: Wanted,
  trigger?: Parameters<typeof insertExecution>[1]["trigger"],
): string {
  const { store, engines } = context;
  if (engines === undefined) throw conflict("This gateway runs no engines.");
  const { engine, installation, input } = requiredInstallation(context, workspace, wanted.engine, wanted.input);
  const waiting = store
    .prepare<number>("SELECT count(*) FROM execution WHERE workspace = ? AND state = 'queued'")
    .pluck()
    .get(workspace);
  if ((waiting ?? 0) >= WAITING_MAX) {
    throw tooMany(`${waiting} executions wait in the workspace, which are as many as may.`, RETRY_AFTER_SECONDS);
  }
  const id = insertExecution(context, {
    ...{ workspace, engine, installation, input, account, by },
    ...(trigger === undefined ? {} : { trigger }),
  });
  engines.look();
  return id;
}

export function startExecution(context: Context, call: Call<"startExecution">): GatewayAnswer {
  const { caller, json } = call;
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  const { id: workspace } = callWorkspace(context, caller, call.query.workspace);
  const { engine, input = null, idempotencyKey: key } = json;
  return context.store.transaction(() => {
    const request = { workspace, key, same: ["startExecution", engine, [input]] };
    const effect = () => {
      const account = caller.account?.id ?? null;
      return {
        status: 201,
        value: enqueue(context, { workspace, engine, input, account, by: changeOf(caller, key).by }),
      };
    };
    // Only the id is stored with the key: the row has the rest, and the input need not be stored twice.
    return once(context, caller, request, effect, (id) => {
      const row = findExecution(context.store, String(id));
      if (row === undefined) throw notFound(`The execution ${id} that was started with this key is forgotten by now.`);
      return executionFor(context, caller, row);
    });
  });
}

const FIELDS = ["id", "engine", "state", "createdAt", "startedAt", "endedAt", "exitCode"] as const;
type Field = (typeof FIELDS)[number];
type Listed = Readonly<Record<Field, string | number | null>> & { readonly id: string };

export function listExecutions(context: Context, call: Call<"listExecutions">): GatewayAnswer {
  const { store } = context;
  const { state = null, engine = null, orderBy = "-createdAt", ...query } = call.query;
  const { id: workspace } = callWorkspace(context, call.caller, query.workspace);
  // All rows are read: the number of executions is limited. `number` stands for createdAt, because both grow together.
  const items = (asOf: number) =>
    store
      .prepare<Listed>(
        `SELECT id, engine_name AS engine, state, number AS createdAt, started_at AS startedAt, ended_at AS endedAt,
                exit_code AS exitCode
         FROM execution WHERE workspace = :workspace AND position <= :asOf
           AND (:state IS NULL OR state = :state) AND (:engine IS NULL OR :engine IN (engine, engine_name))
         ORDER BY number`,
      )
      .all({ workspace, asOf, state, engine });
  const page = pageOfItems(
    { ...query, orderBy },
    {
      ...{ items, fields: FIELDS, fallback: "createdAt" },
      by: (field) => (item) => item[field] ?? "",
      asOf: lastChange(store).position,
    },
  );
  const shown = page.items.flatMap(({ id }) => {
    const row = findExecution(store, id);
    return row === undefined ? [] : [executionFor(context, call.caller, row)];
  });
  return jsonAnswer(200, { ...page, items: shown });
}

export function getExecution(context: Context, call: Call<"getExecution">): GatewayAnswer {
  const row = executionSeen(context, call.caller, call.parameters.executionId);
  return jsonAnswer(200, executionFor(context, call.caller, row));
}

/** A running execution is cancelled when its processes are gone. The answer waits for that, but not for ever. */
export async function cancelExecution(context: Context, call: Call<"cancelExecution">): Promise<GatewayAnswer> {
  const { store, clock, engines } = context;
  const { caller } = call;
  const { id } = executionSeen(context, caller, call.parameters.executionId);
  const account = caller.account?.name ?? null;
  const detail = account === null ? "It was cancelled." : `${account} cancelled it.`;
  const takeOut = () =>
    store.transaction(() => {
      if (findExecution(store, id)?.state === "queued") moveExecution(context, id, "cancelled", { account, detail });
      return findExecution(store, id)?.state;
    });
  if (takeOut() === "running" && engines !== undefined) {
    await Promise.race([engines.cancel(id, { account, detail }), sleep(clock, CANCEL_MS)]);
    // An execution whose start could not be committed waits again.
    takeOut();
  }
  return jsonAnswer(200, executionFor(context, caller, executionSeen(context, caller, id)));
}

/** The request of a trigger. */
interface TriggeredExecution extends Wanted {
  /** Id of the workspace. */
  readonly workspace: string;
  /** Id of the engine, which must be installed there. */
  readonly engine: string;
  readonly input: unknown;
  /** Id of the account that it runs for. Null: none. */
  readonly account: string | null;
  readonly by: Author | null;
  readonly triggerId: string;
  readonly entry?: JournalEntry;
  /** Milliseconds since the epoch. */
  readonly scheduledFor?: number;
  /**
   * Unique for the trigger and its occasion. A key makes only one execution, also after a restart.
   */
  readonly key: string;
}

/**
 * Queues an execution within the caller's transaction. Returns its id, and the same id for a key that was used before.
 * Throws a ProblemError when the engine is missing or not installed, does not accept the input, when the account may
 * not run it any more, or when too many wait (429).
 */
export function queueTriggered(context: Context, wanted: TriggeredExecution): string {
  const { triggerId, key, entry, scheduledFor, workspace, account } = wanted;
  const known = context.store.prepare<string>("SELECT id FROM execution WHERE trigger_key = ?").pluck().get(key);
  if (known !== undefined) return known;
  if (!mayRun(context, account, workspace)) {
    throw lacksGrant("The trigger's account may not run engines in the workspace any more.", workspace, "editor");
  }
  const cause = {
    ...(entry === undefined ? {} : { entry }),
    ...(scheduledFor === undefined ? {} : { scheduledFor }),
  };
  return enqueue(context, wanted, { id: triggerId, key, cause });
}

/** True if the account still exists and its role is enough. */
export function mayRun({ accounts }: Context, account: string | null, workspace: string): boolean {
  if (account === null) return true;
  const role = accounts.find(account) === undefined ? undefined : accounts.role(account, workspace);
  return role !== undefined && includesRole(role, "editor");
}

/** Returns the end of an execution that a trigger started. Undefined: it has not ended, or is unknown. */
export function endOf(context: Context, id: string): "succeeded" | "failed" | undefined {
  const row = findExecution(context.store, id);
  if (row === undefined || row.endedAt === null) return undefined;
  return row.state === "succeeded" ? "succeeded" : "failed";
}

/**
 * Returns the origin of an execution: a trigger, another execution (by its journal entry or its call), both or neither.
 */
export function originOf(
  context: Context,
  id: string,
): { readonly trigger: string | null; readonly execution: string | null } | undefined {
  const row = findExecution(context.store, id);
  if (row === undefined) return undefined;
  const { cause, by } = showExecution(context, row);
  return { trigger: row.triggerId, execution: (cause === null ? by : cause.entry?.by)?.execution ?? null };
}
