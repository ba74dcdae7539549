/**
 * Runs the waiting executions: a limited number at a time, those of one workspace in the order in which they were
 * requested, and workspaces in turn. Waiting executions exist only in the store.
 *
 * Invariant: a program starts only after the commit of the state `running` of its execution. The state becomes final
 * only after the last of its processes has ended. So an execution left by a gateway that died is `running` in the
 * store: either it did not start, or its processes are known by its id. It is never started again.
 */
import type { Logger } from "../../lib/log.ts";
import { sleep } from "../../lib/runtime.ts";
import { DAY_MS } from "../../lib/time.ts";
import type { Context } from "../context.ts";
import { STORE_RETRY_MS } from "../store.ts";
import type { TokenClaims } from "../tokens.ts";
import type { Ending, EngineHost, EngineQueue } from "./engine-queue.ts";
import { type ExecutionRow, findExecution, moveExecution, showExecution } from "./execution-rows.ts";
import { mayRun } from "./executions.ts";
import { findInstallation } from "./installations.ts";
import type { RunEnd, RunningEngine } from "./processes.ts";

/** When the gateway closes, engines have this long to end by themselves. */
const CLOSE_GRACE_MS = 1000;
/** The time for which an execution that has ended is kept, with its log; and the largest number of a workspace. */
const KEPT_MS = 30 * DAY_MS;
const KEPT_COUNT = 1000;
const FORGET_BATCH = 100;
/**
 * The token of an execution expires this long after its time limit, because a machine may sleep meanwhile. The end of
 * the execution ends the token earlier.
 */
const TOKEN_SPARE_SECONDS = (30 * DAY_MS) / 1000;

interface Running {
  done: Promise<void>;
  engine?: RunningEngine;
  /** The end of the execution, whatever its exit code will be. */
  ending?: Ending & { readonly state: "cancelled" | "interrupted" };
}

const NOT_BEGUN: RunEnd = { exitCode: null, timedOut: false, detail: null };
const INTERRUPTED = { state: "interrupted", detail: "The gateway ended while it ran." } as const;

export function createQueue(
  context: Context,
  host: EngineHost,
  issueToken: (claims: TokenClaims) => string,
  log: Logger,
): EngineQueue {
  const { store, clock } = context;
  const running = new Map<string, Running>();
  let baseUrl: string | undefined;
  let isClosing = false;
  let isLooking = false;
  /** The workspace that had the last turn. */
  let last = "";

  /** Returns the next workspace after this one with a waiting execution. */
  function workspaceAfter(workspace: string): string | undefined {
    return store
      .prepare<string>(
        "SELECT workspace FROM execution WHERE state = 'queued' AND workspace > ? ORDER BY workspace LIMIT 1",
      )
      .pluck()
      .get(workspace);
  }

  function firstOf(workspace: string): string | undefined {
    return store
      .prepare<string>("SELECT id FROM execution WHERE state = 'queued' AND workspace = ? ORDER BY number LIMIT 1")
      .pluck()
      .get(workspace);
  }

  /** Within a transaction: returns the next execution, now running; undefined when none waits. */
  function takeNext(): ExecutionRow | undefined {
    for (;;) {
      const workspace = workspaceAfter(last) ?? workspaceAfter("");
      const id = workspace === undefined ? undefined : firstOf(workspace);
      const row = id === undefined ? undefined : findExecution(store, id);
      if (row === undefined) return undefined;
      last = row.workspace;
      const detail = hindrance(row);
      if (detail === undefined) {
        moveExecution(context, row.id, "running");
        return row;
      }
      moveExecution(context, row.id, "cancelled", { detail });
    }
  }

  /** Returns the reason why the execution cannot run any more, if something has changed since the request. */
  function hindrance({ engine, engineName, workspace, account }: ExecutionRow): string | undefined {
    if (context.registered.find(engine) === undefined) return `There is no engine ${engineName} any more.`;
    if (findInstallation(store, workspace, engine) === undefined) {
      return `The engine ${engineName} is not installed in the workspace any more.`;
    }
    return mayRun(context, account, workspace)
      ? undefined
      : "Its account may not run engines in the workspace any more.";
  }

  function fill(): void {
    isLooking = false;
    while (!isClosing && baseUrl !== undefined && running.size < host.maxExecutions) {
      let row: ExecutionRow | undefined;
      try {
        row = store.transaction(takeNext);
      } catch (error) {
        log.error({ err: error }, "the next execution cannot be taken from the store");
        clock.setTimer(STORE_RETRY_MS, look);
        return;
      }
      if (row === undefined) return;
      const entry: Running = { done: Promise.resolve() };
      running.set(row.id, entry);
      entry.done = run(row, baseUrl, entry);
    }
  }

  function look(): void {
    if (isLooking || isClosing) return;
    isLooking = true;
    // Not at once: the caller may be within a transaction.
    clock.soon(fill);
  }

  async function run(row: ExecutionRow, base: string, entry: Running): Promise<void> {
    try {
      await store.committed();
    } catch (error) {
      // The execution waits as before.
      log.error({ err: error, execution: row.id }, "an execution could not begin");
      running.delete(row.id);
      clock.setTimer(STORE_RETRY_MS, look);
      return;
    }
    clock.step("gateway: execution taken");
    const end = entry.ending === undefined ? await runProgram(row, base, entry) : NOT_BEGUN;
    clock.step("gateway: execution ended");
    await finish(row, end, entry.ending);
    running.delete(row.id);
    host.logs.news.fire([row.id]);
    look();
    await forgetAll(() => beyondCount(row.workspace));
  }

  async function runProgram(row: ExecutionRow, base: string, entry: Running): Promise<RunEnd> {
    try {
      entry.engine = host.processes.start(programOf(row, base));
    } catch (error) {
      log.error({ err: error, execution: row.id }, "an execution could not be started");
      return { ...NOT_BEGUN, detail: `It could not be started: ${error instanceof Error ? error.message : error}` };
    }
    clock.step("gateway: execution started");
    return entry.engine.ended;
  }

  function programOf(row: ExecutionRow, base: string) {
    const engine = context.registered.find(row.engine);
    if (engine === undefined) throw new Error(`there is no engine ${row.engineName} any more`);
    const { id, workspace, account } = row;
    const ttlSeconds = engine.timeLimitSeconds + TOKEN_SPARE_SECONDS;
    const token = issueToken({
      scopes: engine.scopes,
      workspace,
      ttlSeconds,
      execution: id,
      account: account ?? undefined,
    });
    const now = findExecution(store, id) ?? row;
    return {
      id,
      command: engine.command,
      environment: {
        WSFS_BASE_URL: base,
        WSFS_TOKEN: token,
        WSFS_WORKSPACE: workspace,
        WSFS_FOLDER: row.folder,
        WSFS_ENGINE: row.engineName,
      },
      files: { "execution.json": JSON.stringify(showExecution(context, now)) },
      input: row.input,
      timeLimitMs: engine.timeLimitSeconds * 1000,
      log: host.logs.open(id),
    };
  }

  /**
   * Tries until the result is stored or the gateway closes. If it closes first, its next start marks the execution as
   * interrupted.
   */
  async function finish(row: ExecutionRow, end: RunEnd, ending: Running["ending"]): Promise<void> {
    const state = ending?.state ?? (end.timedOut ? "timed-out" : end.exitCode === 0 ? "succeeded" : "failed");
    const detail = ending?.detail ?? end.detail ?? (state === "succeeded" ? null : detailOf(state, end));
    const logBytes = host.logs.bytes(row.id);
    for (;;) {
      try {
        store.transaction(() =>
          moveExecution(context, row.id, state, { ...ending, exitCode: end.exitCode, detail, logBytes }),
        );
        await store.committed();
        return;
      } catch (error) {
        log.error({ err: error, execution: row.id }, "the end of an execution could not be kept");
        if (isClosing) return;
        await sleep(clock, STORE_RETRY_MS);
      }
    }
  }

  function beyondCount(workspace: string): string[] {
    return store
      .prepare<string>(
        `SELECT id FROM execution WHERE workspace = ? AND ended_at IS NOT NULL
         ORDER BY number DESC LIMIT ${FORGET_BATCH} OFFSET ${KEPT_COUNT}`,
      )
      .pluck()
      .all(workspace);
  }

  function beyondAge(): string[] {
    return store
      .prepare<string>(
        `SELECT id FROM execution WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ${FORGET_BATCH}`,
      )
      .pluck()
      .all(clock.wallClock() - KEPT_MS);
  }

  /** The row is removed last: a log without a row would stay for ever. */
  async function forgetAll(some: () => readonly string[]): Promise<void> {
    try {
      for (let ids = some(); ids.length > 0 && !isClosing; ids = some()) {
        for (const id of ids) await host.logs.remove(id);
        store.transaction(() => {
          for (const id of ids) store.prepare("DELETE FROM execution WHERE id = ?").run(id);
        });
      }
    } catch (error) {
      log.error({ err: error }, "executions that ended long ago could not be removed");
    }
  }

  return {
    logs: host.logs,
    async recover() {
      const left = store
        .prepare<string>("SELECT id FROM execution WHERE state = 'running' ORDER BY number")
        .pluck()
        .all();
      const alive = await host.processes.endLeft(left);
      if (alive.length > 0) log.error({ processes: alive }, "processes of executions cannot be ended");
      clock.step("gateway: left executions ended");
      for (const id of left) {
        const { state, ...ending } = INTERRUPTED;
        store.transaction(() => moveExecution(context, id, state, { ...ending, logBytes: host.logs.bytes(id) }));
      }
      store.flush();
    },
    begin(address) {
      baseUrl = address;
      look();
    },
    look,
    async cancel(id, ending) {
      const entry = running.get(id);
      if (entry === undefined) return;
      entry.ending ??= { ...ending, state: "cancelled" };
      void entry.engine?.end();
      await entry.done;
    },
    forget: () => forgetAll(beyondAge),
    async close() {
      isClosing = true;
      for (const entry of running.values()) {
        entry.ending ??= INTERRUPTED;
        void entry.engine?.end(CLOSE_GRACE_MS);
      }
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}

function detailOf(state: string, { exitCode }: RunEnd): string {
  if (state === "timed-out") return "It ran longer than the engine may.";
  return exitCode === null ? "It ended by a signal." : `It ended with exit code ${exitCode}.`;
}
