/** The interface of the queue that runs engines (queue.ts), and its needs. */
import type { Logs } from "./logs.ts";
import type { EngineProcesses } from "./processes.ts";

/** The end of an execution. */
export interface Ending {
  readonly exitCode?: number | null;
  readonly detail?: string | null;
  readonly logBytes?: number;
  /** Name of the account that ended it. Absent: the account that it ran for. */
  readonly account?: string | null;
}

/** The machine's means to run engines. */
export interface EngineHost {
  readonly processes: EngineProcesses;
  readonly logs: Logs;
  /** The largest number of executions at a time. */
  readonly maxExecutions: number;
}

export interface EngineQueue {
  readonly logs: Logs;
  /**
   * Ends the executions that a dead gateway left running. Called before any request is answered, because the tokens of
   * those executions are valid until then.
   */
  recover(): Promise<void>;
  /** `baseUrl`: the address at which engines reach the gateway. */
  begin(baseUrl: string): void;
  /** Looks soon for waiting executions. */
  look(): void;
  /** Resolves when the execution has ended; at once if it does not run. */
  cancel(execution: string, ending: Ending): Promise<void>;
  /** Removes the rows and logs of executions that ended long ago. */
  forget(): Promise<void>;
  /** Begins no more executions, and ends the running ones. */
  close(): Promise<void>;
}
