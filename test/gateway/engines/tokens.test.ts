/** The token of an execution: what it is good for, where, and for how long; and who the journal says it was. */
import { beforeEach, expect, test } from "vitest";
import { accountToken, newAccount } from "../../support/account-token.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { addEngine, begin, FILE_SCOPES, finish, install, start } from "./support.ts";

let core: TestCore;
/** Id of an execution of carl's that runs, and its token. */
let id: string;
let token: string;

beforeEach(async () => {
  core = createTestCore();
  addEngine(core, "scan");
  await install(core, "scan");
  const carl = newAccount(core.accounts, "carl");
  core.accounts.accounts.setRole(carl.id, core.workspace.id, "editor");
  await begin(core);
  const query = { workspace: core.workspace.id };
  ({ id } = await start(core, "scan", {}, { token: accountToken(core.accounts, core.clock, carl), query }));
  token = core.engines.started[0]?.environment.WSFS_TOKEN ?? "";
});

const carl = () => core.accounts.accounts.find("carl")?.id ?? "";
const list = async () => {
  const { status, json } = await core.call("GET", "/v1/account", { token });
  return [status, json.detail];
};

test("says which account, which scopes and which workspace it is for", async () => {
  const { json } = await core.call("GET", "/v1/account", { token });
  expect(json).toMatchObject({
    account: { name: "carl" },
    scopes: FILE_SCOPES,
    workspace: core.workspace.id,
    workspaces: [{ name: "workspace", role: "editor" }],
  });
});

test("what is written with it is the execution's, in the journal and in versions", async () => {
  const made = await core.upload("/v1/files/out", "x", { token });
  const by = { account: "carl", execution: id };
  const [entry] = (await core.call("GET", "/v1/journal", { query: { orderBy: "-position" } })).json.items;
  expect([entry?.nodeId, entry?.by]).toEqual([made.json.id, by]);
  const versions = (await core.call("GET", `/v1/nodes/${made.json.id}/versions`)).json.items;
  expect(versions.map((version) => version.by)).toEqual([by]);
});

test("has no scope but the engine's", async () => {
  const { json } = await core.call("GET", "/v1/nodes", { token });
  expect([json.status, json.scope]).toEqual([403, "node.node.read-all"]);
  const started = await core.call("POST", "/v1/executions", { json: { engine: "scan" }, token });
  expect(started.json.scope).toBe("execution.execution.run");
});

test("is good in its workspace alone, also where the account may do more", async () => {
  const other = core.gateway.ensureWorkspace("other");
  core.accounts.accounts.setRole(carl(), other.id, "owner");
  const answer = await core.upload("/v1/files/out", "x", { token, query: { workspace: "other" } });
  expect([answer.status, answer.json.grant?.workspace]).toEqual([403, other.id]);
  const free = core.token(undefined, null);
  const { json } = await core.upload("/v1/files/there", "x", { token: free, query: { workspace: "other" } });
  expect((await core.call("GET", `/v1/nodes/${json.id}`, { token })).status).toBe(403);
});

test.each([
  ["its program ends", () => finish(core, id)],
  ["it is cancelled", () => core.call("POST", `/v1/executions/${id}/cancel`)],
  ["its account is removed", async () => core.accounts.accounts.remove(carl())],
  ["all tokens are revoked", async () => core.accounts.revokeAll()],
])("ends when %s", async (_, end) => {
  expect(await list()).toEqual([200, undefined]);
  await end();
  expect(await list()).toEqual([401, "The access token has been revoked."]);
});

test("outlives a night that the machine sleeps while its program runs", async () => {
  core.clock.sleep(16 * 3600_000);
  expect(await list()).toEqual([200, undefined]);
  await finish(core, id);
  expect(await list()).toEqual([401, "The access token has been revoked."]);
});

test("does less once the account may do less", async () => {
  core.accounts.accounts.setRole(carl(), core.workspace.id, "viewer");
  const answer = await core.upload("/v1/files/out", "x", { token });
  expect([answer.status, answer.json.grant?.role]).toEqual([403, "editor"]);
});

test("ends with the gateway: after its restart the execution is interrupted", async () => {
  core.engines.die();
  core = core.restart();
  await core.gateway.engines?.recover();
  expect(await list()).toEqual([401, "The access token has been revoked."]);
});

test("an open stream of it ends with it", async () => {
  const { environment } = core.engines.started[0] ?? {};
  expect(environment?.WSFS_TOKEN).toBe(token);
  addEngine(core, "reader", { scopes: ["node.node.read-all"] });
  await install(core, "reader");
  const reader = await start(core, "reader");
  const answer = await core.gateway.handle({
    method: "GET",
    path: "/v1/journal/stream",
    query: {},
    headers: { authorization: `Bearer ${core.engines.started[1]?.environment.WSFS_TOKEN}` },
  });
  if (answer.body?.kind !== "bytes") throw new Error("It is no stream.");
  const events = answer.body.stream[Symbol.asyncIterator]();
  const read = async () => {
    for (;;) if ((await events.next()).done === true) return "ended";
  };
  const reading = read();
  await finish(core, reader.id);
  await core.clock.advance(10_000);
  expect(await reading).toBe("ended");
});

test("of nobody's call it is of no account, and counts as an owner in its workspace", async () => {
  const mine = await start(core, "scan");
  const own = core.engines.started.find((run) => run.id === mine.id)?.environment.WSFS_TOKEN ?? "";
  const { json } = await core.call("GET", "/v1/account", { token: own });
  expect(json).toMatchObject({ account: null, workspace: core.workspace.id, workspaces: [{ role: "owner" }] });
});
