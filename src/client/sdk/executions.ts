/** Executions: runs of engines, and their logs. */
import type { Execution, ExecutionState, LogLine } from "../../contract/engines.ts";
import { RemoteError } from "../errors.ts";
import { type Context, type RequestOptions, read, type WriteOptions, write } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface StartOptions extends WriteOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
  /** Any JSON that the engine accepts. */
  readonly input?: unknown;
}

export interface ExecutionListOptions extends RequestOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
  readonly state?: ExecutionState | undefined;
  /** Name or id of an engine. */
  readonly engine?: string | undefined;
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** A field of the execution; `-field` sorts in descending order. Default: -createdAt. */
  readonly orderBy?: string | undefined;
}

export interface LogOptions extends RequestOptions {
  /** Only lines after this number. Default 0: from the first. */
  readonly after?: number | undefined;
}

export interface LogListOptions extends LogOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
}

export interface LogFollowOptions extends LogOptions {
  /**
   * Called at each break, before the wait for the next try. Undefined: the gateway ended the stream although the
   * execution goes on.
   */
  readonly onBreak?: ((error: RemoteError | undefined) => void) | undefined;
}

/** States: queued, running, and then one of the final ones: succeeded, failed, cancelled, timed-out, interrupted. */
export interface Executions {
  /**
   * Runs an engine (name or id). "notFound": there is no such engine. "conflict": it is not installed in the workspace,
   * or the gateway runs no engines. "invalid" (field "input…"): the engine does not accept the input. "tooLarge": the
   * input has more than 64 KiB. "throttled": too many executions wait. "forbidden": not an editor. Scope:
   * execution.execution.run.
   */
  start(engine: string, options?: StartOptions): Promise<Execution>;
  /**
   * The executions of a workspace, the newest first. An engine that does not exist has none. Scope:
   * execution.execution.read. In all these calls, `cause.entry` is present only with the scope node.node.read-all.
   */
  list(options?: ExecutionListOptions): Paged<Execution>;
  /** "notFound": there is no such execution. Scope: execution.execution.read. */
  get(executionId: string, options?: RequestOptions): Promise<Execution>;
  /**
   * Ends an execution. One that has ended stays as it is. "notFound": there is no such execution. "forbidden": not an
   * editor. Scope: execution.execution.cancel.
   */
  cancel(executionId: string, options?: RequestOptions): Promise<Execution>;
  /**
   * Resolves when the execution has ended, in any final state. Breaks are waited out. "notFound": there is no such
   * execution. Scope: execution.execution.read.
   */
  wait(executionId: string, options?: RequestOptions): Promise<Execution>;
  /**
   * The lines of the log up to now, oldest first. "notFound": there is no such execution. Scope:
   * execution.execution.read.
   */
  log(executionId: string, options?: LogListOptions): Paged<LogLine>;
  /**
   * The lines of the log as they come, until the execution has ended. Breaks and restarts of the gateway are waited
   * out; each line comes once. "notFound": there is no such execution. Scope: execution.execution.read.
   */
  follow(executionId: string, options?: LogFollowOptions): AsyncGenerator<LogLine, void, undefined>;
}

export function createExecutions(context: Context): Executions {
  const executions: Executions = {
    start(engine, options = {}) {
      const { workspace = context.workspace, input, signal } = options;
      return write(context, "change", options, (client, idempotencyKey) =>
        client.startExecution(engine, { workspace, input, idempotencyKey, signal }),
      );
    },
    list(options = {}) {
      const { retries: _, workspace = context.workspace, ...which } = options;
      return paged((page) =>
        read(context, options, (client) => client.listExecutions({ ...which, ...page, workspace })),
      );
    },
    get: (executionId, options = {}) => read(context, options, (client) => client.getExecution(executionId, options)),
    // Repeated, it has the same result, so it is retried like a read.
    cancel: (executionId, options = {}) =>
      read(context, options, (client) => client.cancelExecution(executionId, options)),
    async wait(executionId, options = {}) {
      const { signal, retries } = options;
      for await (const _ of followLog(context, executionId, { signal, retries, after: Number.MAX_SAFE_INTEGER }));
      return executions.get(executionId, { signal, retries });
    },
    log(executionId, options = {}) {
      const { after = 0, pageSize, signal } = options;
      return paged((which) =>
        read(context, options, (client) =>
          client.readLogs(executionId, which.after === undefined ? after : Number(which.after), {
            pageSize,
            pageNo: which.pageNo,
            signal,
          }),
        ),
      );
    },
    follow: (executionId, options) => followLog(context, executionId, options),
  };
  return executions;
}

async function* followLog(
  context: Context,
  executionId: string,
  options: LogFollowOptions = {},
): AsyncGenerator<LogLine, void, undefined> {
  const { onBreak, signal } = options;
  let last = options.after ?? 0;
  let tried = 1;
  const onHeard = () => {
    tried = 1;
  };
  for (;;) {
    let broken: RemoteError | undefined;
    try {
      const client = await context.load();
      for await (const event of client.streamLogs(executionId, last, { onHeard, signal })) {
        if (event.end !== undefined) return;
        // A gateway may begin too early.
        if (event.line.number <= last) continue;
        last = event.line.number;
        yield event.line;
      }
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      broken = error;
    }
    onBreak?.(broken);
    await context.retrier.waitForever(
      broken ?? new RemoteError("offline", "streamLogs: the stream ended before the execution did"),
      tried,
      options,
    );
    tried += 1;
  }
}
