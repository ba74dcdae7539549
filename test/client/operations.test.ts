import { expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { createClient } from "../../src/client/create-client.ts";
import { staticToken } from "../../src/client/credentials.ts";
import { OWN_PROFILE } from "../../src/client/profile.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN } from "../support/features.ts";
import { exampleNode, examplePage, exampleWorkspace, exampleWritten, textSource } from "./support/examples.ts";
import { answerJson, clientFor, clientOf, failureOf, readBody, serve } from "./support/server.ts";

interface Seen {
  readonly line: string;
  readonly headers: Record<string, unknown>;
  readonly json: unknown;
}

/** The request one call makes, and what the call makes of `answer`. */
async function requestOf(
  call: (client: Client) => Promise<unknown>,
  answer: object,
): Promise<Seen & { result: unknown }> {
  const seen: Seen[] = [];
  const client = await clientFor(async (request, response) => {
    const body = await readBody(request);
    const isJson = request.headers["content-type"] === "application/json";
    seen.push({
      line: `${request.method} ${request.url}`,
      headers: request.headers,
      json: isJson ? JSON.parse(body.toString()) : undefined,
    });
    answerJson(response, 200, answer);
  });
  const result = await call(client);
  const [first] = seen;
  if (first === undefined || seen.length !== 1) throw new Error(`expected one request, got ${seen.length}`);
  return { ...first, result };
}

const written = exampleWritten();

test.each<[string, (client: Client) => Promise<unknown>, object, string, Record<string, unknown>, unknown]>([
  [
    "first page of a folder",
    (c) => c.listFolder("root"),
    examplePage([exampleNode()]),
    "GET /v1/nodes?parentId=root&after=",
    { accept: "application/json" },
    undefined,
  ],
  [
    "a later page",
    (c) => c.listFolder("root", { after: "a b/c", pageSize: 1000 }),
    examplePage([exampleNode()], { next: "x" }),
    "GET /v1/nodes?parentId=root&after=a+b%2Fc&pageSize=1000",
    {},
    undefined,
  ],
  [
    "one name",
    (c) => c.listFolder("root", { name: "ä&=" }),
    examplePage([]),
    "GET /v1/nodes?parentId=root&name=%C3%A4%26%3D&after=",
    {},
    undefined,
  ],
  ["node by id", (c) => c.getNode("n1"), exampleNode(), "GET /v1/nodes/n1", {}, undefined],
  ["versions", (c) => c.listVersions("n1"), examplePage([]), "GET /v1/nodes/n1/versions?after=", {}, undefined],
  [
    "journal from the start",
    (c) => c.readJournal("w1", 0),
    examplePage([]),
    "GET /v1/journal?workspace=w1&after=0",
    {},
    undefined,
  ],
  [
    "journal after a position",
    (c) => c.readJournal("w1", 41, { pageSize: 9 }),
    examplePage([]),
    "GET /v1/journal?workspace=w1&after=41&pageSize=9",
    {},
    undefined,
  ],
  [
    "new folder",
    (c) => c.createFolder("root", "d", { idempotencyKey: "k", attributes: { mode: 0o700 } }),
    written,
    "POST /v1/nodes",
    {},
    { parentId: "root", name: "d", kind: "folder", idempotencyKey: "k", attributes: { mode: 0o700 } },
  ],
  [
    "copy",
    (c) => c.copyNode("root", "b", { copyOf: "n9", version: "v2" }),
    written,
    "POST /v1/nodes",
    {},
    { parentId: "root", name: "b", copyOf: "n9", version: "v2" },
  ],
  [
    "patch",
    (c) => c.patchNode("n1", { name: "b", attributes: { mtime: null } }, { ifRevision: 3 }),
    written,
    "PATCH /v1/nodes/n1",
    { "if-match": '"3"' },
    { name: "b", attributes: { mtime: null } },
  ],
  [
    "exchange",
    (c) => c.exchangeNodes("n1", "n2"),
    written,
    "POST /v1/nodes/n1/exchange",
    { "if-match": undefined },
    { with: "n2" },
  ],
  [
    "patch with a key",
    (c) => c.patchNode("n1", { name: "b" }, { ifRevision: 3, idempotencyKey: "k" }),
    written,
    "PATCH /v1/nodes/n1",
    { "if-match": '"3"' },
    { name: "b", idempotencyKey: "k" },
  ],
  [
    "exchange with a key and both revisions",
    (c) => c.exchangeNodes("n1", "n2", { ifRevision: 3, otherRevision: 4, idempotencyKey: "k" }),
    written,
    "POST /v1/nodes/n1/exchange",
    { "if-match": '"3"' },
    { with: "n2", withRevision: 4, idempotencyKey: "k" },
  ],
  [
    "delete with a key",
    (c) => c.deleteNode("n1", { ifRevision: 0, idempotencyKey: "k &" }),
    written,
    "DELETE /v1/nodes/n1?idempotencyKey=k+%26",
    { "if-match": '"0"' },
    undefined,
  ],
  [
    "restore with a key",
    (c) => c.restoreNode("n1", { idempotencyKey: "k" }),
    written,
    "POST /v1/nodes/n1/restore",
    {},
    { idempotencyKey: "k" },
  ],
  [
    "delete",
    (c) => c.deleteNode("n1", { ifRevision: 0 }),
    written,
    "DELETE /v1/nodes/n1",
    { "if-match": '"0"' },
    undefined,
  ],
  ["restore", (c) => c.restoreNode("n1"), written, "POST /v1/nodes/n1/restore", {}, undefined],
  [
    "restore to another place",
    (c) => c.restoreNode("n1", { parentId: "p", name: "b" }),
    written,
    "POST /v1/nodes/n1/restore",
    {},
    { parentId: "p", name: "b" },
  ],
  [
    "a part of a tree restored",
    (c) => c.restoreTree("n1", "2026-01-31T12:00:00Z", { exact: true, plan: false, after: "x", pageSize: 9 }),
    { items: [], next: null, position: null },
    "POST /v1/nodes/n1/restore-tree",
    {},
    { at: "2026-01-31T12:00:00Z", exact: true, plan: false, after: "x", pageSize: 9 },
  ],
  [
    "deleted nodes",
    (c) => c.listNodes({ parentId: "p", deleted: true, recursive: true, orderBy: "-deletedAt" }),
    examplePage([]),
    "GET /v1/nodes?parentId=p&recursive=true&deleted=true&after=&orderBy=-deletedAt",
    {},
    undefined,
  ],
  [
    "the journal of a node, an account, a mount, since a moment, the newest first",
    (c) =>
      c.readJournal("w1", 0, {
        ...{ nodeId: "n1", since: "2026-01-31T12:00:00Z", by: "ada", mount: "here" },
        ...{ before: true, orderBy: "-position", after: "0.x" },
      }),
    examplePage([]),
    "GET /v1/journal?workspace=w1&nodeId=n1&since=2026-01-31T12%3A00%3A00Z&by=ada&mount=here&before=true&orderBy=-position&after=0.x",
    {},
    undefined,
  ],
  [
    "content by reference",
    (c) => c.writeContentByReference("n1", { copyOf: "n2" }, { ifHead: "v1" }),
    written,
    "POST /v1/nodes/n1/versions",
    { "if-match": '"v1"' },
    { copyOf: "n2" },
  ],
  [
    "new version",
    (c) => c.writeContent("n1", textSource("hello"), { ifHead: "v1" }),
    written,
    "PUT /v1/nodes/n1/content",
    { "if-match": '"v1"', "if-none-match": undefined, accept: "application/json" },
    undefined,
  ],
  [
    "upload",
    (c) => c.upload("root", "50% ä.txt", textSource("hello")),
    written,
    "POST /v1/files/50%25%20%C3%A4.txt?parentId=root",
    { "if-none-match": "*" },
    undefined,
  ],
])("%s is asked for as the contract says", async (_, call, answer, line, headers, json) => {
  const seen = await requestOf(call, answer);
  expect(seen.line).toBe(line);
  for (const [name, value] of Object.entries({ authorization: "Bearer secret-token", ...headers })) {
    expect(seen.headers[name]).toBe(value);
  }
  expect(seen.json).toEqual(json);
  expect(seen.result).toEqual(answer);
});

test("all pages of workspaces are walked, also when pages are smaller than asked for", async () => {
  const all = [1, 2, 3, 4, 5].map(exampleWorkspace);
  const client = await clientFor((request, response) => {
    const pageNo = Number(new URL(request.url ?? "", "http://x").searchParams.get("pageNo"));
    const items = all.slice((pageNo - 1) * 2, pageNo * 2);
    answerJson(response, 200, examplePage(items, { totalCount: 5, pageNo, pageSize: 2 }));
  });
  expect(await client.listWorkspaces()).toEqual(all);
  expect(await client.findWorkspace("workspace 5")).toEqual(all[4]);
  expect(await client.findWorkspace("w4")).toEqual(all[3]);
  expect(await client.findWorkspace("w6")).toBeUndefined();
});

test("the base URL's own path comes before the operation's", async () => {
  const seen: unknown[] = [];
  const { baseUrl } = await serve((request, response) => {
    seen.push(request.url);
    answerJson(response, 200, exampleNode());
  });
  await clientOf(`${baseUrl}/gateway/`).getNode("n1");
  expect(seen).toEqual(["/gateway/v1/nodes/n1"]);
});

test.each(["", ".", "..", "a/b", "a\0b", "\ud800", "x".repeat(256)])(
  "name %j is refused before anything is sent",
  async (name) => {
    const client = await clientFor(() => expect.unreachable("a request was sent"));
    const error = await failureOf(client.upload("root", name, textSource("")));
    expect(error).toMatchObject({ code: "invalid", details: { field: "name" } });
  },
);

test.each(["", ".", "..", "\ud800"])("node id %j is refused before anything is sent", async (nodeId) => {
  const client = await clientFor(() => expect.unreachable("a request was sent"));
  expect(await failureOf(client.getNode(nodeId))).toMatchObject({ code: "invalid", details: { field: "nodeId" } });
});

test("an answer about another node is malformed", async () => {
  const client = await clientFor((_, response) => answerJson(response, 200, exampleNode({ id: "other" })));
  expect(await failureOf(client.getNode("n1"))).toMatchObject({ code: "malformed" });
});

test("a listing of another folder is malformed", async () => {
  const client = await clientFor((_, response) => answerJson(response, 200, examplePage([exampleNode()])));
  expect(await failureOf(client.listFolder("elsewhere"))).toMatchObject({ code: "malformed" });
});

test("a plain gateway is sent no keys but those of uploads, and no conditions", async () => {
  const seen: HttpRequest[] = [];
  async function* body() {
    yield Buffer.from(JSON.stringify(exampleWritten()));
  }
  const client = createClient({
    transport: {
      async send(request) {
        seen.push(request);
        return { status: 200, headers: { "content-type": "application/json" }, body: body() };
      },
      async close() {},
    },
    credentials: staticToken("secret-token"),
    profile: { ...OWN_PROFILE, features: PLAIN },
  });
  const options = { idempotencyKey: "k" };
  await client.patchNode("n1", { name: "b" }, { ...options, ifRevision: 3 });
  await client.exchangeNodes("n1", "n2", options);
  await client.deleteNode("n1", options);
  await client.restoreNode("n1", options);
  await client.createFolder("root", "d", options);
  expect(client.features.isFull).toBe(false);
  expect(JSON.stringify(seen)).not.toContain("idempotencyKey");
  expect(seen[0]?.headers).not.toHaveProperty("if-match");
  await client.writeContent("n1", textSource("x"), options);
  expect(JSON.stringify(seen.at(-1))).toContain('"idempotencyKey":"k"');
});
