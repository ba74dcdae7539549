/** Every call of the client goes through the profile's table: reworded, or refused where the gateway has nothing for it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { createClient } from "../../src/client/create-client.ts";
import { staticToken } from "../../src/client/credentials.ts";
import { RemoteError } from "../../src/client/errors.ts";
import { checkProfile, OWN_PROFILE, type Profile, parseProfile } from "../../src/client/profile.ts";
import type { HttpRequest, Transport } from "../../src/contract/http.ts";
import { OPERATIONS, type OperationName } from "../../src/contract/operations.ts";
import { createBareGateway } from "../../src/gateway/bare.ts";
import { BARE_PROFILE } from "../../src/gateway/start.ts";
import { wallTime } from "../../src/lib/clocks.ts";
import { createCoreTransport } from "../support/core-transport.ts";
import { PLAIN } from "../support/features.ts";
import { createTestCore } from "../support/gateway-core.ts";

const content = {
  size: 1,
  async *read() {
    yield Buffer.from("x");
  },
};

const CALLS: Readonly<Record<OperationName, (client: Client) => Promise<unknown>>> = {
  listWorkspaces: (client) => client.listWorkspaces(),
  listNodes: (client) => client.listNodes({ parentId: "p" }),
  streamNodes: (client) => client.streamNodes({ parentId: "p" }).next(),
  getNode: (client) => client.getNode("n"),
  getNodeByPath: (client) => client.getNodeByPath("/a"),
  getContent: (client) => client.getContent("n"),
  upload: (client) => client.upload("p", "a", content),
  writeContent: (client) => client.writeContent("n", content),
  writeReference: (client) => client.writeContentByReference("n", { copyOf: "m" }),
  createNode: (client) => client.createFolder("p", "a"),
  patchNode: (client) => client.patchNode("n", { name: "a" }),
  exchangeNodes: (client) => client.exchangeNodes("n", "m"),
  deleteNode: (client) => client.deleteNode("n"),
  restoreNode: (client) => client.restoreNode("n"),
  restoreTree: (client) => client.restoreTree("n", "2026-01-31T12:00:00Z"),
  listVersions: (client) => client.listVersions("n"),
  appendJournal: (client) => client.appendJournal("n", "seen"),
  readJournal: (client) => client.readJournal("w", 5),
  streamJournal: (client) => client.streamJournal(5).next(),
  getAccount: (client) => client.getAccount(),
  listGrants: (client) => client.listGrants(),
  setGrant: (client) => client.setGrant("ada", "viewer"),
  removeGrant: (client) => client.removeGrant("ada"),
  createWorkspace: (client) => client.createWorkspace("w"),
  listEngines: (client) => client.listEngines(),
  getEngine: (client) => client.getEngine("e"),
  createInstallation: (client) => client.createInstallation("e"),
  listInstallations: (client) => client.listInstallations(),
  getInstallation: (client) => client.getInstallation("i"),
  removeInstallation: (client) => client.removeInstallation("i"),
  startExecution: (client) => client.startExecution("e"),
  listExecutions: (client) => client.listExecutions(),
  getExecution: (client) => client.getExecution("x"),
  cancelExecution: (client) => client.cancelExecution("x"),
  readLogs: (client) => client.readLogs("x", 0),
  streamLogs: (client) => client.streamLogs("x", 0).next(),
  createApiKey: (client) => client.createApiKey("k", ["node.file.read"]),
  listApiKeys: (client) => client.listApiKeys(),
  revokeApiKey: (client) => client.revokeApiKey("k"),
  createTrigger: (client) => client.createTrigger({ name: "t", engine: "e", on: { schedule: { cron: "0 0 * * *" } } }),
  listTriggers: (client) => client.listTriggers(),
  getTrigger: (client) => client.getTrigger("t"),
  updateTrigger: (client) => client.updateTrigger("t", { isEnabled: false }),
  removeTrigger: (client) => client.removeTrigger("t"),
};
const NAMES = Object.keys(OPERATIONS) as OperationName[];

interface Answer {
  readonly status?: number;
  readonly type?: string;
  readonly text: string;
}

function start(profile: Profile, answer: (request: HttpRequest) => Answer = () => ({ status: 404, text: "{}" })) {
  const requests: HttpRequest[] = [];
  const transport: Transport = {
    async send(request) {
      requests.push(request);
      const { status = 200, type = "application/json", text } = answer(request);
      const body = (async function* () {
        // In pieces, as a network has it.
        for (let at = 0; at < text.length; at += 7) yield Buffer.from(text.slice(at, at + 7));
      })();
      return { status, headers: { "content-type": type }, body };
    },
    async close() {},
  };
  const client = createClient({
    transport,
    credentials: staticToken("secret-token"),
    profile,
    now: () => wallTime(1_800_000_000_000),
  });
  return { client, requests };
}

const failure = (work: Promise<unknown>): Promise<RemoteError> =>
  work.then(
    () => expect.unreachable("it went well"),
    (error: unknown) => {
      if (error instanceof RemoteError) return error;
      throw error;
    },
  );

test.each(NAMES)("%s goes where the profile says, and nowhere when it says null", async (name) => {
  const operations = { [name]: { method: "PATCH", path: "/theirs", query: { after: "since", workspace: "ws" } } };
  const { client, requests } = start(checkProfile({ name: "theirs", operations }, "p"));
  await failure(CALLS[name](client));
  const [first] = requests;
  expect(first).toMatchObject({ method: "PATCH", path: "/theirs" });
  if (name === "readJournal") expect(first?.query).toEqual({ since: "5", ws: "w" });
  if (name === "streamJournal") expect(first?.query).toEqual({ since: "5" });

  const without = start({ ...OWN_PROFILE, name: "less", operations: { ...OWN_PROFILE.operations, [name]: null } });
  const error = await failure(CALLS[name](without.client));
  expect([error.code, error.message]).toEqual(["invalid", `${name}: the gateway does not have it (profile less)`]);
  expect(without.requests).toEqual([]);
});

test.each<[string, object, (client: Client) => Promise<unknown>]>([
  [
    "at",
    { operations: { listNodes: { query: { at: null } } } },
    (c) => c.listNodes({ parentId: "p", at: "2026-01-31T12:00:00Z" }),
  ],
  [
    "recursive",
    { operations: { listNodes: { query: { recursive: null } } } },
    (c) => c.listNodes({ parentId: "p", recursive: true }),
  ],
  ["branch", { operations: { getNode: { query: { branch: null } } } }, (c) => c.getNode("n", { branch: "b" })],
  ["branch", { fields: { uploadMetadata: { branch: null } } }, (c) => c.writeContent("n", content, { branch: "b" })],
  [
    "at",
    { operations: { getContent: { query: { at: null } } } },
    (c) => c.getContent("n", { at: "2026-01-31T12:00:00Z" }),
  ],
  ["copyOf", { fields: { newNode: { copyOf: null } } }, (c) => c.copyNode("p", "a", { copyOf: "n" })],
  ["copyOf", { tier: "plain" }, (c) => c.writeContentByReference("n", { copyOf: "m" })],
])("%s that the gateway has no place for is refused, not left out", async (field, profile, call) => {
  const { client, requests } = start(checkProfile({ name: "less", ...profile }, "p"));
  const error = await failure(call(client));
  expect([error.code, error.field, requests]).toEqual(["invalid", field, []]);
});

const entry = (position: number) => ({ at: 1_700_000_000 + position, what: "created", node: `n${position}` });
const theirJournal = checkProfile(
  {
    name: "theirs",
    operations: { streamJournal: { path: "/events", query: { after: null } } },
    fields: { journalEntry: { position: "seq", time: { at: "at", format: "seconds" }, kind: "what", nodeId: "node" } },
  },
  "p",
);

test("events of the journal come in the gateway's words, numbered by their fields or their ids", async () => {
  const text = `: hello\n\nid: 7\ndata: ${JSON.stringify(entry(7))}\n\n:\n\ndata: ${JSON.stringify({ ...entry(8), seq: 8 })}\n\n`;
  const { client, requests } = start(theirJournal, () => ({ type: "text/event-stream", text }));
  const came = [];
  const heard: number[] = [];
  for await (const one of client.streamJournal(6, { onHeard: () => void heard.push(1) })) came.push(one);
  expect(came).toMatchObject([
    { position: 7, kind: "created", nodeId: "n7", time: "2023-11-14T22:13:27.000Z", revision: 0 },
    { position: 8, nodeId: "n8" },
  ]);
  expect(heard.length).toBeGreaterThan(came.length);
  // Where the address has no place for it, it is said as readers of event streams do.
  expect(requests[0]).toMatchObject({ path: "/events", query: {}, headers: { "last-event-id": "6" } });
});

test("events in words nobody said are refused", async () => {
  const { client } = start(theirJournal, () => ({ type: "text/event-stream", text: 'data: {"seq":"x"}\n\n' }));
  expect((await failure(client.streamJournal(0).next())).code).toBe("malformed");
});

/** Lists of five, two a page whatever is asked for, that say nothing of their size. */
const untold = () =>
  checkProfile(
    {
      name: "untold",
      tier: "plain",
      fields: { page: { totalCount: null, pageNo: null, pageSize: null, next: null } },
    },
    "p",
  );
const ALL = ["a", "b", "c", "d", "e"];

function pages(request: HttpRequest, size: number): Answer {
  const start = (Number(request.query.pageNo ?? 1) - 1) * size;
  const isJournal = request.path === "/v1/journal";
  const after = isJournal ? Number(request.query.after) : 0;
  const items = ALL.map((name, index) => ({
    ...{ id: name, name, rootId: name, kind: isJournal ? "created" : "file", path: `/${name}`, parentId: "p", size: 1 },
    ...{ head: "v", revision: 1, createdAt: "2026-01-01T00:00:00.000Z", attributes: {} },
    ...{ position: index + 1, time: "2026-01-01T00:00:00.000Z", nodeId: name },
  }))
    .filter(({ position }) => position > after)
    .slice(start, start + size);
  return { text: JSON.stringify({ items, asOf: 5 }) };
}

test("lists that say no total are walked to their end", async () => {
  const { client } = start(untold(), (request) => pages(request, 2));
  const names: string[] = [];
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page = await client.listFolder("p", { after, pageSize: 200 });
    names.push(...page.items.map(({ name }) => name));
    after = page.next ?? undefined;
  }
  expect(names).toEqual(ALL);
  expect((await client.listWorkspaces()).map(({ name }) => name)).toEqual(ALL);
  // One name of the folder is looked for on all of its pages.
  expect((await client.listFolder("p", { name: "e" })).items.map(({ name }) => name)).toEqual(["e"]);
  expect((await client.listFolder("p", { name: "f" })).items).toEqual([]);
  // As far as a page of the journal goes, there may be more.
  const page = await client.readJournal("w", 0, { pageSize: 500 });
  expect([page.items.length, page.totalCount > page.items.length]).toEqual([2, true]);
  const last = await client.readJournal("w", 5, { pageSize: 500 });
  expect([last.items.length, last.totalCount]).toEqual([0, 0]);
});

test("a list that shows the same page under every number is refused, one that comes whole is read once", async () => {
  const same = () => pages({ method: "GET", path: "/", query: {}, headers: {} }, 5);
  const { client } = start(untold(), same);
  const page = await client.listFolder("p");
  expect((await failure(client.listFolder("p", { after: page.next ?? "" }))).message).toContain('"pageNo": null');
  expect((await failure(client.listFolder("p", { name: "f" }))).code).toBe("malformed");
  expect((await client.listWorkspaces()).length).toBe(5);
  const operations = { listNodes: { query: { pageNo: null } } };
  const whole = start(
    checkProfile({ name: "untold", tier: "plain", operations, fields: { page: { totalCount: null } } }, "p"),
    same,
  );
  expect((await whole.client.listFolder("p")).next).toBeNull();
  expect(whole.requests.length).toBe(1);
});

test("a move that wants folder and name gets both, whichever is meant", async () => {
  const core = createTestCore();
  const bare = parseProfile(readFileSync(BARE_PROFILE, "utf8"), BARE_PROFILE);
  const transport = createCoreTransport(() => createBareGateway(core.gateway));
  const client = createClient({ transport, credentials: staticToken(core.token()), profile: bare });
  const folder = await client.createFolder(core.workspace.root, "d");
  const file = await client.upload(folder.id, "a", content);
  expect((await client.patchNode(file.id, { name: "b" })).path).toBe("/d/b");
  expect((await client.patchNode(file.id, { parentId: core.workspace.root })).path).toBe("/b");
  await client.deleteNode(file.id);
  expect((await failure(client.patchNode(file.id, { name: "c" }))).code).toBe("notFound");
});

test.each<[string, (client: Client) => Promise<unknown>]>([
  ["deleted", (client) => client.listNodes({ parentId: "p", deleted: true })],
  ["nodeId", (client) => client.readJournal("w", 0, { nodeId: "n" })],
  ["since", (client) => client.readJournal("w", 0, { since: "2026-01-31T12:00:00Z" })],
  ["by", (client) => client.readJournal("w", 0, { by: "ada" })],
  ["mount", (client) => client.readJournal("w", 0, { mount: "here" })],
  ["before", (client) => client.readJournal("w", 0, { before: true })],
  ["name", (client) => client.restoreNode("n", { name: "a" })],
  ["at", (client) => client.restoreTree("n", "2026-01-31T12:00:00Z")],
])(
  "of a plain gateway, %s is asked of nobody: a gateway that does not know it would answer something else",
  async (field, ask) => {
    const { client, requests } = start({ ...OWN_PROFILE, features: PLAIN });
    const error = await failure(ask(client));
    expect([error.code, error.field, requests]).toEqual(["invalid", field, []]);
    await failure(client.listNodes({ parentId: "p" }));
    await failure(client.readJournal("w", 0));
    await failure(client.restoreNode("n", { idempotencyKey: "k" }));
    expect(requests).toHaveLength(3);
  },
);

test("content by reference is written where content is, unless the profile says another way", async () => {
  const own = { method: "PUT", path: "/v1/files/{nodeId}/bytes" } as const;
  const asked = async (operations: object) => {
    const { client, requests } = start(checkProfile({ name: "p", operations }, "p"));
    await failure(CALLS.writeReference(client));
    return requests.map(({ method, path }) => `${method} ${path}`);
  };
  expect(await asked({})).toEqual(["POST /v1/nodes/n/versions"]);
  expect(await asked({ writeContent: own })).toEqual(["PUT /v1/files/n/bytes"]);
  expect(await asked({ writeContent: own, writeReference: { path: "/v1/again/{nodeId}" } })).toEqual([
    "POST /v1/again/n",
  ]);
});

test("a key the gateway would not know again is in no request, of deletions neither", async () => {
  const { client, requests } = start({ ...OWN_PROFILE, features: PLAIN });
  await failure(client.deleteNode("n", { idempotencyKey: "k" }));
  await failure(client.restoreNode("n", { idempotencyKey: "k" }));
  expect(JSON.stringify(requests)).not.toContain('"k"');
});

test("at a plain gateway, content of a node that is not found yet: the refusal is of that node, not of the gateway", async () => {
  const { client, requests } = start({ ...OWN_PROFILE, features: PLAIN }, ({ path }) =>
    path.endsWith("/content") ? { text: "bytes" } : { status: 404, text: "{}" },
  );
  const { code, message, details } = await failure(client.getContent("n", { version: "v" }));
  expect([code, message]).toEqual(["server", "getContent: the node's head is not known yet"]);
  expect(details).toMatchObject({ isOfNode: true, retryAfterMs: 4_000 });
  expect(requests).toHaveLength(2);
});

test.each([302, 304, 307])(
  "an answer of %i to a change is no change, where answers say nothing of the node",
  async (status) => {
    const silent = Object.fromEntries(
      ["writeContent", "patchNode", "deleteNode"].map((name) => [name, { answer: "none" }]),
    );
    const node = JSON.stringify({ id: "n", kind: "file", name: "a", path: "/a", head: "v", revision: 1, size: 1 });
    const { client } = start(checkProfile({ name: "silent", operations: silent }, "p"), ({ method }) =>
      method === "GET" ? { text: node } : { status, text: "" },
    );
    for (const call of [CALLS.writeContent, CALLS.patchNode, CALLS.deleteNode]) {
      const error = await failure(call(client));
      expect([error.code, error.status]).toEqual(["malformed", status]);
    }
  },
);
