/** Engines and executions of a core whose programs a test begins and ends. */
import { expect } from "vitest";
import { type Execution, execution, type Installation, installation } from "../../../src/contract/engines.ts";
import type { EngineEntry, NewEngine } from "../../../src/gateway/accounts/index.ts";
import type { CallOptions, TestCore } from "../../support/gateway-core.ts";

export const BASE_URL = "http://gateway.test";
export const FILE_SCOPES = ["node.node.create", "node.node.update", "node.file.read", "node.journal.create"];

export function addEngine({ accounts }: TestCore, name: string, engine: Partial<NewEngine> = {}): EngineEntry {
  const usual = { description: "", command: ["true"], timeLimitSeconds: 60, scopes: FILE_SCOPES, inputSchema: null };
  return accounts.engines.add({ ...usual, ...engine, name });
}

/** What waits begins to run, as after the gateway's start. */
export async function begin(core: TestCore): Promise<void> {
  core.gateway.engines?.begin(BASE_URL);
  await core.clock.settle();
}

export async function install(core: TestCore, engine: string, options?: CallOptions): Promise<Installation> {
  const answer = await core.call("POST", "/v1/installations", { json: { engine }, ...options });
  expect([answer.status, answer.bytes.toString()]).toEqual([201, expect.any(String)]);
  return installation.parse(answer.json);
}

export async function start(
  core: TestCore,
  engine: string,
  more: object = {},
  options?: CallOptions,
): Promise<Execution> {
  const answer = await core.call("POST", "/v1/executions", { json: { engine, ...more }, ...options });
  if (answer.status !== 201) throw new Error(`${answer.status} ${answer.bytes}`);
  await core.clock.settle();
  return execution.parse(answer.json);
}

export async function shown(core: TestCore, id: string): Promise<Execution> {
  return execution.parse((await core.call("GET", `/v1/executions/${id}`)).json);
}

export const stateOf = async (core: TestCore, id: string) => (await shown(core, id)).state;

/** The program of an execution ends. */
export async function finish(core: TestCore, id: string, exitCode = 0): Promise<void> {
  core.engines.end(id, { exitCode });
  await core.clock.settle();
}

/** Kinds of the journal's entries of an execution. */
export async function told(core: TestCore, id: string): Promise<string[]> {
  const { items } = (await core.call("GET", "/v1/journal", { query: { pageSize: "1000" } })).json;
  return items.filter(({ by }) => by?.execution === id).map(({ kind }) => kind);
}
