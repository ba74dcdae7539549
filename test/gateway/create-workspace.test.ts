/** A new workspace: whose it is, what a stranger learns of its name, and what is there when the gateway dies in between. */
import { beforeEach, expect, test } from "vitest";
import type { Account } from "../../src/gateway/accounts/index.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { accountToken, newAccount, type TokenChoice } from "../support/account-token.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { createMemoryBlobs } from "../support/memory-blobs.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

let core: TestCore;
/** Where the gateway is to die. */
let deadly: string | undefined;
let carl: Account;

beforeEach(() => {
  deadly = undefined;
  const step = (label: string) => {
    if (label === deadly) throw new Error(`killed at ${label}`);
  };
  core = createTestCore(
    {},
    { clock: { ...createVirtualClock(), step }, blobs: createMemoryBlobs(), database: openSqlite(":memory:") },
  );
  carl = newAccount(core.accounts, "carl");
});

const tokenOf = (account: Account, choice?: TokenChoice) => accountToken(core.accounts, core.clock, account, choice);
const create = (name: unknown, token = tokenOf(carl)) => core.call("POST", "/v1/workspaces", { json: { name }, token });

async function workspacesOf(account: Account) {
  const { workspaces } = (await core.call("GET", "/v1/account", { token: tokenOf(account) })).json;
  const { items } = (await core.call("GET", "/v1/workspaces", { token: tokenOf(account) })).json;
  expect(items.map(({ id }) => id)).toEqual(workspaces.map(({ id }) => id));
  return workspaces;
}

test("its maker is its owner at once, and nobody else sees it", async () => {
  const { status, json } = await create("plans");
  expect([status, json]).toEqual([201, { id: json.id, name: "plans", rootId: json.rootId, used: 0, role: "owner" }]);
  expect(await workspacesOf(carl)).toEqual([{ id: json.id, name: "plans", role: "owner" }]);
  const upload = await core.upload("/v1/files/f", "x", { token: tokenOf(carl), query: { workspace: "plans" } });
  expect(upload.status).toBe(201);
  const eve = newAccount(core.accounts, "eve");
  expect(await workspacesOf(eve)).toEqual([]);
  const unseen = await core.call("GET", "/v1/nodes", { token: tokenOf(eve), query: { workspace: "plans" } });
  expect([unseen.status, unseen.json.detail]).toEqual([404, 'There is no workspace "plans".']);
  core = core.restart();
  expect(await workspacesOf(carl)).toEqual([{ id: json.id, name: "plans", role: "owner" }]);
});

test("none has a name like the id of another, which would be taken for it where both are taken", async () => {
  const { id } = core.workspace;
  const answer = await create(id);
  expect([answer.status, answer.json.field]).toEqual([400, "name"]);
  expect(await workspacesOf(carl)).toEqual([]);
});

test("a name that is taken is 409 in the same words for everybody, and changes nothing", async () => {
  await create("plans");
  const eve = newAccount(core.accounts, "eve");
  const [own, others] = [await create("plans"), await create("plans", tokenOf(eve))];
  expect([own.status, own.json]).toEqual([409, others.json]);
  expect(own.json.detail).toBe('There is a workspace "plans" already.');
  expect(core.accounts.accounts.memberships({ account: eve.id })).toEqual([]);
  const twice = await Promise.all([create("twice"), create("twice", tokenOf(eve))]);
  expect(twice.map(({ status }) => status)).toEqual([201, 409]);
});

test("a token that is bound to a workspace makes none; one without the scope neither", async () => {
  core.accounts.accounts.setRole(carl.id, core.workspace.id, "owner");
  const bound = await create("plans", tokenOf(carl, { workspace: core.workspace.id }));
  expect([bound.status, bound.json.grant]).toEqual([403, { workspace: core.workspace.id, role: "owner" }]);
  const lacking = await create("plans", tokenOf(carl, { scopes: ["account.workspace.read"] }));
  expect([lacking.status, lacking.json.scope]).toEqual([403, "account.workspace.create"]);
  expect((await create("plans")).status).toBe(201);
  const ofNobody = await create("more", core.token(undefined, null));
  expect(ofNobody.status).toBe(201);
});

test.each(["", ".", "..", "a/b", "x".repeat(256), 5, null])("no workspace is called %j", async (name) => {
  const answer = await create(name);
  expect([answer.status, answer.json.field]).toEqual([400, "name"]);
});

test("one that is named as another one's id does not come in its place", async () => {
  const eve = newAccount(core.accounts, "eve");
  const { json } = await create("plans");
  await create(json.id, tokenOf(eve));
  const query = { workspace: String(json.id) };
  expect((await core.call("GET", "/v1/nodes", { token: tokenOf(carl), query })).status).toBe(200);
  expect((await core.call("GET", "/v1/nodes", { token: tokenOf(eve), query })).status).toBe(404);
});

test.each(["gateway: owner of a new workspace", "gateway: about to commit"])(
  "killed at %s there is no workspace without an owner, and the same call again makes it",
  async (label) => {
    deadly = label;
    expect((await create("plans")).status).toBe(500);
    deadly = undefined;
    core = core.restart();
    expect(core.database.prepare("SELECT name FROM workspace").pluck().all()).toEqual(["workspace"]);
    expect(await workspacesOf(carl)).toEqual([]);
    const { status, json } = await create("plans");
    expect(status).toBe(201);
    expect(await workspacesOf(carl)).toEqual([{ id: json.id, name: "plans", role: "owner" }]);
  },
);
