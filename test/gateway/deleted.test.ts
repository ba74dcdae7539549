/** What was deleted from a folder is listed there, and comes back to where it was or elsewhere. */
import { expect, test } from "vitest";
import { nodePage } from "../../src/contract/resources.ts";
import { newAccount } from "../support/account-token.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { momentOf, removeAll } from "./support/tree-histories.ts";

async function listed(core: TestCore, query: Record<string, string>, token?: string) {
  const asked = { query: { deleted: "true", ...query }, ...(token === undefined ? {} : { token }) };
  const answer = await core.call("GET", "/v1/nodes", asked);
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.bytes}`);
  return nodePage.parse(answer.json);
}

async function paths(core: TestCore, query: Record<string, string>) {
  return (await listed(core, query)).items.map(({ path }) => path);
}

/** /d/a, /d/a again, /d/e/f and /d/e are deleted, one after the other; /d/b and /d/c are there. */
async function someDeleted() {
  const core = createTestCore();
  const first = await core.file("/d/a", "first");
  await core.file("/d/b", "b");
  const below = await core.file("/d/e/f", "f");
  const folder = String(first.parentId);
  const gone = String(below.parentId);
  await core.call("DELETE", `/v1/nodes/${first.id}`);
  await core.clock.advance(1000);
  const second = await core.file("/d/a", "second");
  const back = await core.file("/d/c", "c");
  for (const { id } of [second, below, back]) {
    await core.clock.advance(1000);
    await core.call("DELETE", `/v1/nodes/${id}`);
  }
  await core.call("DELETE", `/v1/nodes/${gone}`);
  await core.call("POST", `/v1/nodes/${back.id}/restore`);
  return { core, folder, gone, first, second, below, back };
}

test("of a folder: what was deleted from it, and is not back", async () => {
  const { core, folder, gone, first, second, below } = await someDeleted();
  expect(await paths(core, { path: "/d" })).toEqual(["/d/a", "/d/a", "/d/e"]);
  expect(await paths(core, { parentId: folder, orderBy: "-deletedAt" })).toEqual(["/d/e", "/d/a", "/d/a"]);
  expect((await listed(core, { path: "/d", orderBy: "-deletedAt" })).items.map(({ id }) => id)).toEqual([
    gone,
    second.id,
    first.id,
  ]);
  expect(await paths(core, { parentId: gone })).toEqual(["/d/e/f"]);
  expect(await paths(core, { path: "/d", name: "a" })).toEqual(["/d/a", "/d/a"]);
  expect(await paths(core, { path: "/" })).toEqual([]);
  expect(await paths(core, { path: "/", recursive: "true", orderBy: "path" })).toEqual([
    "/d/a",
    "/d/a",
    "/d/e",
    "/d/e/f",
  ]);
  expect(await paths(core, { path: "/d", recursive: "true", name: "f" })).toEqual(["/d/e/f"]);
  expect((await listed(core, { parentId: gone })).items[0]).toMatchObject({ id: below.id, head: below.head, size: 1 });
});

test("each says when it was deleted and by whom", async () => {
  const core = createTestCore();
  const file = await core.file("/a", "x", { metadata: { attributes: { mode: 0o600 } } });
  await core.clock.advance(5000);
  const deletedAt = momentOf(core);
  const ada = newAccount(core.accounts, "ada");
  core.accounts.accounts.setRole(ada.id, core.workspace.id, "editor");
  const token = core.gateway.issueToken({ scopes: ["node.file.delete"], account: ada.id, ttlSeconds: 60 });
  await core.call("DELETE", `/v1/nodes/${file.id}`, { token, headers: { "wsfs-mount": "laptop" } });
  await core.clock.advance(5000);
  const { position, lastKey: _, ...node } = file;
  const { items, totalCount, asOf } = await listed(core, { path: "/" });
  expect(items).toEqual([
    { ...node, lastKey: null, revision: 2, deletedAt, deletedBy: { account: "ada", mount: "laptop" } },
  ]);
  expect([totalCount, asOf]).toEqual([1, position + 1]);
});

test("pages are those of any list: of one position by next, of what is there by number", async () => {
  const core = createTestCore();
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push((await core.file(`/${n}`, "x")).id);
  for (const id of ids) await core.call("DELETE", `/v1/nodes/${id}`);
  const page = { path: "/", pageSize: "2" };
  const first = await listed(core, { ...page, after: "" });
  expect([first.items.map(({ name }) => name), first.totalCount]).toEqual([["0", "1"], 5]);
  await core.call("POST", `/v1/nodes/${ids[0]}/restore`);
  await core.call("POST", `/v1/nodes/${ids[3]}/restore`);
  const second = await listed(core, { ...page, after: String(first.next) });
  expect(second.items.map(({ name }) => name)).toEqual(["2", "3"]);
  expect((await listed(core, { ...page, pageNo: "2" })).items.map(({ name }) => name)).toEqual(["4"]);
});

test("a folder that moved says where its deleted ones would be now", async () => {
  const { core, folder, gone } = await someDeleted();
  await core.call("PATCH", `/v1/nodes/${folder}`, { json: { name: "moved" } });
  expect(await paths(core, { parentId: gone })).toEqual(["/moved/e/f"]);
  expect(await paths(core, { path: "/", recursive: "true", name: "f" })).toEqual(["/moved/e/f"]);
});

test("as late as the path index", async () => {
  const core = createTestCore({ pathLagMs: 1000 });
  const file = await core.file("/a", "x");
  await core.clock.advance(1000);
  await core.call("DELETE", `/v1/nodes/${file.id}`);
  expect(await paths(core, { path: "/" })).toEqual([]);
  await core.clock.advance(1000);
  // It is back, but the index does not know it yet.
  await core.call("POST", `/v1/nodes/${file.id}/restore`);
  expect(await paths(core, { path: "/" })).toEqual(["/a"]);
  await core.clock.advance(1000);
  expect(await paths(core, { path: "/" })).toEqual([]);
});

test.each([
  ["at", { path: "/", at: "2026-01-01T00:00:00Z" }],
  ["branch", { path: "/", branch: "b" }],
  ["orderBy", { path: "/", orderBy: "by" }],
])("not with %s as it means nothing there", async (field, query) => {
  const answer = await createTestCore().call("GET", "/v1/nodes", { query: { deleted: "true", ...query } });
  expect([answer.status, answer.json.field]).toEqual([400, field]);
});

test("a deleted node comes back under another name, in another folder", async () => {
  const { core, first, second, gone } = await someDeleted();
  const restore = (id: string, json: object) => core.call("POST", `/v1/nodes/${id}/restore`, { json });
  expect((await restore(first.id, { name: "a.old", idempotencyKey: "k" })).json.path).toBe("/d/a.old");
  expect((await restore(first.id, { name: "a.old", idempotencyKey: "k" })).json.path).toBe("/d/a.old");
  const reused = await restore(first.id, { name: "other", idempotencyKey: "k" });
  expect([reused.status, reused.json.field]).toEqual([400, "idempotencyKey"]);
  const taken = await restore(second.id, { name: "b" });
  expect([taken.status, taken.json.node.path]).toEqual([409, "/d/b"]);
  const inGone = await restore(second.id, { parentId: gone });
  expect([inGone.status, inGone.json.node.path]).toEqual([409, "/d/e"]);
  const inFile = await restore(second.id, { parentId: first.id });
  expect([inFile.status, inFile.json.field]).toEqual([400, "parentId"]);
  expect((await restore(second.id, { parentId: core.workspace.root })).json.path).toBe("/a");
  expect(await paths(core, { path: "/d" })).toEqual(["/d/e"]);
});

test("the way back leads through no other workspace: nodes stay in theirs", async () => {
  const { core, second, back } = await someDeleted();
  const parentId = core.gateway.ensureWorkspace("other").root;
  const token = core.token(undefined, null);
  const answers = [
    await core.call("POST", `/v1/nodes/${second.id}/restore`, { json: { parentId }, token }),
    await core.call("PATCH", `/v1/nodes/${back.id}`, { json: { parentId }, token }),
  ];
  expect(answers.map(({ status, json }) => [status, json.field])).toEqual([
    [400, "parentId"],
    [400, "parentId"],
  ]);
});

test("a version has the attributes the file had with it, and gives them back by reference", async () => {
  const core = createTestCore();
  const attributes = { mode: 0o600, mtime: "7.000000000" };
  const link = { group: "g", hash: "h" };
  const file = await core.file("/a", "old", { metadata: { attributes: { ...attributes, link } } });
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { attributes: { mode: 0o644 } } });
  await core.upload(`/v1/nodes/${file.id}/content`, "new", {
    method: "PUT",
    metadata: { attributes: { mtime: "8.000000000" } },
  });
  await core.upload(`/v1/nodes/${file.id}/content`, "else", {
    method: "PUT",
    metadata: { branch: "b", attributes: { mtime: "9.000000000" } },
  });
  const { items } = (await core.call("GET", `/v1/nodes/${file.id}/versions`)).json;
  expect(items.map((version) => version.attributes)).toEqual([
    attributes,
    { mode: 0o644, mtime: "8.000000000" },
    { mode: 0o644, mtime: "9.000000000" },
  ]);
  const json = { copyOf: file.id, version: items[0]?.id, attributes: items[0]?.attributes };
  await core.call("PUT", `/v1/nodes/${file.id}/content`, { json });
  expect(await core.node(file.id)).toMatchObject({
    contentHash: file.contentHash,
    attributes: { ...attributes, link },
  });
});

test("a tree deleted as a whole is found from the top down", async () => {
  const core = createTestCore();
  const file = await core.file("/d/e/f/g", "x");
  const top = (await core.call("GET", "/v1/files/d")).json.id;
  await removeAll(core, top);
  expect(await paths(core, { path: "/" })).toEqual(["/d"]);
  expect(await paths(core, { parentId: String(file.parentId) })).toEqual(["/d/e/f/g"]);
  expect(await paths(core, { parentId: top, recursive: "true", orderBy: "path" })).toEqual([
    "/d/e",
    "/d/e/f",
    "/d/e/f/g",
  ]);
});
