/** How much a node may have of attributes, and what its history keeps of those it had. */
import { beforeEach, expect, test } from "vitest";
import type { Attributes } from "../../src/contract/attributes.ts";
import { HOUR_MS } from "../../src/lib/time.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { forgetColumns } from "./support/older-store.ts";

const LIMIT = 64 * 1024;

let core: TestCore;
let root: string;
beforeEach(() => {
  core = createTestCore();
  root = core.workspace.root;
});

/** So that they come to so many bytes. */
const filled = (bytes: number): Attributes => ({ note: "x".repeat(bytes - '{"note":""}'.length) });
const patch = (id: string, attributes: unknown, more = {}) =>
  core.call("PATCH", `/v1/nodes/${id}`, { json: { attributes, ...more } });
const attributesOf = async (id: string) => (await core.node(id)).attributes;

test("many changes cannot make more of them than one may", async () => {
  const { id } = await core.file("/f", "x");
  const statuses: number[] = [];
  for (let key = 0; key < 10; key += 1) statuses.push((await patch(id, { [`k${key}`]: "x".repeat(10_000) })).status);
  expect(statuses).toEqual([...Array(6).fill(200), ...Array(4).fill(413)]);
  const refused = await patch(id, { xattrs: { a: Buffer.alloc(5000).toString("base64") } });
  expect([refused.status, refused.json.field]).toEqual([413, "attributes"]);
  expect(Object.keys(await attributesOf(id))).toEqual(["k0", "k1", "k2", "k3", "k4", "k5"]);
  expect((await patch(id, { k0: null, other: "x".repeat(10_000) })).status).toBe(200);
});

test("nor can any other way in; what is refused leaves nothing", async () => {
  const file = await core.file("/f", "x", { metadata: { attributes: { tag: "1" } } });
  const all = filled(LIMIT);
  const rows = () => core.database.prepare("SELECT count(*) FROM content").pluck().get();
  const before = [rows(), core.blobs.contents.size];
  const content = "x".repeat(40_000);
  const ways = (attributes: Attributes) => [
    () => core.upload("/v1/files/d/new", content, { metadata: { attributes } }),
    () => core.upload("/v1/files/f", content, { metadata: { attributes } }),
    () => core.upload("/v1/files/f", content, { metadata: { attributes, branch: "b" } }),
    () => core.upload(`/v1/nodes/${file.id}/content`, content, { method: "PUT", metadata: { attributes } }),
    () => core.call("POST", `/v1/nodes/${file.id}/versions`, { json: { copyOf: file.id, attributes } }),
    () => core.call("POST", "/v1/nodes", { json: { parentId: root, name: "n", kind: "folder", attributes } }),
    () => core.call("POST", "/v1/nodes", { json: { parentId: root, name: "m", copyOf: file.id, attributes } }),
    () => core.call("POST", "/v1/nodes", { json: { parentId: root, name: "o", copyOf: root, attributes } }),
  ];
  for (const way of ways({ ...all, more: 1 })) {
    const answer = await way();
    expect([answer.status, answer.json.field]).toEqual([413, "attributes"]);
  }
  expect([rows(), core.blobs.contents.size]).toEqual(before);
  expect(await core.names("/")).toEqual(["f"]);
  await patch(file.id, { tag: null });
  for (const way of ways(all)) expect((await way()).status).toBeLessThan(300);
});

test("what has a limit of its own is not counted: a full node can be written by everybody", async () => {
  const { id } = await core.file("/f", "x", { metadata: { attributes: filled(LIMIT) } });
  const link = { group: "g", hash: "h", saves: Array.from({ length: 16 }, (_, index) => `save-${index}`) };
  const own = { mode: 0o600, uid: 1, gid: 1, mtime: "5.000000000", btime: "5.000000000", link };
  expect((await patch(id, own)).status).toBe(200);
  const written = await core.upload("/v1/files/f", "y", { metadata: { attributes: { mtime: "6.000000000" } } });
  expect([written.status, written.json.attributes]).toEqual([200, { ...filled(LIMIT), ...own, mtime: "6.000000000" }]);
});

test("a node that an older gateway let have more stays writable, and does not grow", async () => {
  const { id, parentId } = await core.file("/d/f", "x");
  const many = filled(3 * LIMIT);
  core.database.prepare("UPDATE node SET attributes = ? WHERE id = ?").run(JSON.stringify(many), id);
  core.database.prepare("UPDATE change SET attributes = ? WHERE node = ?").run(JSON.stringify(many), id);
  core = core.restart();
  expect((await core.upload("/v1/files/d/f", "y")).json.attributes).toEqual(many);
  expect((await core.call("PATCH", `/v1/nodes/${id}`, { json: { name: "g" } })).status).toBe(200);
  expect((await patch(id, { mode: 0o600 })).status).toBe(200);
  expect((await patch(id, { more: 1 })).status).toBe(413);
  expect((await patch(id, { note: String(many.note).replaceAll("x", "y") })).status).toBe(200);
  const copy = { parentId: root, name: "copy", copyOf: id };
  expect((await core.call("POST", "/v1/nodes", { json: copy })).status).toBe(201);
  expect((await core.call("POST", "/v1/nodes", { json: { ...copy, name: "d2", copyOf: parentId } })).status).toBe(201);
  expect((await patch(id, filled(2 * LIMIT))).status).toBe(200);
  expect((await patch(id, many)).status).toBe(413);
});

/** Bytes of attributes in all the history. */
const kept = () => Number(core.database.prepare("SELECT sum(length(attributes)) FROM change").pluck().get());

/** Changes of all kinds to a node with large attributes, one each `milliseconds`; answers what each said. */
async function history(id: string, count: number, milliseconds: number) {
  const told: { key: string; json: unknown; answer: unknown; at: string }[] = [];
  for (let index = 0; index < count; index += 1) {
    await core.clock.advance(milliseconds);
    const { random } = core.clock;
    const tree = {
      a: index % 3 === 0 ? [index] : { b: index, c: { d: index % 2 === 0 ? null : "x" } },
      __proto: index,
    };
    const attributes = {
      [`key-${Math.floor(random() * 20)}`]: random() < 0.3 ? null : "y".repeat(Math.floor(random() * 1500)),
      tree: random() < 0.2 ? null : tree,
      xattrs: { [`user.${Math.floor(random() * 5)}`]: random() < 0.3 ? null : "eHh4eA==" },
    };
    const json = { attributes, ...(random() < 0.1 ? { name: `f${index}` } : {}), idempotencyKey: `k${index}` };
    const { status, json: answer } = await core.call("PATCH", `/v1/nodes/${id}`, { json });
    expect(status).toBe(200);
    if (random() < 0.2) await core.call("POST", "/v1/journal", { json: { nodeId: id, kind: "seen" } });
    told.push({ key: json.idempotencyKey, json, answer, at: new Date(core.clock.wallClock()).toISOString() });
  }
  return told;
}

test("every state of large attributes is told again, and a small change of them takes little room", async () => {
  const { id } = await core.file("/f", "x", { metadata: { attributes: filled(30_000) } });
  const told = await history(id, 200, 1000);
  core = core.restart();
  for (const { json, answer } of told) {
    expect((await core.call("PATCH", `/v1/nodes/${id}`, { json })).json).toEqual(answer);
  }
  // Four of them whole.
  expect(kept()).toBeLessThan(5 * 50_000 + 200 * 3000);
  expect(kept()).toBeGreaterThan(30_000);
});

test("what a change leaves as it is, and what callers say of a node, takes no room for its attributes", async () => {
  const { id } = await core.file("/f", "x", { metadata: { attributes: filled(30_000) } });
  const before = kept();
  for (let index = 0; index < 50; index += 1) {
    await core.call("PATCH", `/v1/nodes/${id}`, { json: { name: `f${index}` } });
    await core.call("POST", "/v1/journal", { json: { nodeId: id, kind: "seen" } });
  }
  expect(kept()).toBe(before);
  expect(await attributesOf(id)).toEqual(filled(30_000));
});

/** As it was at each of the moments. */
async function shownThen(told: readonly { readonly at: string }[]): Promise<unknown[]> {
  const shown: unknown[] = [];
  for (const { at } of told) {
    const { items } = (await core.call("GET", "/v1/nodes", { query: { path: "/", at } })).json;
    const [item] = items;
    shown.push(item === undefined ? undefined : { ...item });
  }
  return shown;
}
const statesOf = (told: readonly { readonly answer: unknown }[]) =>
  told.map(({ answer }) => {
    const { position: _, ...node } = Object(answer);
    return node;
  });

test("old states of attributes that change often are thinned out; others stay, and none counts as used", async () => {
  const { id } = await core.file("/f", "x", { metadata: { attributes: filled(30_000) } });
  const often = await history(id, 140, 60_000);
  const whole = statesOf(often);
  await core.gateway.forget();
  expect(await shownThen(often)).toEqual(whole);
  await core.clock.advance(49 * HOUR_MS);
  const before = kept();
  await core.gateway.forget();
  expect(kept()).toBeLessThan(before);
  // Revisions 2 to 63 and 65 to 127 are shown as the whole one before each, by all else as they were.
  const thinned = await shownThen(often);
  for (const [index, shown] of thinned.entries()) {
    const revision = index + 2;
    const attributes =
      revision > 128
        ? whole[index]?.attributes
        : revision < 64
          ? filled(30_000)
          : whole[revision < 128 ? 62 : 126]?.attributes;
    expect([revision, shown]).toEqual([revision, { ...whole[index], attributes }]);
  }
  await core.gateway.forget();
  core = core.restart();
  expect(await shownThen(often)).toEqual(thinned);
  const { items } = (await core.call("GET", "/v1/workspaces")).json;
  expect(items[0]?.used).toBe(1);
});

test("states that came seldom are not thinned out", async () => {
  const { id } = await core.file("/f", "x", { metadata: { attributes: filled(30_000) } });
  const seldom = await history(id, 70, 2 * HOUR_MS);
  await core.clock.advance(100 * HOUR_MS);
  await core.gateway.forget();
  expect(await shownThen(seldom)).toEqual(statesOf(seldom));
});

test("the states an older program kept whole are thinned out as well", async () => {
  const { id } = await core.file("/f", "x", { metadata: { attributes: filled(2000) } });
  await history(id, 70, 1000);
  core.database.prepare("UPDATE change SET attributes = ? WHERE node = ?").run(JSON.stringify(filled(50_000)), id);
  forgetColumns(core.database);
  core.database.exec("PRAGMA user_version = 4");
  core = core.restart();
  await core.clock.advance(49 * HOUR_MS);
  await core.gateway.forget();
  expect(kept()).toBeLessThan(10 * 50_000);
});
