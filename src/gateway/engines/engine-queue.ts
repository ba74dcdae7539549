/** What runs engines, as the rest of the gateway sees it (queue.ts), and what it takes. */
import type { Logs } from "./logs.ts";
import type { EngineProcesses } from "./processes.ts";

/** How an execution ended. */
export interface Ending {
  readonly exitCode?: number | null;
  readonly detail?: string | null;
  readonly logBytes?: number;
  /** Name of the account that ended it; that it runs for when absent. */
  readonly account?: string | null;
}

/** What the machine gives to run engines. */
export interface EngineHost {
  readonly processes: EngineProcesses;
  readonly logs: Logs;
  /** So many run at a time. */
  readonly maxExecutions: number;
}

export interface EngineQueue {
  readonly logs: Logs;
  /** Ends what a gateway that died left running. Before anybody is answered, as its tokens are good until then. */
  recover(): Promise<void>;
  /** `baseUrl`: where engines reach the gateway. */
  begin(baseUrl: string): void;
  /** Something may be there to run. */
  look(): void;
  /** Resolves once it has ended; at once where it does not run. */
  cancel(execution: string, ending: Ending): Promise<void>;
  /** Removes what is kept of executions that have ended long ago. */
  forget(): Promise<void>;
  /** Begins nothing any more, and ends what runs. */
  close(): Promise<void>;
}
