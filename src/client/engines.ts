/** Calls about engines, their installations, and their executions with logs. */
import {
  type Engine,
  type EnginePage,
  type Execution,
  type ExecutionPage,
  engine,
  enginePage,
  execution,
  executionPage,
  type Installation,
  type InstallationPage,
  installation,
  installationPage,
  type LogPage,
  logEnd,
  logLine,
  logPage,
} from "../contract/engines.ts";
import { checkedJson, discard } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type {
  CallOptions,
  ExecutionListOptions,
  InstallOptions,
  LogEvent,
  LogOptions,
  LogStreamOptions,
  PageOptions,
  StartOptions,
  WorkspaceOptions,
} from "./client.ts";
import { readEvents } from "./events.ts";
import { pageQuery } from "./listings.ts";

export function listEngines(send: Send, options: PageOptions = {}): Promise<EnginePage> {
  return askJson(send, { operation: "listEngines", query: pageQuery(options), signal: options.signal }, enginePage);
}

export function getEngine(send: Send, engineId: string, { signal }: CallOptions = {}): Promise<Engine> {
  return askJson(send, { operation: "getEngine", parameters: { engineId }, signal }, engine);
}

export function createInstallation(send: Send, engine: string, options: InstallOptions = {}): Promise<Installation> {
  const { workspace, path, idempotencyKey, signal } = options;
  const body = { kind: "json", value: { engine, path, idempotencyKey } } as const;
  return askJson(send, { operation: "createInstallation", query: { workspace }, body, signal }, installation);
}

export function listInstallations(send: Send, options: PageOptions & WorkspaceOptions = {}): Promise<InstallationPage> {
  const { workspace, signal } = options;
  const query = { workspace, ...pageQuery(options) };
  return askJson(send, { operation: "listInstallations", query, signal }, installationPage);
}

export function getInstallation(
  send: Send,
  installationId: string,
  { signal }: CallOptions = {},
): Promise<Installation> {
  return askJson(send, { operation: "getInstallation", parameters: { installationId }, signal }, installation);
}

export async function removeInstallation(
  send: Send,
  installationId: string,
  { signal }: CallOptions = {},
): Promise<void> {
  await discard(await send({ operation: "removeInstallation", parameters: { installationId }, signal }));
}

export function startExecution(send: Send, engine: string, options: StartOptions = {}): Promise<Execution> {
  const { workspace, input, idempotencyKey, signal } = options;
  const body = { kind: "json", value: { engine, input, idempotencyKey } } as const;
  return askJson(send, { operation: "startExecution", query: { workspace }, body, signal }, execution);
}

export function listExecutions(send: Send, options: ExecutionListOptions = {}): Promise<ExecutionPage> {
  const { workspace, state, engine, signal } = options;
  const query = { workspace, state, engine, ...pageQuery(options) };
  return askJson(send, { operation: "listExecutions", query, signal }, executionPage);
}

export function getExecution(send: Send, executionId: string, { signal }: CallOptions = {}): Promise<Execution> {
  return askJson(send, { operation: "getExecution", parameters: { executionId }, signal }, execution);
}

export function cancelExecution(send: Send, executionId: string, { signal }: CallOptions = {}): Promise<Execution> {
  return askJson(send, { operation: "cancelExecution", parameters: { executionId }, signal }, execution);
}

export function readLogs(send: Send, executionId: string, after: number, options: LogOptions = {}): Promise<LogPage> {
  const { pageSize, pageNo, signal } = options;
  const query = { after, pageSize, pageNo };
  return askJson(send, { operation: "readLogs", parameters: { executionId }, query, signal }, logPage);
}

/**
 * One connection of server-sent events. An event's id is the line's number, its data the line as JSON. The event `end`
 * comes last.
 */
export async function* streamLogs(
  send: Send,
  executionId: string,
  after: number,
  options: LogStreamOptions = {},
): AsyncGenerator<LogEvent, void, undefined> {
  const { onHeard, signal } = options;
  const call = { operation: "streamLogs", parameters: { executionId }, query: { after }, signal } as const;
  for await (const { name, data, answer } of readEvents(send, call, onHeard)) {
    if (name === "end") yield { end: checkedJson(data, logEnd, call.operation, answer) };
    else yield { line: checkedJson(data, logLine, call.operation, answer) };
  }
}
