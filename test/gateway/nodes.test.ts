import { beforeEach, expect, test } from "vitest";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

let core: TestCore;
let root: string;
beforeEach(() => {
  core = createTestCore();
  root = core.workspace.root;
});

const patch = (id: string, json: unknown, headers = {}) => core.call("PATCH", `/v1/nodes/${id}`, { json, headers });
const create = (json: unknown) => core.call("POST", "/v1/nodes", { json });

const tagOf = async (path: string) => String((await core.call("GET", path)).headers.etag);

test("the ETag of a node changes with its path and with the node at a path", async () => {
  const node = await core.file("/p1/x", "one");
  const [byId, byPath] = [`/v1/nodes/${node.id}`, "/v1/files/p1/x"];
  const known = (path: string, tag: string) => core.call("GET", path, { headers: { "if-none-match": tag } });
  const tag = await tagOf(byId);
  expect([await tagOf(byPath), (await known(byId, tag)).status, (await known(byPath, tag)).status]).toEqual([
    tag,
    304,
    304,
  ]);
  await patch(String(node.parentId), { name: "p2" });
  expect([(await known(byId, tag)).json.path, (await known("/v1/files/p2/x", tag)).status]).toEqual(["/p2/x", 200]);
  await patch(String(node.parentId), { name: "p1" });
  expect((await known(byId, tag)).status).toBe(304);
  await core.call("DELETE", byId);
  const other = await core.file("/p1/x", "two");
  expect([other.revision, (await known(byPath, tag)).json.id]).toEqual([node.revision, other.id]);
});

test("conditions take the ETag of the node's own address, its revision, and for an upload its head", async () => {
  const { id, parentId } = await core.file("/p/x", "one");
  const url = "/v1/files/p/x";
  const write = async (tag: string) => (await core.upload(url, "x", { headers: { "if-match": tag } })).status;
  for (const current of [
    () => tagOf(url),
    async () => `"${(await core.node(id)).revision}"`,
    async () => `"${(await core.node(id)).head}"`,
  ]) {
    const tag = await current();
    expect([tag, await write(tag), await write(tag)]).toEqual([tag, 200, 412]);
  }
  const tag = await tagOf(url);
  expect((await core.upload(url, "x", { headers: { "if-none-match": tag } })).status).toBe(412);
  await patch(String(parentId), { name: "q" });
  expect((await patch(id, { name: "y" }, { "if-match": tag })).status).toBe(412);
  expect((await patch(id, { name: "y" }, { "if-match": await tagOf("/v1/files/q/x") })).status).toBe(200);
  const gone = await core.call("DELETE", `/v1/nodes/${id}`, {
    headers: { "if-match": await tagOf(`/v1/nodes/${id}`) },
  });
  expect(gone.status).toBe(200);
});

test("a node is found by its id and by its path, with its revision as ETag", async () => {
  const node = await core.file("/a/b", "x");
  const byId = await core.call("GET", `/v1/nodes/${node.id}`);
  expect(byId.headers.etag).toMatch(/^"1-[\w-]{12}"$/);
  const { position: _, ...shown } = node;
  expect(byId.json).toEqual(shown);
  expect((await core.call("GET", "/v1/files/a/b")).json).toEqual(shown);
  expect((await core.call("GET", "/v1/files/")).json).toMatchObject({ id: root, path: "/", parentId: null });
  expect((await core.call("GET", "/v1/files/a/c")).status).toBe(404);
  expect((await core.call("GET", "/v1/files/a/b/c")).status).toBe(404);
});

test("a folder is made once; the name taken answers 409 with the node that has it", async () => {
  const folder = await core.folder(root, "docs");
  expect(folder).toMatchObject({ kind: "folder", path: "/docs", head: null, mimeType: null, size: 0, revision: 1 });
  const again = await create({ parentId: root, name: "docs", kind: "folder" });
  expect([again.status, again.json.node.id]).toEqual([409, folder.id]);
  const keyed = { parentId: root, name: "keyed", kind: "folder", idempotencyKey: "k" };
  const first = await create(keyed);
  expect((await create(keyed)).json).toEqual(first.json);
  expect((await create({ ...keyed, name: "other" })).json.field).toBe("idempotencyKey");
});

test("bad creations are refused by field", async () => {
  const file = await core.file("/f", "x");
  const cases: [number, string | undefined, unknown][] = [
    [400, "name", { parentId: root, name: "a/b", kind: "folder" }],
    [400, "name", { parentId: root, name: "", kind: "folder" }],
    [400, "name", { parentId: root, name: "ä".repeat(128), kind: "folder" }],
    [400, "kind", { parentId: root, name: "a" }],
    [400, "kind", { parentId: root, name: "a", kind: "folder", copyOf: file.id }],
    [400, "kind", { parentId: root, name: "a", kind: "file" }],
    [400, "version", { parentId: root, name: "a", kind: "folder", version: "v" }],
    [400, "extra", { parentId: root, name: "a", kind: "folder", extra: 1 }],
    [400, "parentId", { parentId: file.id, name: "a", kind: "folder" }],
    [400, "version", { parentId: root, name: "a", copyOf: root, version: file.head }],
    [404, undefined, { parentId: "unknown", name: "a", kind: "folder" }],
    [404, undefined, { parentId: root, name: "a", copyOf: "unknown" }],
    [404, undefined, { parentId: root, name: "a", copyOf: file.id, version: "unknown" }],
  ];
  for (const [status, field, json] of cases) {
    const answer = await create(json);
    expect([answer.status, answer.json.field, json]).toEqual([status, field, json]);
  }
  expect(await core.names("/")).toEqual(["f"]);
});

test("a copy has the content and attributes of its source, but no link, and lives on its own", async () => {
  const source = await core.file("/f", "one", {
    contentType: "text/x",
    metadata: { attributes: { mode: 0o600, mtime: "7.000000000", link: { group: "g", hash: "h" } } },
  });
  await core.upload("/v1/files/f", "two");
  const old = await create({ parentId: root, name: "old", copyOf: source.id, version: source.head });
  expect(old.json).toMatchObject({ contentHash: source.contentHash, mimeType: "text/x", attributes: { mode: 0o600 } });
  expect(old.json.attributes).toEqual({ mode: 0o600 });
  await core.call("DELETE", `/v1/nodes/${source.id}`);
  const late = await create({ parentId: root, name: "late", copyOf: source.id, attributes: { mode: 0o444 } });
  expect(late.json.attributes).toEqual({ mode: 0o444 });
  expect((await core.call("GET", `/v1/nodes/${late.json.id}/content`)).bytes.toString()).toBe("two");
});

test("moves, renames and attributes change what they say and raise the revision", async () => {
  const folder = await core.folder(root, "d");
  const file = await core.file("/f", "x", {
    metadata: { attributes: { mode: 0o644, xattrs: { a: "eA==", b: "eQ==" } } },
  });
  const moved = await patch(file.id, { parentId: folder.id, name: "g" }, { "if-match": '"1"' });
  expect(moved.json).toMatchObject({ path: "/d/g", parentId: folder.id, revision: 2, lastKey: null });
  expect(moved.json.modifiedAt).toBe(file.modifiedAt);
  const changed = await patch(file.id, { attributes: { mode: null, uid: 5, xattrs: { b: null } } });
  expect(changed.json).toMatchObject({ revision: 3, attributes: { uid: 5, xattrs: { a: "eA==" } } });
  expect(changed.json.attributes.mode).toBeUndefined();
  const stale = await patch(file.id, { name: "h" }, { "if-match": '"2"' });
  expect([stale.status, stale.json.node.revision]).toEqual([412, 3]);
  const entries = (await core.call("GET", "/v1/journal", { query: { after: String(file.position) } })).json.items;
  expect(entries.map((entry) => [entry.kind, entry.revision, entry.name])).toEqual([
    ["moved", 2, "g"],
    ["changed", 3, "g"],
  ]);
  // A folder's revision is its own.
  expect((await core.node(folder.id)).revision).toBe(1);
});

test("what changes nothing is answered as it is: no revision, no journal entry, no key on the node", async () => {
  const folder = await core.folder(root, "d");
  const file = await core.file("/d/f", "x", { metadata: { attributes: { mode: 0o644, xattrs: { a: "eA==" } } } });
  await patch(folder.id, { name: "e" });
  const nothing = [
    {},
    { attributes: {} },
    { name: "f", parentId: folder.id },
    { attributes: { xattrs: { a: "eA==" }, mode: 0o644, uid: null } },
    { name: "f", idempotencyKey: "again" },
  ];
  const { position, ...node } = file;
  for (const json of [...nothing, ...nothing.slice(-1)]) {
    const answer = await patch(file.id, json, { "if-match": '"1"' });
    // Of now: the folder has another name than at the node's own last change.
    expect([answer.status, answer.json]).toEqual([200, { ...node, path: "/e/f", position: position + 1 }]);
  }
  expect((await patch(root, {})).json.revision).toBe(1);
  expect((await patch(file.id, {}, { "if-match": '"2"' })).status).toBe(412);
  const entries = (await core.call("GET", "/v1/journal", { query: { after: String(position) } })).json.items;
  expect(entries.map(({ kind, name }) => [kind, name])).toEqual([["moved", "e"]]);
});

test("moves that cannot be are refused", async () => {
  const a = await core.folder(root, "a");
  const b = await core.folder(a.id, "b");
  const file = await core.file("/f", "x");
  expect((await patch(a.id, { parentId: b.id })).json.field).toBe("parentId");
  expect((await patch(a.id, { parentId: a.id })).json.field).toBe("parentId");
  expect((await patch(a.id, { parentId: file.id })).json.field).toBe("parentId");
  expect((await patch(a.id, { name: ".." })).json.field).toBe("name");
  expect((await patch(root, { name: "x" })).json.field).toBe("name");
  expect((await patch(a.id, { parentId: "unknown" })).status).toBe(404);
  expect((await patch(a.id, { size: 5 })).json.field).toBe("size");
  expect((await patch(a.id, { attributes: { mode: 0o10000 } })).json.field).toBe("attributes.mode");
  const taken = await patch(a.id, { name: "f" });
  expect([taken.status, taken.json.node.id]).toEqual([409, file.id]);
  expect((await patch(a.id, { name: "a" })).json.revision).toBe(1);
  const other = core.gateway.ensureWorkspace("other");
  const unbound = core.token(undefined, null);
  const crossing = { json: { parentId: other.root }, token: unbound };
  expect((await core.call("PATCH", `/v1/nodes/${a.id}`, crossing)).json.field).toBe("parentId");
});

test("two nodes exchange their places", async () => {
  const folder = await core.folder(root, "d");
  const inside = await core.file("/d/in", "1");
  const outside = await core.file("/out", "2");
  const exchange = (id: string, other: string, headers = {}, withRevision?: number) =>
    core.call("POST", `/v1/nodes/${id}/exchange`, { json: { with: other, withRevision }, headers });
  const answer = await exchange(inside.id, outside.id, { "if-match": '"1"' });
  expect(answer.json).toMatchObject({ id: inside.id, path: "/out", revision: 2 });
  expect(await core.node(outside.id)).toMatchObject({ path: "/d/in", revision: 2 });
  expect((await core.call("GET", "/v1/files/out")).json.id).toBe(inside.id);
  expect((await core.call("GET", "/v1/files/d/in")).json.id).toBe(outside.id);
  expect(answer.json.position).toBe((await core.call("GET", "/v1/journal")).json.asOf);
  // Two names of one folder.
  const beside = await core.file("/beside", "3");
  await exchange(beside.id, inside.id);
  expect((await core.call("GET", "/v1/files/beside")).json.id).toBe(inside.id);
  expect((await exchange(inside.id, outside.id, { "if-match": '"1"' })).status).toBe(412);
  const refused = await exchange(beside.id, outside.id, { "if-match": '"2"' }, 1);
  expect([refused.status, refused.json.node]).toMatchObject([412, { id: outside.id, revision: 2 }]);
  expect((await exchange(folder.id, outside.id)).json.field).toBe("with");
  expect((await exchange(outside.id, outside.id)).json.field).toBe("with");
  expect((await exchange(outside.id, root)).json.field).toBe("with");
  expect((await exchange(outside.id, "unknown")).status).toBe(404);
  expect((await exchange(beside.id, outside.id, { "if-match": '"2"' }, 2)).status).toBe(200);
});

test("a deleted node is gone but for its versions, and comes back to its place", async () => {
  const folder = await core.folder(root, "d");
  const file = await core.file("/d/f", "x");
  const busy = await core.call("DELETE", `/v1/nodes/${folder.id}`);
  expect([busy.status, busy.json.node.id]).toEqual([409, folder.id]);
  expect((await core.call("DELETE", `/v1/nodes/${root}`)).status).toBe(400);
  const stale = await core.call("DELETE", `/v1/nodes/${file.id}`, { headers: { "if-match": '"9"' } });
  expect([stale.status, stale.json.node.revision]).toEqual([412, 1]);
  const gone = await core.call("DELETE", `/v1/nodes/${file.id}`, { headers: { "if-match": '"1"' } });
  expect(gone.json).toMatchObject({ id: file.id, revision: 2, path: "/d/f" });
  expect(gone.json.position).toBeGreaterThan(file.position);
  for (const path of [`/v1/nodes/${file.id}`, `/v1/nodes/${file.id}/content`, "/v1/files/d/f"]) {
    expect([path, (await core.call("GET", path)).status]).toEqual([path, 404]);
  }
  expect((await core.call("DELETE", `/v1/nodes/${file.id}`)).status).toBe(404);
  const versions = (await core.call("GET", `/v1/nodes/${file.id}/versions`)).json.items;
  expect(versions.map(({ id }) => id)).toEqual([file.head]);
  const old = await core.call("GET", `/v1/nodes/${file.id}/content`, { query: { version: String(file.head) } });
  expect(old.bytes.toString()).toBe("x");

  const restore = (id: string) => core.call("POST", `/v1/nodes/${id}/restore`);
  const other = await core.file("/d/f", "y");
  expect((await restore(file.id)).json.node.id).toBe(other.id);
  await core.call("DELETE", `/v1/nodes/${other.id}`);
  await core.call("DELETE", `/v1/nodes/${folder.id}`);
  expect([(await restore(file.id)).status, (await restore(file.id)).json.node.id]).toEqual([409, folder.id]);
  await restore(folder.id);
  expect((await restore(file.id)).json).toMatchObject({ revision: 3, path: "/d/f", head: file.head });
  expect((await restore(file.id)).status).toBe(409);
  expect((await core.call("GET", "/v1/files/d/f")).json.id).toBe(file.id);
});

test("what a node was is told apart from what it is, by id and by moment", async () => {
  const file = await core.file("/a", "one");
  const then = new Date(core.clock.wallClock()).toISOString();
  await core.clock.advance(1000);
  await core.upload("/v1/files/a", "two");
  await patch(file.id, { name: "b" });
  expect((await core.call("GET", "/v1/files/a")).status).toBe(404);
  expect((await core.call("GET", "/v1/files/a", { query: { at: then } })).json).toMatchObject({
    id: file.id,
    head: file.head,
    path: "/a",
    revision: 1,
  });
  const content = (at?: string) =>
    core.call("GET", `/v1/nodes/${file.id}/content`, { query: at === undefined ? {} : { at } });
  expect((await content(then)).bytes.toString()).toBe("one");
  expect((await content()).bytes.toString()).toBe("two");
  expect((await content("2020-01-01T00:00:00Z")).status).toBe(404);
  // By path the index is late, by id nothing is.
  core.gateway.setOptions({ pathLagMs: 60_000 });
  await core.clock.advance(1000);
  await core.upload("/v1/files/b", "three");
  const now = new Date(core.clock.wallClock()).toISOString();
  expect((await core.call("GET", "/v1/files/b", { query: { at: now } })).json.size).toBe(3);
  expect((await content(now)).bytes.toString()).toBe("three");
});

test("a node may be told to be found by its id only a moment later", async () => {
  core = createTestCore({ idLagMs: 500 });
  const file = await core.file("/a", "one");
  expect((await core.call("GET", `/v1/nodes/${file.id}`)).status).toBe(404);
  await core.clock.advance(500);
  expect((await core.call("GET", `/v1/nodes/${file.id}`)).status).toBe(200);
});

test.each([
  ["branch", "b"],
  ["at", "2026-01-31T12:00:00Z"],
])("content of a version is asked for without %s", async (name, value) => {
  const file = await core.file("/f", "x");
  const ask = async (query: Record<string, string>) => {
    const { status, json } = await core.call("GET", `/v1/nodes/${file.id}/content`, { query });
    return [status, json.field];
  };
  expect(await ask({ version: String(file.head) })).toEqual([200, undefined]);
  expect(await ask({ version: String(file.head), [name]: value })).toEqual([400, "version"]);
});

test("a deletion takes no body, in which a key would be looked for in vain", async () => {
  const file = await core.file("/f", "x");
  const answer = await core.call("DELETE", `/v1/nodes/${file.id}`, { json: { idempotencyKey: "k" } });
  expect([answer.status, answer.json.field]).toEqual([400, "body"]);
  expect((await core.node(file.id)).revision).toBe(file.revision);
});
