/** API keys: what one may do and for how long, what is kept of it, and what somebody who has one tries. */
import { execFileSync } from "node:child_process";
import { inspect } from "node:util";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { API_KEY_PREFIX, createdApiKey } from "../../src/contract/api-keys.ts";
import type { Role } from "../../src/contract/roles.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { type Account, accountsInMemory, openAccounts } from "../../src/gateway/accounts/index.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { SILENT } from "../../src/lib/log.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { accountToken, newAccount } from "../support/account-token.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { createMemoryBlobs } from "../support/memory-blobs.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

const READ = ["node.file.read", "node.node.read-all"];
/** All that a key may have. */
const KEY_SCOPES = SCOPES.filter((scope) => scope !== "account.key.create");
const MINUTE = 60_000;

let core: TestCore;
let ada: Account;
beforeEach(() => {
  core = createTestCore();
  ada = account("ada", "owner");
});

function account(name: string, role: Role): Account {
  const made = newAccount(core.accounts, name);
  core.accounts.accounts.setRole(made.id, core.workspace.id, role);
  return made;
}

const tokenOf = (of: Account, scopes?: readonly string[]) =>
  accountToken(core.accounts, core.clock, of, scopes === undefined ? {} : { scopes });

function create(json: object, token = tokenOf(ada)) {
  const all = { name: "backup", scopes: READ, ...json };
  return core.call("POST", "/v1/api-keys", { query: { workspace: core.workspace.id }, json: all, token });
}

async function keyOf(json: object = {}, token?: string): Promise<string> {
  const answer = await create(json, token);
  expect([answer.status, answer.json.detail]).toEqual([201, undefined]);
  return String(answer.json.key);
}

const statusOf = async (token: string, path = "/v1/nodes") => (await core.call("GET", path, { token })).status;
const listed = async () =>
  (await core.call("GET", "/v1/api-keys", { query: { workspace: core.workspace.id }, token: tokenOf(ada) })).json.items;

test("a key is shown once, listed without itself, and good for what it says", async () => {
  const { json, headers } = await create({});
  expect(json.key).toMatch(new RegExp(`^${API_KEY_PREFIX}[\\w-]{43}$`));
  expect(headers["cache-control"]).toBe("no-store");
  const { key, ...shown } = json;
  expect(shown).toEqual({
    id: expect.any(String),
    name: "backup",
    account: { id: ada.id, name: "ada" },
    workspace: { id: core.workspace.id, name: "workspace" },
    scopes: READ,
    createdAt: expect.any(String),
    expiresAt: null,
    lastUsedAt: null,
  });
  expect(await listed()).toEqual([shown]);
  const token = String(key);
  expect(await statusOf(token)).toBe(200);
  const refused = await core.call("POST", "/v1/nodes", {
    token,
    json: { parentId: core.workspace.root, name: "n", kind: "folder" },
  });
  expect([refused.status, refused.json.scope]).toEqual([403, "node.node.create"]);
  const { json: status } = await core.call("GET", "/v1/account", { token });
  expect(status).toEqual({
    account: { id: ada.id, name: "ada" },
    scopes: READ,
    workspace: core.workspace.id,
    expiresAt: null,
    workspaces: [{ id: core.workspace.id, name: "workspace", role: "owner" }],
  });
  // The call's workspace is the key's only one.
  const other = core.gateway.ensureWorkspace("other");
  core.accounts.accounts.setRole(ada.id, other.id, "owner");
  const elsewhere = await core.call("GET", "/v1/nodes", { token, query: { workspace: "other" } });
  expect([elsewhere.status, elsewhere.json.grant]).toEqual([403, { workspace: other.id, role: "viewer" }]);
});

test("what a key writes says whose it is; one of no account is an owner's, as the token that made it", async () => {
  const key = await keyOf({ scopes: KEY_SCOPES });
  await core.upload("/v1/files/by-key", "x", { token: key });
  const ofNobody = await keyOf({ scopes: KEY_SCOPES }, core.token());
  await core.upload("/v1/files/by-nobody", "x", { token: ofNobody });
  const { items } = (await core.call("GET", "/v1/journal")).json;
  expect(items.slice(-2).map(({ name, by }) => [name, by])).toEqual([
    ["by-key", { account: "ada" }],
    ["by-nobody", null],
  ]);
  expect((await core.call("GET", "/v1/account", { token: ofNobody })).json).toMatchObject({ account: null });
});

test("a key may do no more than the token that makes it, and makes no other", async () => {
  const some = ["account.key.create", "node.file.read"];
  const answer = await create({ scopes: ["node.file.read", "node.node.update"] }, tokenOf(ada, some));
  expect([answer.status, answer.json.scope]).toEqual([403, "node.node.update"]);
  expect((await create({ scopes: ["node.file.read"] }, tokenOf(ada, some))).status).toBe(201);
  const maker = await create({ scopes: ["node.file.read", "account.key.create"] });
  expect([maker.status, maker.json.field]).toEqual([400, "scopes.1"]);
  const all = await keyOf({ scopes: KEY_SCOPES });
  const made = await create({ scopes: ["node.file.read"] }, all);
  expect([made.status, made.json.scope]).toEqual([403, "account.key.create"]);
});

test("a moment that is past is refused by name", async () => {
  const now = new Date(core.clock.wallClock()).toISOString();
  for (const expiresAt of [now, "2001-01-01T00:00:00Z"]) {
    const answer = await create({ expiresAt });
    expect([answer.status, answer.json.field]).toEqual([400, "expiresAt"]);
  }
});

describe("a key ends", () => {
  test("when it expires; nothing else shortens its life", async () => {
    const end = core.clock.wallClock() + 100 * MINUTE;
    const key = await keyOf({ expiresAt: new Date(end).toISOString() });
    core.gateway.setOptions({ tokenSeconds: 60 });
    await core.clock.advance(100 * MINUTE - 1);
    expect(await statusOf(key)).toBe(200);
    expect((await core.call("GET", "/v1/account", { token: key })).json.expiresAt).toBe(new Date(end).toISOString());
    await core.clock.advance(1);
    expect(await statusOf(key)).toBe(401);
  });

  /** How long an open stream may go on: one that is revoked over HTTP ends at once, others are looked at now and then. */
  test.each([
    {
      when: "it is revoked",
      status: 401,
      within: 0,
      async end() {
        const [{ id } = { id: "" }] = await listed();
        const remove = () => core.call("DELETE", `/v1/api-keys/${id}`, { token: tokenOf(ada) });
        expect([(await remove()).status, (await remove()).status]).toEqual([204, 404]);
      },
    },
    { when: "all tokens are revoked", status: 401, within: 10_000, end: async () => core.accounts.revokeAll() },
    {
      when: "its account is removed",
      status: 401,
      within: 10_000,
      end: async () => void core.accounts.accounts.remove(ada.id),
    },
    {
      when: "its account has no role any more",
      status: 404,
      within: 10_000,
      end: async () => void core.accounts.accounts.removeRole(ada.id, core.workspace.id),
    },
  ])("when $when: at once, also after a restart, and so does a stream", async ({ status, within, end }) => {
    const key = await keyOf();
    expect(await statusOf(key)).toBe(200);
    const answer = await core.gateway.handle({
      method: "GET",
      path: "/v1/journal/stream",
      query: { after: String((await core.file("/last", "x")).position) },
      headers: { authorization: `Bearer ${key}` },
    });
    if (answer.body?.kind !== "bytes") throw new Error("It is no stream.");
    const events = answer.body.stream[Symbol.asyncIterator]();
    expect(Buffer.from((await events.next()).value).toString()).toBe(": the journal\n\n");
    const next = events.next();
    await end();
    await core.clock.advance(within);
    expect((await next).done).toBe(true);
    expect([await statusOf(key), await statusOf(key)]).toEqual([status, status]);
    core = core.restart();
    expect(await statusOf(key)).toBe(status);
  });
});

test("a role that is made less makes the key less", async () => {
  const key = await keyOf({ scopes: KEY_SCOPES });
  core.accounts.accounts.setRole(ada.id, core.workspace.id, "viewer");
  expect(await statusOf(key)).toBe(200);
  expect((await core.upload("/v1/files/f", "x", { token: key })).status).toBe(403);
});

test("a key that only looks like one is none", async () => {
  const key = await keyOf();
  const others = [
    key.slice(0, -1),
    `${key}A`,
    key.toUpperCase(),
    key.slice(API_KEY_PREFIX.length),
    `${API_KEY_PREFIX}${"A".repeat(43)}`,
    API_KEY_PREFIX,
    ...[..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].map((digit) => key.slice(0, -1) + digit).filter((other) => other !== key),
  ];
  for (const other of others) expect([other, await statusOf(other)]).toEqual([other, 401]);
  const [{ id } = { id: "" }] = await listed();
  expect(await statusOf(id)).toBe(401);
});

test("when it was used is known to the minute, and written once a minute, in nobody's way", async () => {
  const clock = createVirtualClock();
  const ownRows = openSqlite(":memory:");
  core = createTestCore(
    {},
    { clock, blobs: createMemoryBlobs(), database: openSqlite(":memory:"), accounts: accountsInMemory(clock, ownRows) },
  );
  ada = account("ada", "owner");
  const key = await keyOf();
  const since = core.clock.wallClock();
  await core.clock.advance(90_000);
  const commits = vi.spyOn(ownRows, "pragma");
  onTestFinished(() => commits.mockRestore());
  for (let n = 0; n < 100; n += 1) expect(await statusOf(key)).toBe(200);
  // Nothing was written on the way of a request.
  expect(commits).not.toHaveBeenCalled();
  expect((await listed())[0]?.lastUsedAt).toBe(new Date(since + MINUTE).toISOString());
  await core.clock.advance(10 * MINUTE);
  const writes = commits.mock.calls.filter(([text]) => text === "synchronous = NORMAL");
  expect(writes.length).toBe(1);
  core = core.restart();
  expect((await listed())[0]?.lastUsedAt).toBe(new Date(since + MINUTE).toISOString());
});

test("a use that another process keeps from being written is written later, and at the end", async () => {
  const clock = createVirtualClock();
  const folder = await temporaryFolder();
  const store = openAccounts(folder, clock);
  const made = store.apiKeys.create({ name: "k", account: null, workspace: "w", scopes: ["s"], expiresAt: null });
  const id = made?.row.id ?? "";
  const usedAt = () => {
    const other = openAccounts(folder, clock);
    const time = other.apiKeys.byId(id)?.usedAt;
    other.close();
    return time;
  };
  const writer = openSqlite(`${folder}/accounts.db`);
  writer.exec("BEGIN IMMEDIATE");
  store.apiKeys.use(id);
  await clock.advance(MINUTE);
  writer.exec("ROLLBACK");
  expect(usedAt()).toBeNull();
  await clock.advance(MINUTE);
  expect(usedAt()).toBe(clock.wallClock() - 2 * MINUTE);
  store.apiKeys.use(id);
  const last = clock.wallClock();
  store.close();
  writer.close();
  expect(usedAt()).toBe(last);
  await clock.advance(10 * MINUTE);
});

describe("a key stands", () => {
  test("in no log and no refusal, wherever it was put; and in no file", async () => {
    const dataDir = await temporaryFolder();
    const lines: string[] = [];
    const note = (...said: unknown[]) => void lines.push(inspect(said, { depth: 10, maxStringLength: null }));
    const log = { ...SILENT, debug: note, info: note, warn: note, error: note };
    const gateway = await startGateway({ dataDir, workspaces: ["main"], log });
    onTestFinished(() => gateway.close());
    const token = await gateway.issueToken({ workspace: "main" });
    const send = (path: string, bearer: string, init: RequestInit = {}) =>
      fetch(`${gateway.baseUrl}${path}`, { ...init, headers: { authorization: `Bearer ${bearer}`, ...init.headers } });
    const json = { method: "POST", headers: { "content-type": "application/json" } };
    const body = JSON.stringify({ name: "k", scopes: KEY_SCOPES });
    const made = createdApiKey.parse(await (await send("/v1/api-keys", token, { ...json, body })).json());
    const { key } = made;
    const secret = key.slice(API_KEY_PREFIX.length);
    const answers = [
      await send("/v1/nodes", key),
      await send("/v1/nodes", `${key}x`),
      await send(`/v1/api-keys/${key}`, key, { method: "DELETE" }),
      await send(`/v1/nodes/${key}`, key),
      await send(`/v1/nodes?workspace=${key}`, key),
      await send(`/v1/nodes?key=${key.replaceAll("_", "%5F")}`, key),
      await send(`/${key}`, key),
      await send(`/v1/files/${key}`, key, { method: "POST", body: "x" }),
      await send("/v1/api-keys", key, { ...json, body: JSON.stringify({ name: "k", scopes: [key] }) }),
    ];
    for (const answer of answers)
      expect([answer.url, (await answer.text()).includes(secret)]).toEqual([answer.url, false]);
    expect(lines.length).toBeGreaterThanOrEqual(answers.length);
    expect(lines.filter((line) => line.includes(secret))).toEqual([]);
    const found = execFileSync("sh", ["-c", `grep -rlaF -- "$0" "$1" || echo none`, secret, dataDir], {
      encoding: "utf8",
    });
    expect(found).toBe("none\n");
  });
});
