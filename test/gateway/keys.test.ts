/** Changes of known nodes carry idempotency keys: repeated, they get the first answer, whatever happened since. */
import { beforeEach, expect, test } from "vitest";
import type { WrittenNode } from "../../src/contract/resources.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

let core: TestCore;
let root: string;
let file: WrittenNode;
let other: WrittenNode;
beforeEach(async () => {
  core = createTestCore();
  root = core.workspace.root;
  file = await core.file("/f", "one");
  other = await core.file("/g", "two");
});

const remove = (id: string, idempotencyKey?: string, headers = {}) =>
  core.call("DELETE", `/v1/nodes/${id}`, { query: idempotencyKey === undefined ? {} : { idempotencyKey }, headers });
const patch = (id: string, json: object, headers = {}) => core.call("PATCH", `/v1/nodes/${id}`, { json, headers });
const post = (id: string, what: string, json?: object) =>
  core.call("POST", `/v1/nodes/${id}/${what}`, json === undefined ? {} : { json });

interface Keyed {
  readonly name: string;
  /** What has to be there first. */
  readonly before?: () => Promise<unknown>;
  readonly send: (key: string) => ReturnType<TestCore["call"]>;
  /** The same operation with other content. */
  readonly otherwise: (key: string) => ReturnType<TestCore["call"]>;
}

const KEYED: readonly Keyed[] = [
  {
    name: "move and attributes",
    send: (key) =>
      patch(file.id, { name: "h", attributes: { mode: 0o600 }, idempotencyKey: key }, { "if-match": '"1"' }),
    otherwise: (key) => patch(file.id, { name: "h", attributes: { mode: 0o640 }, idempotencyKey: key }),
  },
  {
    name: "exchange",
    send: (key) => post(file.id, "exchange", { with: other.id, idempotencyKey: key }),
    otherwise: (key) => post(file.id, "exchange", { with: root, idempotencyKey: key }),
  },
  {
    name: "delete",
    send: (key) => remove(file.id, key, { "if-match": '"1"' }),
    otherwise: (key) => remove(other.id, key),
  },
  {
    name: "restore",
    before: () => remove(file.id),
    send: (key) => post(file.id, "restore", { idempotencyKey: key }),
    otherwise: (key) => post(other.id, "restore", { idempotencyKey: key }),
  },
];

const changes = () => Number(core.database.prepare("SELECT count(*) FROM change").pluck().get());

test.each(KEYED)("$name: sent twice at once it is done once", async ({ before, send }) => {
  await before?.();
  const [first, second] = await Promise.all([send("k"), send("k")]);
  expect(first.status).toBe(200);
  expect([second.status, second.json]).toEqual([200, first.json]);
  const count = changes();
  core = core.restart();
  expect((await send("k")).json).toEqual(first.json);
  expect(changes()).toBe(count);
});

test.each(KEYED)("$name: repeated after other changes it gets the first answer", async ({ before, send }) => {
  await before?.();
  const first = await send("k");
  if ((await core.call("GET", `/v1/nodes/${file.id}`)).status === 404) await post(file.id, "restore");
  await patch(file.id, { name: "elsewhere" });
  await remove(file.id);
  const count = changes();
  const again = await send("k");
  expect([again.status, again.json]).toEqual([200, first.json]);
  expect(changes()).toBe(count);
});

test.each(KEYED)("$name: the key says in node and journal whose change it is", async ({ before, send }) => {
  await before?.();
  const { json } = await send("k");
  expect(json.lastKey).toBe("k");
  const journal = await core.call("GET", "/v1/journal", { query: { after: String(json.position - 1) } });
  expect(journal.json.items[0]).toMatchObject({ nodeId: json.id, key: "k" });
  await patch(other.id, { attributes: { mode: 0o600 } });
  expect((await core.node(other.id)).lastKey).toBe(null);
});

test.each(KEYED)("$name: a key used for anything else is refused by name", async ({ before, send, otherwise }) => {
  await before?.();
  await send("k");
  const count = changes();
  for (const answer of [
    await otherwise("k"),
    await post(other.id, "restore", { idempotencyKey: "k" }),
    await patch(other.id, { name: "x", idempotencyKey: "k" }),
    await core.upload("/v1/files/new", "x", { metadata: { idempotencyKey: "k" } }),
  ]) {
    expect([answer.status, answer.json.field]).toEqual([400, "idempotencyKey"]);
  }
  expect(changes()).toBe(count);
});

test("of what was refused no key is kept: it is judged again", async () => {
  const move = () => patch(file.id, { name: "g", idempotencyKey: "k" });
  expect((await move()).status).toBe(409);
  await remove(other.id);
  expect((await move()).json).toMatchObject({ name: "g", revision: 2, lastKey: "k" });
});

test("attributes in another order are the same request", async () => {
  const first = await patch(file.id, { attributes: { own: 1, xattrs: { b: "eA==", a: "eQ==" } }, idempotencyKey: "k" });
  const again = await patch(file.id, { idempotencyKey: "k", attributes: { xattrs: { a: "eQ==", b: "eA==" }, own: 1 } });
  expect([again.status, again.json]).toEqual([200, first.json]);
});

test("keys that are none are refused by name", async () => {
  for (const key of ["", "x".repeat(256)]) {
    for (const answer of [
      await remove(file.id, key),
      await patch(file.id, { name: "h", idempotencyKey: key }),
      await post(file.id, "exchange", { with: other.id, idempotencyKey: key }),
      await post(file.id, "restore", { idempotencyKey: key }),
    ]) {
      expect([answer.status, answer.json.field]).toEqual([400, "idempotencyKey"]);
    }
  }
  expect((await core.node(file.id)).revision).toBe(1);
});

test("null and none are no key: each request is its own", async () => {
  for (const json of [{ attributes: { mode: 0o600 }, idempotencyKey: null }, { attributes: { mode: 0o640 } }]) {
    expect((await patch(file.id, json)).json.lastKey).toBe(null);
  }
  expect((await core.node(file.id)).revision).toBe(3);
  await remove(file.id);
  expect((await post(file.id, "restore")).json).toMatchObject({ revision: 5, lastKey: null });
});

test("an upload's first answer is of its moment: path, version and branch, whatever moved or was written since", async () => {
  const upload = (branch: string, content: string, key: string) =>
    core.upload("/v1/files/a/b/f", content, { metadata: { idempotencyKey: key, branch } });
  const first = await upload("main", "first", "k1");
  const draft = await upload("draft", "drafted", "k2");
  const folder = await core.call("GET", "/v1/files/a");
  await patch(folder.json.id, { name: "moved" });
  await patch(first.json.id, { name: "g", attributes: { mode: 0o600 } });
  const next = { method: "PUT", metadata: { branch: "draft" } };
  expect((await core.upload(`/v1/nodes/${first.json.id}/content`, "later", next)).status).toBe(200);
  core = core.restart();
  expect([(await upload("main", "first", "k1")).json, (await upload("draft", "drafted", "k2")).json]).toEqual([
    first.json,
    draft.json,
  ]);
  expect([first.json.path, draft.json.path, draft.json.size]).toEqual(["/a/b/f", "/a/b/f", 7]);
});
