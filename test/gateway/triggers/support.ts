/** A core with an engine that is installed, whose programs a test ends, and triggers on it. */
import type { Execution } from "../../../src/contract/engines.ts";
import { execution } from "../../../src/contract/engines.ts";
import { type Trigger, trigger } from "../../../src/contract/triggers.ts";
import type { CallOptions, TestCore } from "../../support/gateway-core.ts";

export const ENGINE = {
  ...{ description: "", command: ["true"], timeLimitSeconds: 60, inputSchema: null },
  scopes: ["node.node.create", "node.node.update", "node.file.read", "node.journal.create"],
};

/** Engines by these names are installed, and executions run as they are queued. */
export async function withEngines(core: TestCore, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    core.accounts.engines.add({ ...ENGINE, name });
    await core.call("POST", "/v1/installations", { json: { engine: name } });
  }
  core.gateway.engines?.begin("http://gateway.test");
  await core.clock.settle();
}

export const post = (core: TestCore, json: object, options: CallOptions = {}) =>
  core.call("POST", "/v1/triggers", { json: { name: "t", engine: "scan", ...json }, ...options });

export async function makeTrigger(core: TestCore, json: object, options?: CallOptions): Promise<Trigger> {
  const answer = await post(core, json, options);
  if (answer.status !== 201) throw new Error(`${answer.status} ${answer.bytes}`);
  await core.clock.settle();
  return trigger.parse(answer.json);
}

export const triggerNow = async (core: TestCore, { id }: Trigger): Promise<Trigger> =>
  trigger.parse((await core.call("GET", `/v1/triggers/${id}`)).json);

/** All there are, the oldest first. */
export async function executions(core: TestCore): Promise<Execution[]> {
  const rows = core.database.prepare<[], string>("SELECT id FROM execution ORDER BY number").pluck().all();
  return Promise.all(rows.map(async (id) => execution.parse((await core.call("GET", `/v1/executions/${id}`)).json)));
}

/** Names of the nodes that executions were started for. */
export const causes = async (core: TestCore) => (await executions(core)).map(({ cause }) => cause?.entry?.name);

/** The programs that run end, and those that come then, until none is left. */
export async function endAll(core: TestCore, exitCode = 0): Promise<void> {
  for (let ids = core.engines.running(); ids.length > 0; ids = core.engines.running()) {
    for (const id of ids) core.engines.end(id, { exitCode });
    await core.clock.advance(0);
  }
}

/** The token of an execution that runs. */
export function tokenOf(core: TestCore, id: string): string {
  const run = core.engines.started.find((one) => one.id === id);
  if (run?.environment.WSFS_TOKEN === undefined) throw new Error(`${id} was not started`);
  return run.environment.WSFS_TOKEN;
}
