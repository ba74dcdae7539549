import { beforeEach, expect, test } from "vitest";
import { CHANGE_KINDS } from "../../src/contract/journal-kinds.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

const journal = (query: Record<string, string> = {}) => core.call("GET", "/v1/journal", { query });
const append = (json: unknown) => core.call("POST", "/v1/journal", { json });
const withoutJournal = () => core.token(SCOPES.filter((scope) => scope !== "node.journal.create"));

test("every change has one entry, oldest first, with what the node was after it", async () => {
  const start = (await journal()).json.asOf;
  const file = await core.file("/f", "one", { metadata: { idempotencyKey: "k" } });
  const second = await core.file("/f", "two");
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { name: "g" } });
  await core.call("DELETE", `/v1/nodes/${file.id}`);
  await core.call("POST", `/v1/nodes/${file.id}/restore`);
  const { items, asOf, totalCount } = (await journal({ after: String(start) })).json;
  const common = { nodeId: file.id, parentId: core.workspace.root };
  expect(items).toMatchObject([
    { ...common, kind: "created", revision: 1, name: "f", head: file.head, contentHash: file.contentHash, key: "k" },
    {
      ...common,
      kind: "updated",
      revision: 2,
      name: "f",
      head: second.head,
      contentHash: second.contentHash,
      key: null,
    },
    { ...common, kind: "moved", revision: 3, name: "g", head: second.head },
    { ...common, kind: "deleted", revision: 4, name: "g" },
    { ...common, kind: "restored", revision: 5, name: "g" },
  ]);
  expect(items[0]?.position).toBe(file.position);
  expect([asOf, totalCount]).toEqual([items.at(-1)?.position, 5]);
});

test("it is read in pages, forward by after= and next, and by number", async () => {
  for (let index = 0; index < 7; index++) await core.file(`/${index}`, "x");
  const names: string[] = [];
  let after = "0";
  for (let page = await journal({ pageSize: "3", after }); ; page = await journal({ pageSize: "3", after })) {
    names.push(...page.json.items.map(({ name }) => name));
    expect(page.json.totalCount).toBe(8 - Math.max(0, names.length - page.json.items.length));
    if (page.json.next === null) break;
    after = page.json.next;
  }
  expect(names).toEqual(["", "0", "1", "2", "3", "4", "5", "6"]);
  const second = await journal({ pageSize: "3", pageNo: "2" });
  expect(second.json.items.map(({ name }) => name)).toEqual(["2", "3", "4"]);
  const last = await journal({ pageSize: "2", orderBy: "-position" });
  expect(last.json.items.map(({ name }) => name)).toEqual(["6", "5"]);
  expect((await journal({ after: "x" })).json.field).toBe("after");
  expect((await journal({ orderBy: "nonsense" })).json.field).toBe("orderBy");
});

test("it shows changes late, and goes on where it was after a restart", async () => {
  core = createTestCore({ journalLagMs: 5000 });
  await core.clock.advance(5000);
  const before = (await journal()).json.asOf;
  const file = await core.file("/f", "x");
  expect(await core.names("/")).toEqual(["f"]);
  await core.clock.advance(4999);
  expect((await journal({ after: String(before) })).json).toMatchObject({ items: [], asOf: before });
  core = core.restart();
  await core.clock.advance(1);
  const after = (await journal({ after: String(before) })).json;
  expect(after).toMatchObject({ items: [{ nodeId: file.id }], asOf: file.position });
});

test("without node.journal.create new folders stay unprovisioned until an entry names them", async () => {
  const token = withoutJournal();
  const start = (await journal()).json.asOf;
  const upload = await core.upload("/v1/files/a/b/f", "x", { token });
  expect(upload.status).toBe(201);
  expect(upload.json.position).toBeGreaterThan(start);
  expect((await journal({ after: String(start) })).json.items).toEqual([]);
  const b = String(upload.json.parentId);
  const a = String((await core.node(b)).parentId);
  // There by id, not by path, and not in listings.
  expect((await core.node(upload.json.id)).path).toBe("/a/b/f");
  const byPath = async (path: string) => (await core.call("GET", `/v1/files/${path}`)).status;
  const listed = async (id: string) => (await core.call("GET", "/v1/nodes", { query: { parentId: id } })).status;
  expect([await byPath("a"), await byPath("a/b"), await byPath("a/b/f")]).toEqual([404, 404, 404]);
  expect([await listed(a), await listed(b)]).toEqual([404, 404]);
  expect(await core.names("/")).toEqual([]);
  // The name is taken all the same.
  const taken = { json: { parentId: core.workspace.root, name: "a", kind: "folder" } };
  expect((await core.call("POST", "/v1/nodes", taken)).json.node.id).toBe(a);
  // More uploads find the folder, also with all scopes; they name only themselves.
  expect((await core.file("/a/b/g", "y")).parentId).toBe(b);
  expect(await byPath("a/b/g")).toBe(404);

  const entry = await append({ nodeId: a, kind: "provisioned" });
  expect([entry.status, entry.json]).toMatchObject([201, { nodeId: a, kind: "provisioned", name: "a", revision: 1 }]);
  expect([await byPath("a"), await byPath("a/b")]).toEqual([200, 404]);
  expect(await core.names("/")).toEqual(["a"]);
  // A change journaled by the service names the folder too.
  await core.call("PATCH", `/v1/nodes/${b}`, { json: { attributes: { mode: 0o700 } } });
  expect(await core.names("/a/b")).toEqual(["f", "g"]);
  expect(await byPath("a/b/f")).toBe(200);
});

test("a folder made without node.journal.create, moved or deleted while unprovisioned", async () => {
  const token = withoutJournal();
  const make = async (name: string) => {
    const json = { parentId: core.workspace.root, name, kind: "folder" };
    const answer = await core.call("POST", "/v1/nodes", { json, token });
    expect(answer.status).toBe(201);
    return answer.json.id;
  };
  const moved = await make("a");
  expect(await core.names("/")).toEqual([]);
  await core.call("PATCH", `/v1/nodes/${moved}`, { json: { name: "b" } });
  expect(await core.names("/")).toEqual(["b"]);
  const deleted = await make("c");
  expect((await core.call("DELETE", `/v1/nodes/${deleted}`)).status).toBe(200);
  expect(await core.names("/")).toEqual(["b"]);
  expect((await core.call("POST", `/v1/nodes/${deleted}/restore`)).status).toBe(200);
  expect(await core.names("/")).toEqual(["b", "c"]);
});

test("an entry told by a caller changes nothing of the node, and is told once by its key", async () => {
  const file = await core.file("/f", "x", { metadata: { idempotencyKey: "upload" } });
  const told = { nodeId: file.id, kind: "reviewed", idempotencyKey: "k" };
  const first = await append(told);
  expect(first.json).toMatchObject({ kind: "reviewed", nodeId: file.id, revision: 1, head: file.head, key: "k" });
  expect((await append(told)).json).toEqual(first.json);
  const { position: _, ...node } = file;
  expect(await core.node(file.id)).toEqual(node);
  expect((await journal({ after: String(file.position) })).json.totalCount).toBe(1);
  expect((await append({ nodeId: "unknown", kind: "x" })).status).toBe(404);
  expect((await append({ nodeId: file.id })).json.field).toBe("kind");
});

test("kinds that tell of a change are the gateway's own: each of them stands for one change of the node", async () => {
  const file = await core.file("/f", "x");
  for (const kind of CHANGE_KINDS) {
    const refused = await append({ nodeId: file.id, kind });
    expect([kind, refused.status, refused.json.field]).toEqual([kind, 400, "kind"]);
  }
  expect((await journal({ after: String(file.position) })).json.totalCount).toBe(0);
  expect((await append({ nodeId: file.id, kind: "Created" })).status).toBe(201);
});

test("it begins at the start where after= is empty, and nowhere that was not reached", async () => {
  const file = await core.file("/f", "x");
  const all = (await journal()).json;
  expect((await journal({ after: "" })).json).toEqual(all);
  // Not shown yet is reached all the same: the writer knows its position from the answer.
  core.gateway.setOptions({ journalLagMs: 60_000 });
  const later = await core.file("/g", "x");
  expect((await journal({ after: String(later.position) })).json).toMatchObject({ items: [], asOf: file.position });
  for (const orderBy of ["position", "-position"]) {
    const beyond = await journal({ after: String(later.position + 1), orderBy });
    expect([beyond.status, beyond.json.field]).toEqual([400, "after"]);
  }
});
