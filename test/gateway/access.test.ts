/** Roles: each operation by each of them, what a stranger learns (nothing), and who the journal says it was. */
import { beforeEach, describe, expect, test } from "vitest";
import { OPERATIONS, type Operation, type OperationName } from "../../src/contract/operations.ts";
import { includesRole, ROLES, type Role } from "../../src/contract/roles.ts";
import type { Account } from "../../src/gateway/accounts/index.ts";
import { accountToken, newAccount, type TokenChoice } from "../support/account-token.ts";
import { type CallOptions, createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";

let core: TestCore;
let file: string;
let other: { id: string; root: string };
/** Of what the calls are about. */
let ids: string[];
/** Made in a workspace that only eve may use. */
let secret: string;
let calls: Record<OperationName, [path: string, options?: CallOptions]>;
/** An engine that is not installed; and of one that is. */
let installation: string;
let execution: string;

const token = (account: Account, choice?: TokenChoice) => accountToken(core.accounts, core.clock, account, choice);

function account(name: string, role?: Role, workspace = core.workspace.id): Account {
  const made = newAccount(core.accounts, name);
  if (role !== undefined) core.accounts.accounts.setRole(made.id, workspace, role);
  return made;
}

beforeEach(async () => {
  core = createTestCore();
  const made = await core.file("/d/f", "x");
  const gone = await core.file("/d/gone", "x");
  await core.call("DELETE", `/v1/nodes/${gone.id}`);
  file = made.id;
  other = core.gateway.ensureWorkspace("other");
  const eve = account("eve", "owner", other.id);
  const upload = await core.upload("/v1/files/plans", "secret", {
    token: token(eve),
    query: { workspace: "other" },
  });
  secret = String(upload.json.id);
  account("ada", "owner");
  const root = core.workspace.root;
  const workspace = core.workspace.id;
  const key = core.accounts.apiKeys.create({ name: "k", account: null, workspace, scopes: [], expiresAt: null });
  const body = () => uploadBody(part("file", "y"));
  const engine = { description: "", command: ["true"], timeLimitSeconds: 60, scopes: [], inputSchema: null };
  for (const name of ["resize", "scan"]) core.accounts.engines.add({ ...engine, name });
  installation = String((await core.call("POST", "/v1/installations", { json: { engine: "scan" } })).json.id);
  execution = String((await core.call("POST", "/v1/executions", { json: { engine: "scan" } })).json.id);
  const on = { journal: { kinds: ["seldom"] } };
  const trigger = (await core.call("POST", "/v1/triggers", { json: { name: "t", engine: "scan", on } })).json.id;
  ids = [file, workspace, String(key?.row.id), installation, execution, trigger];
  calls = {
    listWorkspaces: ["/v1/workspaces"],
    listNodes: ["/v1/nodes", { query: { path: "/d", workspace } }],
    streamNodes: ["/v1/tree", { query: { path: "/d", workspace } }],
    getNode: [`/v1/nodes/${file}`],
    getNodeByPath: ["/v1/files/d/f", { query: { workspace } }],
    getContent: [`/v1/nodes/${file}/content`],
    upload: ["/v1/files/d/new", { query: { workspace }, body: body() }],
    writeContent: [`/v1/nodes/${file}/content`, { body: body() }],
    writeReference: [`/v1/nodes/${file}/versions`, { json: { copyOf: file } }],
    createNode: ["/v1/nodes", { json: { parentId: root, name: "n", kind: "folder" } }],
    patchNode: [`/v1/nodes/${file}`, { json: { name: "n" } }],
    exchangeNodes: [`/v1/nodes/${file}/exchange`, { json: { with: made.parentId } }],
    deleteNode: [`/v1/nodes/${file}`],
    restoreNode: [`/v1/nodes/${gone.id}/restore`],
    restoreTree: [`/v1/nodes/${root}/restore-tree`, { json: { at: new Date(core.clock.wallClock()).toISOString() } }],
    listVersions: [`/v1/nodes/${file}/versions`],
    appendJournal: ["/v1/journal", { json: { nodeId: file, kind: "seen" } }],
    readJournal: ["/v1/journal", { query: { workspace } }],
    streamJournal: ["/v1/journal/stream", { query: { workspace } }],
    getAccount: ["/v1/account"],
    listGrants: ["/v1/grants", { query: { workspace } }],
    setGrant: ["/v1/grants", { query: { workspace }, json: { account: "eve", role: "viewer" } }],
    removeGrant: ["/v1/grants", { query: { workspace, account: "eve" } }],
    createWorkspace: ["/v1/workspaces", { json: { name: "third" } }],
    createApiKey: ["/v1/api-keys", { query: { workspace }, json: { name: "k", scopes: ["node.file.read"] } }],
    listApiKeys: ["/v1/api-keys", { query: { workspace } }],
    revokeApiKey: [`/v1/api-keys/${key?.row.id}`],
    listEngines: ["/v1/engines"],
    getEngine: ["/v1/engines/scan"],
    createInstallation: ["/v1/installations", { query: { workspace }, json: { engine: "resize" } }],
    listInstallations: ["/v1/installations", { query: { workspace } }],
    getInstallation: [`/v1/installations/${installation}`],
    removeInstallation: [`/v1/installations/${installation}`],
    startExecution: ["/v1/executions", { query: { workspace }, json: { engine: "scan" } }],
    listExecutions: ["/v1/executions", { query: { workspace } }],
    getExecution: [`/v1/executions/${execution}`],
    cancelExecution: [`/v1/executions/${execution}/cancel`],
    readLogs: [`/v1/executions/${execution}/logs`],
    streamLogs: [`/v1/executions/${execution}/logs/stream`],
    createTrigger: ["/v1/triggers", { query: { workspace }, json: { name: "u", engine: "scan", on } }],
    listTriggers: ["/v1/triggers", { query: { workspace } }],
    getTrigger: [`/v1/triggers/${trigger}`],
    updateTrigger: [`/v1/triggers/${trigger}`, { json: { isEnabled: false } }],
    removeTrigger: [`/v1/triggers/${trigger}`],
  };
});

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const WITH_ROLE = NAMES.filter((name) => (OPERATIONS[name] as Operation).role !== undefined);

function call(name: OperationName, options: CallOptions) {
  const [path, usual] = calls[name];
  return core.call(OPERATIONS[name].method, path, { ...usual, ...options });
}

describe.each(WITH_ROLE)("%s", (name) => {
  const needed = (OPERATIONS[name] as Operation).role ?? "owner";

  test.each(ROLES)("by a %s", async (role) => {
    const answer = await call(name, { token: token(account("carl", role)) });
    if (includesRole(role, needed)) {
      // An exchange with the folder it is in is refused for what it is.
      expect(answer.status).toBeLessThan(name === "exchangeNodes" ? 401 : 300);
      return;
    }
    expect([answer.status, answer.json.grant]).toEqual([403, { workspace: core.workspace.id, role: needed }]);
    expect(answer.json.scope).toBeUndefined();
  });

  test("by somebody without a role: it is not there, and was never", async () => {
    const stranger = token(account("carl"));
    const answer = await call(name, { token: stranger });
    expect(answer.status).toBe(404);
    const plain = (text: unknown) => ids.reduce((rest, id, n) => rest.replaceAll(id, `none-${n}`), String(text));
    const nowhere = calls[name].map((part) => JSON.parse(plain(JSON.stringify(part ?? null)))) as [string, CallOptions];
    if (name === "restoreNode" || name === "upload" || name === "writeContent" || name === "createNode") return;
    const missing = await core.call(OPERATIONS[name].method, nowhere[0], { ...nowhere[1], token: stranger });
    expect([missing.status, plain(missing.json.detail)]).toEqual([404, plain(answer.json.detail)]);
  });

  test("the scope comes first, also for a stranger", async () => {
    const answer = await call(name, { token: token(account("carl"), { scopes: [] }) });
    expect([answer.status, typeof answer.json.scope]).toEqual([403, "string"]);
  });

  test("by a token that is bound elsewhere", async () => {
    const carl = account("carl", "owner");
    core.accounts.accounts.setRole(carl.id, other.id, "owner");
    const answer = await call(name, { token: token(carl, { workspace: other.id }) });
    expect([answer.status, answer.json.grant]).toEqual([403, { workspace: core.workspace.id, role: needed }]);
  });
});

test("a workspace one has no role in is not listed, and a node in it is nowhere", async () => {
  const carl = token(account("carl", "owner"));
  const { items } = (await core.call("GET", "/v1/workspaces", { token: carl })).json;
  expect(items.map(({ name }) => name)).toEqual(["workspace"]);
  const bodies: [string, string, unknown][] = [
    ["POST", "/v1/nodes", { parentId: core.workspace.root, name: "n", copyOf: secret }],
    ["PATCH", `/v1/nodes/${file}`, { parentId: other.root }],
    ["POST", `/v1/nodes/${file}/exchange`, { with: secret }],
    ["POST", `/v1/nodes/${file}/versions`, { copyOf: secret }],
    ["POST", "/v1/nodes", { parentId: other.root, name: "n", kind: "folder" }],
    ["POST", "/v1/journal", { nodeId: secret, kind: "seen" }],
  ];
  for (const [method, path, json] of bodies) {
    const answer = await core.call(method, path, { json, token: carl });
    expect([path, JSON.stringify(json), answer.status]).toEqual([path, JSON.stringify(json), 404]);
    expect(answer.bytes.toString()).not.toContain("plans");
  }
});

test("the past of a node is seen by whoever may see the node now, deleted or not", async () => {
  const carl = account("carl", "editor");
  const gone = await core.file("/d/was", "x", { token: token(carl), query: { workspace: core.workspace.id } });
  const at = new Date(core.clock.wallClock()).toISOString();
  await core.clock.advance(1000);
  await core.call("DELETE", `/v1/nodes/${gone.id}`, { token: token(carl) });
  const workspace = core.workspace.id;
  const reads: [path: string, query?: Record<string, string>][] = [
    ["/v1/nodes", { path: "/d", deleted: "true", workspace }],
    ["/v1/nodes", { parentId: String(gone.parentId), deleted: "true", recursive: "true" }],
    ["/v1/nodes", { path: "/d", at, workspace }],
    ["/v1/files/d/was", { at, workspace }],
    [`/v1/nodes/${gone.id}/versions`],
    [`/v1/nodes/${gone.id}/content`, { version: String(gone.head) }],
    [`/v1/nodes/${gone.id}/content`, { at }],
    ["/v1/journal", { nodeId: gone.id, before: "true" }],
    ["/v1/journal", { by: "carl", mount: "here", since: at, workspace }],
  ];
  const restore = { json: { at, plan: true } };
  const statuses = async (one: string) =>
    [
      ...(await Promise.all(reads.map(([path, query = {}]) => core.call("GET", path, { query, token: one })))),
      await core.call("POST", `/v1/nodes/${gone.id}/restore-tree`, { ...restore, token: one }),
      await core.call("POST", `/v1/nodes/${gone.id}/restore`, { json: { name: "back" }, token: one }),
    ].map(({ status }) => status);
  const writes = 2;
  const every = (status: number, ofWrites = status) => [...reads.map(() => status), ...Array(writes).fill(ofWrites)];
  core.accounts.accounts.setRole(carl.id, other.id, "owner");
  expect(await statuses(token(account("vera", "viewer")))).toEqual(every(200, 403));
  expect(await statuses(token(account("sid")))).toEqual(every(404));
  expect(await statuses(token(carl, { workspace: other.id }))).toEqual(every(403));
  core.accounts.accounts.removeRole(carl.id, core.workspace.id);
  // What one made oneself, too.
  expect(await statuses(token(carl))).toEqual(every(404));
  core.accounts.accounts.setRole(carl.id, core.workspace.id, "editor");
  expect(await statuses(token(carl, { workspace }))).toEqual(every(200));
});

test("whose a token is, and where it may do something", async () => {
  const carl = account("carl", "editor");
  core.accounts.accounts.setRole(carl.id, other.id, "viewer");
  const { json } = await core.call("GET", "/v1/account", { token: token(carl, { scopes: ["node.file.read"] }) });
  expect(json).toMatchObject({
    account: { id: carl.id, name: "carl" },
    scopes: ["node.file.read"],
    workspace: null,
    workspaces: [
      { id: other.id, name: "other", role: "viewer" },
      { id: core.workspace.id, name: "workspace", role: "editor" },
    ],
  });
  const ofNobody = (await core.call("GET", "/v1/account")).json;
  expect(ofNobody).toMatchObject({ account: null, workspace: core.workspace.id, workspaces: [{ role: "owner" }] });
});

test("the journal and the versions say who it was, and from which mount; not of what nobody signed for", async () => {
  const carl = token(account("carl", "owner"));
  await core.upload(`/v1/nodes/${file}/content`, "by carl", {
    method: "PUT",
    token: carl,
    headers: { "wsfs-mount": "desk" },
  });
  const entries = (await core.call("GET", "/v1/journal", { query: { orderBy: "-position" } })).json.items;
  expect(entries[0]).toMatchObject({ kind: "updated", by: { account: "carl", mount: "desk" } });
  expect(entries.at(-1)?.by).toBeNull();
  const versions = (await core.call("GET", `/v1/nodes/${file}/versions`)).json.items;
  expect(versions.map(({ by }) => by)).toEqual([null, { account: "carl", mount: "desk" }]);
  const folder = { parentId: core.workspace.root, name: "copy", copyOf: (await core.node(file)).parentId };
  await core.call("POST", "/v1/nodes", { json: folder, token: carl });
  const [copied] = (await core.call("GET", "/v1/journal", { query: { orderBy: "-position" } })).json.items;
  expect(copied).toMatchObject({ by: { account: "carl" } });
  const wrong = await core.call("GET", "/v1/account", { headers: { "wsfs-mount": "a\nb" } });
  expect([wrong.status, wrong.json.field]).toEqual([400, "Wsfs-Mount"]);
});

test("a token is good as long as its sign-in, and its account", async () => {
  const carl = account("carl", "owner");
  const [first, second] = [token(carl, { login: "one" }), token(carl, { login: "two" })];
  const status = async (one: string) => (await core.call("GET", `/v1/nodes/${file}`, { token: one })).status;
  expect([await status(first), await status(second)]).toEqual([200, 200]);
  core.accounts.records.endLogin("one");
  expect([await status(first), await status(second)]).toEqual([401, 200]);
  core.accounts.accounts.remove(carl.id);
  expect(await status(second)).toBe(401);
});

test.each([
  ["its sign-in ends", (carl: Account) => core.accounts.records.endLogins(carl.id)],
  ["its account is removed", (carl: Account) => core.accounts.accounts.remove(carl.id)],
  ["the role is taken away", (carl: Account) => core.accounts.accounts.removeRole(carl.id, core.workspace.id)],
  ["its password is changed", (carl: Account) => core.accounts.accounts.setPassword(carl.id, "another password")],
  ["all tokens are revoked", () => core.accounts.revokeAll()],
  ["its token expires", () => core.clock.advance(295_000)],
])("an open stream ends when %s, within ten seconds", async (_, end) => {
  const carl = account("carl", "viewer");
  const answer = await core.gateway.handle({
    method: "GET",
    path: "/v1/journal/stream",
    query: { workspace: core.workspace.id, after: String((await core.file("/last", "x")).position) },
    headers: { authorization: `Bearer ${token(carl)}` },
  });
  if (answer.body?.kind !== "bytes") throw new Error("It is no stream.");
  const events = answer.body.stream[Symbol.asyncIterator]();
  expect(Buffer.from((await events.next()).value).toString()).toBe(": the journal\n\n");
  await end(carl);
  // What had to be said before may still come.
  const last = events.next().then((one) => (one.done === true ? one : events.next()));
  await core.clock.advance(10_000);
  expect((await last).done).toBe(true);
});

test("revoke-all ends what was issued until then, of both kinds, and nothing later", async () => {
  const carl = account("carl", "owner");
  const before = [core.token(), token(carl)];
  core.accounts.revokeAll();
  const status = async (one: string) => (await core.call("GET", `/v1/nodes/${file}`, { token: one })).status;
  expect(await Promise.all(before.map(status))).toEqual([401, 401]);
  // Within the same second.
  expect(await Promise.all([core.token(), token(carl)].map(status))).toEqual([200, 200]);
});

test("an owner gives and takes roles; the last owner stays", async () => {
  const owner = token(core.accounts.accounts.find("ada") ?? account("ada"));
  const query = { workspace: core.workspace.name };
  account("carl");
  const set = await core.call("PUT", "/v1/grants", { query, json: { account: "carl", role: "editor" }, token: owner });
  expect(set.json).toMatchObject({ account: { name: "carl" }, workspace: { name: "workspace" }, role: "editor" });
  const listed = (await core.call("GET", "/v1/grants", { query: { ...query, orderBy: "-account" }, token: owner }))
    .json;
  expect(listed.items).toMatchObject([{ role: "editor" }, { role: "owner" }]);
  const twice = async () =>
    (await core.call("DELETE", "/v1/grants", { query: { ...query, account: "carl" }, token: owner })).status;
  expect([await twice(), await twice()]).toEqual([204, 204]);
  const last = await core.call("DELETE", "/v1/grants", { query: { ...query, account: "ada" }, token: owner });
  expect([last.status, last.json.detail]).toEqual([
    409,
    "ada is the only owner of the workspace: make another account an owner first.",
  ]);
});
