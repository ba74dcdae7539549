/** Engines, installations, executions and their logs as schemas (gateway-spec §2, §4; their fields are our own). */
import { z } from "zod";
import { EXECUTION_STATES } from "./execution-states.ts";
import {
  author,
  count,
  engineRef,
  id,
  idempotencyKey,
  journalEntry,
  moment,
  page,
  position,
  workspaceRef,
} from "./resources.ts";

/** The input of an engine, also when a trigger starts it: any JSON. */
export const engineInput = z
  .unknown()
  .describe("Any JSON that the engine's inputSchema allows; without a schema, any JSON");

export { EXECUTION_STATES, type ExecutionState } from "./execution-states.ts";

export const engine = z
  .object({
    id,
    name: z.string().describe("Unique in the gateway"),
    description: z.string(),
    timeLimitSeconds: z
      .number()
      .int()
      .min(1)
      .describe("An execution that runs longer is ended, with the state timed-out"),
    scopes: z
      .array(z.string())
      .describe("The scopes of its executions' tokens, which are valid in the workspace of the installation"),
    inputSchema: z.record(z.string(), z.unknown()).nullable().describe("JSON Schema of the input; null: any JSON"),
    createdAt: moment,
  })
  .meta({ id: "Engine", description: "A program of the gateway's owner that can be run on a workspace" });
export type Engine = z.infer<typeof engine>;
export const enginePage = page(engine).meta({ id: "EnginePage" });
export type EnginePage = z.infer<typeof enginePage>;

export const installation = z
  .object({
    id,
    engine: engineRef,
    workspace: workspaceRef,
    folderId: id.describe("Node id of its folder in the workspace"),
    createdAt: moment,
    by: author.nullable().describe("The author of the installation; null: a token without an account"),
  })
  .meta({ id: "Installation", description: "An engine that may run in a workspace, and its folder there" });
export type Installation = z.infer<typeof installation>;
export const installationPage = page(installation).meta({ id: "InstallationPage" });
export type InstallationPage = z.infer<typeof installationPage>;

export const newInstallation = z
  .strictObject({
    engine: z.string().min(1).max(128).describe("Name or id of the engine"),
    path: z
      .string()
      .min(2)
      .max(4096)
      .regex(/^\//, 'expected a path that begins with "/"')
      .optional()
      .describe('Path of its folder: missing folders are made, an existing one is used; "/Engines/NAME" when absent'),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NewInstallation", description: "The engine to install, and its folder" });
export type NewInstallation = z.infer<typeof newInstallation>;

const executionState = z
  .enum(EXECUTION_STATES)
  .describe(
    "queued, running, or a final state: succeeded (exit code 0), failed, cancelled, timed-out, interrupted (the gateway ended while it ran)",
  );

export const execution = z
  .object({
    id,
    engine: engineRef,
    workspace: workspaceRef,
    installationId: id,
    state: executionState,
    input: z.unknown(),
    cause: z
      .object({
        triggerId: id,
        position: position.optional().describe("Position of the journal entry that it was started for"),
        entry: journalEntry
          .optional()
          .describe("That entry; absent for a token without node.node.read-all, the scope of the journal"),
        scheduledFor: moment.optional().describe("The scheduled time that it was started for"),
      })
      .nullable()
      .describe("The trigger that started it; null: it was started by a call"),
    createdAt: moment,
    startedAt: moment.nullable(),
    endedAt: moment.nullable(),
    exitCode: z
      .number()
      .int()
      .nullable()
      .describe("The engine's exit code; null if there is none, for example after a signal"),
    detail: z.string().nullable().describe("The reason of its end, for people"),
    logBytes: count.describe(
      "Bytes of output, kept or not. A log that is longer than the gateway keeps ends with a line that says so",
    ),
    by: author.nullable().describe("The author of the start; null: a token without an account"),
  })
  .meta({ id: "Execution", description: "One run of an engine in a workspace" });
export type Execution = z.infer<typeof execution>;
export const executionPage = page(execution).meta({ id: "ExecutionPage" });
export type ExecutionPage = z.infer<typeof executionPage>;

export const newExecution = z
  .strictObject({
    engine: z.string().min(1).max(128).describe("Name or id of an engine that is installed in the workspace"),
    input: engineInput.optional(),
    idempotencyKey: idempotencyKey.nullish(),
  })
  .meta({ id: "NewExecution", description: "The engine to run, and its input" });
export type NewExecution = z.infer<typeof newExecution>;

export const stateFilter = executionState.optional();

export const logLine = z
  .object({
    number: z.number().int().min(1).describe("1 for the first line of the execution"),
    time: moment,
    stream: z
      .enum(["out", "err", "gateway"])
      .describe("Standard output or error; gateway: a line of the gateway itself"),
    text: z.string().describe("Without the end of the line; bytes that are not UTF-8 are replaced"),
  })
  .meta({ id: "LogLine", description: "A line of an execution's log" });
export type LogLine = z.infer<typeof logLine>;
export const logPage = page(logLine).meta({ id: "LogPage" });
export type LogPage = z.infer<typeof logPage>;

/** The data of the event `end`, the last one in the stream of a log. */
export const logEnd = execution.pick({ state: true, exitCode: true, detail: true });
export type LogEnd = z.infer<typeof logEnd>;
