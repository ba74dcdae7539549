/** Engines, their installations in workspaces, and their executions with logs. */
import type { Author, JournalEntry } from "../../contract/resources.ts";
import type { Context } from "../context.ts";
import type { Call, GatewayAnswer } from "../exchange.ts";
import { notFound } from "../problems.ts";

const unbuilt = (): never => {
  throw notFound("This gateway does not serve engines yet.");
};
export const listEngines = (_: Context, __: Call<"listEngines">): GatewayAnswer => unbuilt();
export const getEngine = (_: Context, __: Call<"getEngine">): GatewayAnswer => unbuilt();
export const createInstallation = (_: Context, __: Call<"createInstallation">): GatewayAnswer => unbuilt();
export const listInstallations = (_: Context, __: Call<"listInstallations">): GatewayAnswer => unbuilt();
export const getInstallation = (_: Context, __: Call<"getInstallation">): GatewayAnswer => unbuilt();
export const removeInstallation = (_: Context, __: Call<"removeInstallation">): GatewayAnswer => unbuilt();
export const startExecution = (_: Context, __: Call<"startExecution">): GatewayAnswer => unbuilt();
export const listExecutions = (_: Context, __: Call<"listExecutions">): GatewayAnswer => unbuilt();
export const getExecution = (_: Context, __: Call<"getExecution">): GatewayAnswer => unbuilt();
export const cancelExecution = (_: Context, __: Call<"cancelExecution">): GatewayAnswer => unbuilt();
export const readLogs = (_: Context, __: Call<"readLogs">): GatewayAnswer => unbuilt();
export const streamLogs = (_: Context, __: Call<"streamLogs">): GatewayAnswer => unbuilt();

/** What a trigger asks for. */
export interface TriggeredExecution {
  /** Id of the workspace. */
  readonly workspace: string;
  /** Id of the engine, which must be installed there. */
  readonly engine: string;
  readonly input: unknown;
  /** Whose account it runs for, by id; null: none. */
  readonly account: string | null;
  readonly by: Author | null;
  readonly triggerId: string;
  readonly entry?: JournalEntry;
  /** Milliseconds since the epoch. */
  readonly scheduledFor?: number;
  /** Unique for the trigger and its occasion: of two with one key the first is the only one, also after a restart. */
  readonly key: string;
}

/**
 * Queues an execution within the caller's transaction, and answers its id; the same id for a key that was used before.
 * Throws a ProblemError where the engine is not there or not installed, the input is not what it takes, the account may
 * not run it any more, or too many wait (429).
 */
export function queueTriggered(_: Context, __: TriggeredExecution): string {
  return unbuilt();
}

/** How an execution ended that a trigger started; undefined: it has not yet, or is not known. */
export function endOf(_: Context, __: string): "succeeded" | "failed" | undefined {
  return unbuilt();
}
