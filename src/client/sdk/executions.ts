/** Executions: runs of engines, and what they say. */
import type { Execution, ExecutionState, LogLine } from "../../contract/engines.ts";
import { RemoteError } from "../errors.ts";
import { type Context, type RequestOptions, read, type WriteOptions, write } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface StartOptions extends WriteOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
  /** Any JSON that the engine takes. */
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
  /** A field of the execution, `-field` for descending. Default: -createdAt. */
  readonly orderBy?: string | undefined;
}

export interface LogOptions extends RequestOptions {
  /** Number of a line: only those after it. Default 0: from the first. */
  readonly after?: number | undefined;
}

export interface LogListOptions extends LogOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
}

export interface LogFollowOptions extends LogOptions {
  /** Told of each break, before the wait for the next try; undefined when the gateway ended the stream too early. */
  readonly onBreak?: ((error: RemoteError | undefined) => void) | undefined;
}

/** States: queued, running, then for good succeeded, failed, cancelled, timed-out or interrupted. */
export interface Executions {
  /** Runs an engine, by name or id, that is installed in the workspace, else "conflict". "throttled": too many wait. An editor; scope: execution.execution.run. */
  start(engine: string, options?: StartOptions): Promise<Execution>;
  /** Newest first. Scope: execution.execution.read; `cause.entry` is there with node.node.read-all only, as in all of these. */
  list(options?: ExecutionListOptions): Paged<Execution>;
  /** Scope: execution.execution.read. */
  get(executionId: string, options?: RequestOptions): Promise<Execution>;
  /** One that has ended stays as it is. An editor; scope: execution.execution.cancel. */
  cancel(executionId: string, options?: RequestOptions): Promise<Execution>;
  /** Resolves once it has ended, however it did. Breaks are waited out. Scope: execution.execution.read. */
  wait(executionId: string, options?: RequestOptions): Promise<Execution>;
  /** What it has said up to now, oldest first. Scope: execution.execution.read. */
  log(executionId: string, options?: LogListOptions): Paged<LogLine>;
  /** What it says, as it comes, until it has ended. Breaks, and restarts of the gateway, are waited out; each line comes once. Scope: execution.execution.read. */
  follow(executionId: string, options?: LogFollowOptions): AsyncGenerator<LogLine, void, undefined>;
}

export function createExecutions(context: Context): Executions {
  const executions: Executions = {
    start(engine, options = {}) {
      const { workspace = context.workspace, input, signal } = options;
      return write(context, "changeKeys", options, (client, idempotencyKey) =>
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
    // Sent twice it leaves what it left.
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
        // A gateway that begins too early.
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
