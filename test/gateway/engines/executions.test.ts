/** Executions: their states, what their programs get, who is next, what is kept of them. */
import { beforeEach, describe, expect, test } from "vitest";
import { executionPage } from "../../../src/contract/engines.ts";
import { accountToken, newAccount } from "../../support/account-token.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { addEngine, BASE_URL, begin, finish, install, shown, start, stateOf, told } from "./support.ts";

let core: TestCore;

beforeEach(async () => {
  core = createTestCore();
  addEngine(core, "scan");
  await install(core, "scan");
});

const run = (more: object = {}) => start(core, "scan", more);
const post = (json: object, token?: string) =>
  core.call("POST", "/v1/executions", { json, ...(token === undefined ? {} : { token }) });
const cancel = (id: string) => core.call("POST", `/v1/executions/${id}/cancel`);

describe("an execution", () => {
  test("is queued, runs and succeeds, and the journal of the installation's folder tells each of it", async () => {
    const { id, state } = await run({ input: { a: 1 } });
    expect(state).toBe("queued");
    await begin(core);
    expect(await stateOf(core, id)).toBe("running");
    await finish(core, id);
    expect(await shown(core, id)).toMatchObject({
      ...{ state: "succeeded", exitCode: 0, detail: null, input: { a: 1 }, cause: null, by: null },
      engine: { name: "scan" },
      startedAt: expect.any(String),
      endedAt: expect.any(String),
    });
    const { items } = (await core.call("GET", "/v1/journal")).json;
    const [installed] = (await core.call("GET", "/v1/installations")).json.items;
    const entries = items.filter(({ by }) => by?.execution === id);
    expect(entries.map(({ kind }) => kind)).toEqual(["execution.queued", "execution.running", "execution.succeeded"]);
    expect(entries.every(({ nodeId }) => nodeId === Reflect.get(installed ?? {}, "folderId"))).toBe(true);
  });

  test.each([
    [{ exitCode: 3 }, "failed", "It ended with exit code 3."],
    [{ exitCode: null, detail: "It was ended by SIGSEGV." }, "failed", "It was ended by SIGSEGV."],
    [{ exitCode: null, timedOut: true }, "timed-out", "It ran longer than the engine may."],
  ])("whose program ends with %o", async (end, state, detail) => {
    await begin(core);
    const { id } = await run();
    core.engines.end(id, end);
    await core.clock.settle();
    expect(await shown(core, id)).toMatchObject({ state, detail, exitCode: end.exitCode });
    expect((await told(core, id)).at(-1)).toBe(`execution.${state}`);
  });

  test("gets its input, what it is, where the gateway is, and a token; nothing else of ours", async () => {
    await begin(core);
    const { id, installationId } = await run({ input: ["x"] });
    const [program] = core.engines.started;
    const folder = (await core.call("GET", `/v1/installations/${installationId}`)).json;
    expect(program).toMatchObject({ id, command: ["true"], input: '["x"]', timeLimitMs: 60_000 });
    expect(program?.environment).toEqual({
      WSFS_BASE_URL: BASE_URL,
      WSFS_TOKEN: expect.any(String),
      WSFS_WORKSPACE: core.workspace.id,
      WSFS_FOLDER: Reflect.get(folder, "folderId"),
      WSFS_ENGINE: "scan",
    });
    expect(Object.keys(program?.files ?? {})).toEqual(["execution.json"]);
    expect(JSON.parse(program?.files["execution.json"] ?? "")).toMatchObject({ id, state: "running", input: ["x"] });
  });

  test("that waits is cancelled at once, one that runs once it has ended; one that has ended stays as it is", async () => {
    const waits = await run();
    expect((await cancel(waits.id)).json).toMatchObject({ state: "cancelled", startedAt: null });
    await begin(core);
    expect(core.engines.started).toEqual([]);
    const runs = await run();
    expect((await cancel(runs.id)).json).toMatchObject({
      state: "cancelled",
      detail: "It was cancelled.",
      exitCode: null,
    });
    const ended = await run();
    await finish(core, ended.id);
    expect((await cancel(ended.id)).json).toMatchObject({ state: "succeeded" });
    expect(await told(core, runs.id)).toEqual(["execution.queued", "execution.running", "execution.cancelled"]);
  });

  test("started twice with one key is one, also after a restart; with the key of another one it is refused", async () => {
    const first = await run({ idempotencyKey: "k", input: { b: 1, a: 2 } });
    core = core.restart();
    const again = await run({ idempotencyKey: "k", input: { a: 2, b: 1 } });
    expect(again).toEqual(first);
    const other = await post({ engine: "scan", idempotencyKey: "k", input: 1 });
    expect([other.status, other.json.field]).toEqual([400, "idempotencyKey"]);
    expect((await core.call("GET", "/v1/executions")).json.totalCount).toBe(1);
  });

  test("is answered to those who may not read files, too", async () => {
    const answer = await post({ engine: "scan", idempotencyKey: "k" }, core.token(["execution.execution.run"]));
    expect([answer.status, Reflect.get(answer.json, "state")]).toEqual([201, "queued"]);
    const both = core.token(["marketplace.install.create", "node.node.create"]);
    addEngine(core, "other");
    const json = { engine: "other", idempotencyKey: "i" };
    expect((await core.call("POST", "/v1/installations", { json, token: both })).status).toBe(201);
  });

  test("takes an engine that is there and installed", async () => {
    expect([(await post({ engine: "none" })).status, (await post({})).json.field]).toEqual([404, "engine"]);
    addEngine(core, "other");
    const answer = await post({ engine: "other" });
    expect([answer.status, answer.json.detail]).toEqual([409, "The engine other is not installed in the workspace."]);
  });
});

describe("the input", () => {
  const inputSchema = {
    type: "object",
    properties: { size: { type: "integer", minimum: 1 }, word: { type: "string", pattern: "^(a+)+$" } },
    additionalProperties: false,
  };
  beforeEach(async () => {
    addEngine(core, "strict", { inputSchema });
    await install(core, "strict");
  });
  const refused = async (input: unknown) => {
    const { status, json } = await post({ engine: "strict", input });
    return [status, json.field, json.detail];
  };

  test("is what the engine's schema says, else the answer names what is not", async () => {
    expect(await refused({ size: 0 })).toEqual([400, "input.size", "input.size: must be >= 1"]);
    expect(await refused(undefined)).toEqual([400, "input", "input: must be object"]);
    const extra = "input: must NOT have additional properties: sise";
    expect(await refused({ sise: 1 })).toEqual([400, "input", extra]);
    expect((await post({ engine: "strict", input: { size: 1 } })).status).toBe(201);
  });

  test("has at most 64 KiB", async () => {
    const { status, json } = await post({ engine: "scan", input: "x".repeat(65_535) });
    expect([status, json.field]).toEqual([413, "input"]);
    expect((await post({ engine: "scan", input: "x".repeat(65_534) })).status).toBe(201);
  });

  test("that a pattern would take years for is refused, and the gateway goes on", async () => {
    expect((await refused({ word: `${"a".repeat(60)}!` }))[2]).toMatch(/^input: takes longer than \d+ ms/);
    expect((await post({ engine: "strict", input: { word: "aaa" } })).status).toBe(201);
  });
});

describe("the queue", () => {
  test("runs four at a time, in order", async () => {
    await begin(core);
    const ids: string[] = [];
    for (let count = 0; count < 6; count += 1) ids.push((await run()).id);
    expect(core.engines.running()).toEqual(ids.slice(0, 4));
    await finish(core, ids[2] ?? "");
    expect(core.engines.running()).toEqual([ids[0], ids[1], ids[3], ids[4]]);
    expect(await Promise.all(ids.map((id) => stateOf(core, id)))).toEqual([
      "running",
      "running",
      "succeeded",
      "running",
      "running",
      "queued",
    ]);
  });

  test("takes workspaces by turns: who asks for much keeps nobody waiting", async () => {
    const workspaces = ["b", "a"].map((name) => core.gateway.ensureWorkspace(name));
    for (const { name } of workspaces) {
      await install(core, "scan", { token: core.token(undefined, null), query: { workspace: name } });
    }
    for (let count = 0; count < 20; count += 1) await run();
    const others: string[] = [];
    for (const { name } of workspaces) {
      const options = { token: core.token(undefined, null), query: { workspace: name } };
      for (let count = 0; count < 2; count += 1) others.push((await start(core, "scan", {}, options)).id);
    }
    await begin(core);
    for (let count = 0; count < 4; count += 1) await finish(core, core.engines.running()[0] ?? "");
    const begun = core.engines.started.map(({ id }) => id);
    expect(begun).toHaveLength(8);
    expect(others.filter((id) => begun.includes(id))).toEqual(others);
  });

  test("takes 1,000 of a workspace, then asks to come again later; others have their own", async () => {
    for (let count = 0; count < 1000; count += 1) await post({ engine: "scan" });
    const answer = await post({ engine: "scan" });
    expect([answer.status, answer.headers["retry-after"]]).toEqual([429, "5"]);
    expect(answer.json.detail).toBe("1000 executions wait in the workspace, which are as many as may.");
    core.gateway.ensureWorkspace("second");
    const options = { token: core.token(undefined, null), query: { workspace: "second" } };
    await install(core, "scan", options);
    await start(core, "scan", {}, options);
    await begin(core);
    expect((await post({ engine: "scan" })).status).toBe(201);
  });

  test.each<[string, string, () => unknown]>([
    [
      "the installation is removed",
      "The engine scan is not installed in the workspace any more.",
      async () => {
        const [installed] = (await core.call("GET", "/v1/installations")).json.items;
        await core.call("DELETE", `/v1/installations/${installed?.id}`);
      },
    ],
    [
      "the engine is removed",
      "There is no engine scan any more.",
      () => core.accounts.engines.remove(core.accounts.engines.find("scan")?.id ?? ""),
    ],
    [
      "its account's role is taken away",
      "Its account may not run engines in the workspace any more.",
      () => core.accounts.accounts.removeRole(core.accounts.accounts.find("carl")?.id ?? "", core.workspace.id),
    ],
  ])("runs nothing once %s", async (_, detail, change) => {
    const carl = newAccount(core.accounts, "carl");
    core.accounts.accounts.setRole(carl.id, core.workspace.id, "editor");
    const { id } = await start(
      core,
      "scan",
      {},
      {
        token: accountToken(core.accounts, core.clock, carl),
        query: { workspace: core.workspace.id },
      },
    );
    await change();
    await begin(core);
    expect(await shown(core, id)).toMatchObject({ state: "cancelled", detail, by: { account: "carl" } });
    expect(core.engines.started).toEqual([]);
  });
});

describe("what is kept", () => {
  test("a thousand that have ended, of a workspace; their logs go with the others", async () => {
    await begin(core);
    const ids: string[] = [];
    for (let count = 0; count < 1003; count += 1) {
      const { id } = await run(count === 0 ? { idempotencyKey: "first" } : {});
      ids.push(id);
      core.engines.started.at(-1)?.log.write("out", Buffer.from("x\n"));
      await finish(core, id);
    }
    expect((await core.call("GET", "/v1/executions")).json.totalCount).toBe(1000);
    const counts = await Promise.all(ids.map((id) => core.engines.logs.count(id)));
    expect(counts.filter((count) => count === 0)).toHaveLength(3);
    expect((await core.call("GET", `/v1/executions/${ids[0]}`)).status).toBe(404);
    // Not started anew.
    const again = await post({ engine: "scan", idempotencyKey: "first" });
    expect([again.status, again.json.detail]).toEqual([404, expect.stringContaining("is forgotten by now")]);
  });

  test("for 30 days", async () => {
    await begin(core);
    const { id } = await run();
    await finish(core, id);
    await core.clock.advance(29 * 86_400_000);
    await core.gateway.forget();
    expect(await stateOf(core, id)).toBe("succeeded");
    await core.clock.advance(86_400_001);
    await core.gateway.forget();
    expect((await core.call("GET", "/v1/executions", { token: core.token() })).json.totalCount).toBe(0);
  });
});

test("are listed newest first, by state and engine, page by page as of the first one", async () => {
  await begin(core);
  addEngine(core, "other");
  await install(core, "other");
  const ids: string[] = [];
  for (let count = 0; count < 7; count += 1) ids.push((await start(core, count % 2 === 0 ? "scan" : "other")).id);
  const list = async (query: Record<string, string>) =>
    executionPage.parse((await core.call("GET", "/v1/executions", { query })).json);
  const found = async (query: Record<string, string>) => (await list(query)).items.map(({ id }) => ids.indexOf(id));
  expect(await found({})).toEqual([6, 5, 4, 3, 2, 1, 0]);
  expect(await found({ orderBy: "createdAt" })).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(await found({ state: "queued" })).toEqual([6, 5, 4]);
  expect(await found({ engine: "other", state: "running" })).toEqual([3, 1]);
  const first = await list({ pageSize: "3", after: "" });
  await run();
  const second = await list({ pageSize: "3", after: first.next ?? "" });
  expect(second.items.map(({ id }) => ids.indexOf(id))).toEqual([3, 2, 1]);
  expect([second.totalCount, (await list({})).totalCount]).toEqual([7, 8]);
});

test("an end that the store cannot keep is kept once it can", async () => {
  await begin(core);
  const { id } = await run();
  core.database.exec(
    "CREATE TRIGGER full BEFORE UPDATE ON execution WHEN new.ended_at IS NOT NULL BEGIN SELECT RAISE(ABORT, 'full'); END",
  );
  await finish(core, id);
  expect(await stateOf(core, id)).toBe("running");
  core.database.exec("DROP TRIGGER full");
  await core.clock.advance(1000);
  expect(await stateOf(core, id)).toBe("succeeded");
});
