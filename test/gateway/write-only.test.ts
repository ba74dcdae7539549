/** A token that may write and not read (node.file.read) is told nothing of what is there, and copies nothing of it. */
import { beforeEach, expect, test } from "vitest";
import { SCOPES } from "../../src/contract/scopes.ts";
import { type CallOptions, createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";

const READING = ["node.file.read", "node.node.read-all"];
/** In each path, name and attribute the token must not hear of. */
const SECRET = "secret";

let core: TestCore;
let writer: string;
let folder: string;
let file: string;
let other: string;
let hash: string;

beforeEach(async () => {
  core = createTestCore();
  writer = core.token(SCOPES.filter((scope) => !READING.includes(scope)));
  const metadata = { attributes: { note: SECRET } };
  const made = await core.file(`/${SECRET}-d/${SECRET}-a`, "what it holds", { metadata });
  ({ id: file, contentHash: hash } = { ...made, contentHash: made.contentHash ?? "" });
  folder = String(made.parentId);
  other = (await core.file(`/${SECRET}-d/${SECRET}-b`, "x", { metadata })).id;
});

type Ask = readonly [method: string, path: string, options?: CallOptions];
const sent = (bytes: string, metadata: object = {}) => ({
  body: uploadBody(part("metadata", JSON.stringify(metadata)), part("file", bytes)),
});

async function asWriter([method, path, options = {}]: Ask) {
  const { status, json, bytes } = await core.call(method, path, { ...options, token: writer });
  const text = bytes.toString();
  expect([method, path, text.includes(SECRET), text.includes(hash)]).toEqual([method, path, false, false]);
  return { status, json, fields: Object.keys(json).toSorted() };
}

test("what it changes is answered with an id, a revision and a position", async () => {
  const key = "k";
  await core.call("PATCH", `/v1/nodes/${file}`, { json: { attributes: { mode: 0o600 }, idempotencyKey: key } });
  const asked: Ask[] = [
    ["PATCH", `/v1/nodes/${file}`, { json: {} }],
    // Done by somebody who may read: the first answer is told again, less what it may not hear.
    ["PATCH", `/v1/nodes/${file}`, { json: { attributes: { mode: 0o600 }, idempotencyKey: key } }],
    ["PATCH", `/v1/nodes/${file}`, { json: { attributes: { mode: 0o644 } } }],
    ["PUT", `/v1/nodes/${file}/content`, sent("new")],
    ["POST", `/v1/nodes/${file}/exchange`, { json: { with: other } }],
    ["DELETE", `/v1/nodes/${file}`],
    ["POST", `/v1/nodes/${file}/restore`],
    ["POST", "/v1/nodes", { json: { parentId: folder, name: "n", kind: "folder" } }],
  ];
  for (const ask of asked) {
    const { status, fields } = await asWriter(ask);
    expect([ask[0], ask[1], status < 300, fields]).toEqual([ask[0], ask[1], true, ["id", "position", "revision"]]);
  }
});

test("a journal entry it appends is answered with what it said, also the second time", async () => {
  const json = { nodeId: file, kind: "seen", idempotencyKey: "j" };
  for (const _ of [1, 2]) {
    const { status, fields } = await asWriter(["POST", "/v1/journal", { json }]);
    expect([status, fields]).toEqual([201, ["kind", "nodeId", "position", "time"]]);
  }
  expect((await core.call("POST", "/v1/journal", { json })).json).toMatchObject({ name: `${SECRET}-a`, kind: "seen" });
});

test("a refusal shows no node and no name", async () => {
  const gone = await core.file(`/${SECRET}-d/${SECRET}-c`, "x");
  await core.call("DELETE", `/v1/nodes/${gone.id}`);
  await core.file(`/${SECRET}-d/${SECRET}-c`, "y");
  const same = await core.file(`/${SECRET}-a`, "y");
  const asked: [number, Ask][] = [
    [409, ["POST", "/v1/nodes", { json: { parentId: folder, name: `${SECRET}-a`, kind: "folder" } }]],
    [409, ["PATCH", `/v1/nodes/${same.id}`, { json: { parentId: folder } }]],
    [409, ["DELETE", `/v1/nodes/${folder}`]],
    [409, ["POST", `/v1/nodes/${file}/restore`]],
    [409, ["POST", `/v1/nodes/${gone.id}/restore`]],
    [412, ["PATCH", `/v1/nodes/${file}`, { json: {}, headers: { "if-match": '"0"' } }]],
    [412, ["DELETE", `/v1/nodes/${file}`, { headers: { "if-match": '"0"' } }]],
    [412, ["PUT", `/v1/nodes/${file}/content`, { ...sent("x"), headers: { "if-match": '"0"' } }]],
    [412, ["POST", `/v1/nodes/${file}/exchange`, { json: { with: other, withRevision: 9 } }]],
  ];
  for (const [expected, ask] of asked) {
    const { status, fields } = await asWriter(ask);
    expect([ask[0], ask[1], status, fields]).toEqual([
      ...[ask[0], ask[1], expected],
      ["detail", "status", "title", "type"],
    ]);
  }
  expect((await core.call("DELETE", `/v1/nodes/${folder}`)).json.node.name).toBe(`${SECRET}-d`);
});

test("it copies nothing", async () => {
  const root = core.workspace.root;
  const own = await core.file("/own", "mine");
  for (const ask of [
    ["POST", "/v1/nodes", { json: { parentId: root, name: "copy", copyOf: file } }],
    ["POST", "/v1/nodes", { json: { parentId: root, name: "copy", copyOf: folder } }],
    ["POST", `/v1/nodes/${own.id}/versions`, { json: { copyOf: file } }],
    ["PUT", `/v1/nodes/${own.id}/content`, { json: { copyOf: file } }],
  ] satisfies Ask[]) {
    const { status, json } = await asWriter(ask);
    expect([ask[0], ask[1], status, json.scope]).toEqual([ask[0], ask[1], 403, "node.file.read"]);
  }
  expect((await core.node(own.id)).revision).toBe(1);
  expect(await core.names("/")).toEqual(["own", `${SECRET}-d`]);
});
