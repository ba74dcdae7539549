/**
 * The rows of executions. Each state is one change of the row and one journal entry of the installation's folder, in
 * one transaction: queued → running → a final one; also queued → cancelled. A final state stays.
 */
import { z } from "zod";
import { EXECUTION_STATES, type Execution, type ExecutionState } from "../../contract/engines.ts";
import { EXECUTION_KIND } from "../../contract/journal-kinds.ts";
import { type Author, journalEntry } from "../../contract/resources.ts";
import { checkAccess, shownAuthor } from "../access.ts";
import { beginChange, recordActivity, reread } from "../changes.ts";
import type { Context } from "../context.ts";
import { notFound } from "../problems.ts";
import { mayReadJournal } from "../scopes.ts";
import type { Store } from "../store.ts";
import type { Caller } from "../tokens.ts";
import type { Ending } from "./engine-queue.ts";

export interface ExecutionRow {
  readonly number: number;
  readonly id: string;
  readonly workspace: string;
  readonly workspaceName: string;
  readonly engine: string;
  readonly engineName: string;
  readonly installation: string;
  /** Node of the installation. */
  readonly folder: string;
  readonly state: ExecutionState;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly exitCode: number | null;
  readonly detail: string | null;
  readonly logBytes: number;
  /** Id of the account that it runs for. */
  readonly account: string | null;
  /** JSON of an Author. */
  readonly by: string | null;
  readonly triggerId: string | null;
  /** JSON. */
  readonly cause: string | null;
  readonly input: string;
}

const SELECT = `SELECT e.number, e.id, e.workspace, w.name AS workspaceName, e.engine, e.engine_name AS engineName,
    e.installation, e.folder, e.state, e.created_at AS createdAt, e.started_at AS startedAt, e.ended_at AS endedAt,
    e.exit_code AS exitCode, e.detail, e.log_bytes AS logBytes, e.account, e.by, e.trigger_id AS triggerId, e.cause, e.input
  FROM execution e JOIN workspace w ON w.id = e.workspace`;

export function findExecution(store: Store, id: string): ExecutionRow | undefined {
  return store.prepare<ExecutionRow>(`${SELECT} WHERE e.id = ?`).get(id);
}

/** Called for each request with an execution's token. */
export function isRunning(store: Store, id: string): boolean {
  return store.prepare("SELECT 1 FROM execution WHERE id = ? AND state = 'running'").get(id) !== undefined;
}

/**
 * Throws 404 when there is none or the account has no role in its workspace, and 403 when the role or the token is not
 * enough.
 */
export function executionSeen(context: Context, caller: Caller, id: string): ExecutionRow {
  const unseen = () => notFound(`There is no execution ${JSON.stringify(id)}.`);
  const row = findExecution(context.store, id);
  if (row === undefined) throw unseen();
  checkAccess(context, caller, row.workspace, unseen);
  return row;
}

const storedCause = z.object({ entry: journalEntry.optional(), scheduledFor: z.number().optional() });
const moment = (time: number) => new Date(time).toISOString();

/**
 * Returns the execution as the caller may see it: the journal entry that started it needs the scopes of the journal.
 */
export function executionFor(context: Pick<Context, "engines">, caller: Caller, row: ExecutionRow): Execution {
  const { cause, ...shown } = showExecution(context, row);
  if (cause === null || mayReadJournal(caller)) return { ...shown, cause };
  const { entry: _, ...rest } = cause;
  return { ...shown, cause: rest };
}

/** Returns the whole execution, for the gateway itself and the engine's program. */
export function showExecution({ engines }: Pick<Context, "engines">, row: ExecutionRow): Execution {
  return {
    id: row.id,
    engine: { id: row.engine, name: row.engineName },
    workspace: { id: row.workspace, name: row.workspaceName },
    installationId: row.installation,
    state: row.state,
    input: JSON.parse(row.input),
    cause: shownCause(row),
    createdAt: moment(row.createdAt),
    startedAt: row.startedAt === null ? null : moment(row.startedAt),
    endedAt: row.endedAt === null ? null : moment(row.endedAt),
    exitCode: row.exitCode,
    detail: row.detail,
    logBytes: row.state === "running" ? (engines?.logs.bytes(row.id) ?? 0) : row.logBytes,
    by: shownAuthor(row.by),
  };
}

function shownCause({ triggerId, cause }: ExecutionRow): Execution["cause"] {
  if (triggerId === null) return null;
  const { entry, scheduledFor } = storedCause.parse(JSON.parse(cause ?? "{}"));
  return {
    triggerId,
    ...(entry === undefined ? {} : { position: entry.position, entry }),
    ...(scheduledFor === undefined ? {} : { scheduledFor: moment(scheduledFor) }),
  };
}

interface NewExecutionRow {
  readonly workspace: string;
  readonly engine: { readonly id: string; readonly name: string };
  readonly installation: { readonly id: string; readonly folder: string };
  /** JSON. */
  readonly input: string;
  readonly account: string | null;
  readonly by: Author | null;
  readonly trigger?: {
    readonly id: string;
    readonly key: string;
    readonly cause: z.input<typeof storedCause>;
  };
}

/** Called within a transaction: inserts a queued execution. Returns its id. */
export function insertExecution(context: Context, made: NewExecutionRow): string {
  const { store, clock } = context;
  const id = clock.uuid();
  const { folder } = made.installation;
  const { position, time } = tell(context, { id, folder }, "queued", made.by?.account ?? null);
  store
    .prepare(
      `INSERT INTO execution (id, workspace, engine, engine_name, installation, folder, state, position, created_at,
                              account, by, trigger_id, trigger_key, cause, input)
       VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      id,
      made.workspace,
      made.engine.id,
      made.engine.name,
      made.installation.id,
      folder,
      position,
      time,
      made.account,
      made.by === null ? null : JSON.stringify(made.by),
      made.trigger?.id ?? null,
      made.trigger?.key ?? null,
      made.trigger === undefined ? null : JSON.stringify(made.trigger.cause),
      made.input,
    );
  return id;
}

const ALLOWED: Readonly<Record<ExecutionState, readonly ExecutionState[]>> = {
  queued: ["running", "cancelled"],
  running: EXECUTION_STATES.filter((state) => state !== "queued" && state !== "running"),
  ...{ succeeded: [], failed: [], cancelled: [], "timed-out": [], interrupted: [] },
};

/**
 * Called within a transaction: sets the next state. False: this state cannot follow the present one, and nothing was
 * done.
 */
export function moveExecution(context: Context, id: string, to: ExecutionState, ending: Ending = {}): boolean {
  const { store } = context;
  const row = findExecution(store, id);
  if (row === undefined || !ALLOWED[row.state].includes(to)) return false;
  const { exitCode = null, detail = null, logBytes = 0, account = shownAuthor(row.by)?.account ?? null } = ending;
  const { time } = tell(context, row, to, account);
  if (to === "running") {
    store.prepare("UPDATE execution SET state = 'running', started_at = ? WHERE id = ?").run(time, id);
  } else {
    store
      .prepare("UPDATE execution SET state = ?, ended_at = ?, exit_code = ?, detail = ?, log_bytes = ? WHERE id = ?")
      .run(to, time, exitCode, detail, logBytes, id);
  }
  return true;
}

function tell(
  context: Context,
  { id, folder }: { readonly id: string; readonly folder: string },
  state: ExecutionState,
  account: string | null,
) {
  const change = beginChange(context, { by: { account, execution: id } });
  // The folder may be deleted by now; its history goes on.
  return { position: recordActivity(context, change, reread(context, folder), EXECUTION_KIND + state), ...change };
}
