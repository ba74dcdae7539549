/** Triggers over HTTP: made, shown, changed, and what is refused. */
import { beforeEach, expect, test } from "vitest";
import { SCOPES } from "../../../src/contract/scopes.ts";
import { trigger, triggerPage } from "../../../src/contract/triggers.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { ENGINE, makeTrigger, post, withEngines } from "./support.ts";

const INBOX = { journal: { path: "/inbox/**", kinds: ["created"] } };

let core: TestCore;
beforeEach(async () => {
  core = createTestCore();
  core.accounts.engines.add({ ...ENGINE, name: "unused" });
  core.accounts.engines.add({ ...ENGINE, name: "strict", inputSchema: { type: "object", required: ["size"] } });
  await core.call("POST", "/v1/installations", { json: { engine: "strict" } });
  await withEngines(core, "scan");
});

test("one is shown as it was made, alone and in the list", async () => {
  const made = await makeTrigger(core, { on: INBOX, input: { a: [1] } });
  expect(made).toMatchObject({
    ...{ name: "t", engine: { name: "scan" }, on: INBOX, input: { a: [1] }, isEnabled: true, by: null },
    ...{ lastExecutionId: null, nextAt: null, failures: 0, detail: null },
  });
  await makeTrigger(core, { name: "a", on: { schedule: { cron: "0 0 * * *" } } });
  const listed = triggerPage.parse((await core.call("GET", "/v1/triggers")).json);
  expect(listed.items.map(({ name }) => name)).toEqual(["a", "t"]);
  expect(listed.items[1]).toEqual(made);
  for (const orderBy of ["id", "engine", "workspace", "isEnabled", "-createdAt", "nextAt", "failures"]) {
    expect((await core.call("GET", "/v1/triggers", { query: { orderBy } })).status).toBe(200);
  }
});

test.each([
  ["an engine that is not there", { engine: "none", on: INBOX }, 404, undefined],
  ["an engine that is not installed", { engine: "unused", on: INBOX }, 409, undefined],
  ["an input that the engine does not take", { engine: "strict", on: INBOX, input: {} }, 400, "input"],
  ["a path that does not begin at the root", { on: { journal: { path: "inbox" } } }, 400, "on.journal.path"],
  ["a path that is too long", { on: { journal: { path: `/${"a".repeat(2000)}` } } }, 400, "on"],
  ["no kinds at all", { on: { journal: { kinds: [] } } }, 400, "on"],
  ["no condition", {}, 400, "on"],
])("%s is refused, and nothing is kept", async (_, json, status, field) => {
  const answer = await post(core, json);
  expect([answer.status, answer.json.field?.split(".").slice(0, field?.split(".").length).join(".")]).toEqual([
    status,
    field,
  ]);
  expect((await core.call("GET", "/v1/triggers")).json.totalCount).toBe(0);
  const made = await makeTrigger(core, { on: INBOX, isEnabled: false });
  if (!("on" in json) || "engine" in json) return;
  const patched = await core.call("PATCH", `/v1/triggers/${made.id}`, { json });
  expect([patched.status, trigger.parse((await core.call("GET", `/v1/triggers/${made.id}`)).json)]).toEqual([
    400,
    made,
  ]);
});

test("a name is given once in a workspace", async () => {
  await makeTrigger(core, { on: INBOX });
  const again = await post(core, { on: INBOX });
  expect([again.status, again.json.detail]).toEqual([409, 'There is a trigger "t" in the workspace already.']);
});

test("one that is made again with its key is the same one, also for who may not read files", async () => {
  const token = core.token(SCOPES.filter((scope) => scope !== "node.file.read"));
  const send = (json: object = {}) => post(core, { on: INBOX, idempotencyKey: "k", ...json }, { token });
  const [first, second] = await Promise.all([send(), send()]);
  expect([first.status, second.status, second.json]).toEqual([201, 201, first.json]);
  core.gateway.endStreams();
  core = core.restart();
  expect((await send()).json).toEqual(first.json);
  const other = await send({ input: 1 });
  expect([other.status, other.json.field]).toEqual([400, "idempotencyKey"]);
  expect((await core.call("GET", "/v1/triggers")).json.totalCount).toBe(1);
});

test("one of an engine that is gone is shown, switched off and removed", async () => {
  const { id } = await makeTrigger(core, { on: INBOX });
  core.accounts.engines.remove(core.accounts.engines.find("scan")?.id ?? "");
  const off = await core.call("PATCH", `/v1/triggers/${id}`, { json: { isEnabled: false } });
  expect([off.status, trigger.parse(off.json).engine.name]).toEqual([200, "scan"]);
  expect((await core.call("DELETE", `/v1/triggers/${id}`)).status).toBe(204);
  expect((await core.call("GET", `/v1/triggers/${id}`)).status).toBe(404);
});

test("triggers of another workspace hear nothing of this one", async () => {
  const other = core.gateway.ensureWorkspace("other");
  const started = () => core.database.prepare("SELECT workspace FROM execution").pluck().all();
  const token = core.token(undefined, null);
  const query = { workspace: "other" };
  await core.call("POST", "/v1/installations", { token, query, json: { engine: "scan" } });
  expect((await post(core, { on: { journal: {} } }, { token, query })).status).toBe(201);
  await core.file("/inbox/a", "x");
  await core.clock.advance(0);
  expect(started()).toEqual([]);
  await core.upload("/v1/files/f", "x", { token, query });
  await core.clock.advance(0);
  expect(started()).toEqual([other.id]);
});
