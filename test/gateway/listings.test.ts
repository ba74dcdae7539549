import { beforeEach, expect, test } from "vitest";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

const list = (query: Record<string, string>, token?: string) =>
  core.call("GET", "/v1/nodes", { query, ...(token === undefined ? {} : { token }) });
const namesOf = (answer: { json: { items: readonly { name: string }[] } }) => answer.json.items.map(({ name }) => name);

async function allPages(query: Record<string, string>, between: () => Promise<unknown> = async () => {}) {
  const pages = [];
  for (let after: string | null = ""; after !== null; after = pages.at(-1)?.json.next ?? null) {
    const page = await list({ ...query, after });
    expect([page.status, page.json]).toEqual([200, page.json]);
    pages.push(page);
    await between();
  }
  return pages;
}

test("pages by number are in the order asked for, ties by id, and know their total", async () => {
  // Ids go up with each node here.
  for (const [name, size] of Object.entries({ b: 2, a: 2, c: 1, ä: 3, Z: 2 })) {
    await core.file(`/${encodeURIComponent(name)}`, "x".repeat(size));
    await core.clock.advance(5);
  }
  expect(namesOf(await list({ path: "/" }))).toEqual(["Z", "a", "b", "c", "ä"]);
  expect(namesOf(await list({ path: "/", orderBy: "-name" }))).toEqual(["ä", "c", "b", "a", "Z"]);
  expect(namesOf(await list({ path: "/", orderBy: "size" }))).toEqual(["c", "b", "a", "Z", "ä"]);
  expect(namesOf(await list({ path: "/", orderBy: "-createdAt" }))).toEqual(["Z", "ä", "c", "a", "b"]);
  const page = await list({ path: "/", orderBy: "-size", pageSize: "2", pageNo: "2" });
  expect(namesOf(page)).toEqual(["a", "b"]);
  expect(page.json).toMatchObject({ totalCount: 5, pageNo: 2, pageSize: 2 });
  expect(namesOf(await list({ path: "/", pageNo: "9" }))).toEqual([]);
});

test("each item is the node as it is by its id, whatever its texts are made of", async () => {
  const awkward = '"\\\\/\u0001\u001f\u007f\u2028 {}[],:\u00e4\u{1f600}\\n'.replaceAll("/", "");
  const attributes = { note: awkward, [awkward]: [null, 1.5, { deep: awkward }], mode: 0o600 };
  await core.file(`/${encodeURIComponent(awkward)}`, "x", {
    metadata: { idempotencyKey: `key ${"k".repeat(20)}`, attributes },
    contentType: 'text/plain; charset="utf-8"; x="\\""',
  });
  const folder = await core.folder(core.workspace.root, "folder");
  await core.file(`/folder/${encodeURIComponent(awkward)}`, "");
  const later = await core.file("/folder/later", "1");
  await core.clock.advance(1234);
  await core.upload(`/v1/nodes/${later.id}/content`, "22", { method: "PUT" });
  await core.call("PATCH", `/v1/nodes/${folder.id}`, { json: { name: `${awkward}folder` } });
  for (const orderBy of ["name", "size", "id"]) {
    const { items } = (await list({ path: "/", recursive: "true", orderBy })).json;
    expect(items.length).toBe(4);
    for (const item of items) expect(item).toStrictEqual(await core.node(item.id));
  }
});

test("bad queries are refused by field", async () => {
  const file = await core.file("/f", "x");
  const cases: [string, Record<string, string>][] = [
    ["pageNo", { path: "/", pageNo: "0" }],
    ["pageNo", { path: "/", pageNo: "-1" }],
    ["pageNo", { path: "/", pageNo: "1.5" }],
    ["pageSize", { path: "/", pageSize: "1001" }],
    ["pageSize", { path: "/", pageSize: "0" }],
    ["pageSize", { path: "/", pageSize: "" }],
    ["orderBy", { path: "/", orderBy: "colour" }],
    ["orderBy", { path: "/", orderBy: "constructor" }],
    ["after", { path: "/", after: "nonsense" }],
    ["after", { path: "/", after: Buffer.from('[99999999,1,1,1,null,""]').toString("base64url") }],
    ["after", { path: "/", after: Buffer.from('[1,1,1,1,null,"of another list"]').toString("base64url") }],
    ["recursive", { path: "/", recursive: "yes" }],
    ["branch", { path: "/", branch: "" }],
    ["at", { path: "/", at: "yesterday" }],
    ["path", { path: "/f" }],
    ["path", { path: "/a//b" }],
    ["path", { path: "/", parentId: core.workspace.root }],
    ["parentId", { parentId: file.id }],
    ["recursiv", { path: "/", recursiv: "true" }],
  ];
  for (const [field, query] of cases) {
    const answer = await list(query);
    expect([answer.status, answer.json.field, query]).toEqual([400, field, query]);
  }
  expect((await list({ path: "/none" })).status).toBe(404);
  expect((await list({ parentId: "none" })).status).toBe(404);
});

test("one name is asked for", async () => {
  const file = await core.file("/d/f", "x");
  await core.file("/d/g", "x");
  expect((await list({ parentId: String(file.parentId), name: "f" })).json).toMatchObject({
    items: [{ id: file.id, path: "/d/f" }],
    totalCount: 1,
  });
  expect((await list({ path: "/d", name: "none" })).json).toMatchObject({ items: [], totalCount: 0 });
});

test("pages of one position show all of the list, whatever changes between them", async () => {
  const nodes = [];
  for (let index = 0; index < 20; index++) nodes.push(await core.file(`/d/${String(index).padStart(2, "0")}`, "x"));
  const [first, ...rest] = nodes;
  const folder = String(first?.parentId);
  let step = 0;
  const disturb = async () => {
    step += 1;
    await core.clock.advance(1000);
    await core.file(`/d/${19 - step}-new`, "y");
    await core.call("DELETE", `/v1/nodes/${rest[16 - step]?.id}`);
    await core.call("PATCH", `/v1/nodes/${rest[18]?.id}`, { json: { name: `0-renamed-${step}` } });
    await core.upload("/v1/files/d/17", `more ${step}`);
    await core.call("PATCH", `/v1/nodes/${folder}`, { json: { name: `d${step}` } });
    await core.call("PATCH", `/v1/nodes/${folder}`, { json: { name: "d" } });
  };
  const pages = await allPages({ parentId: folder, pageSize: "3" }, disturb);
  expect(pages.length).toBe(7);
  expect(pages.flatMap(({ json }) => json.items)).toEqual(nodes.map(({ position: _, ...node }) => node));
  for (const { json } of pages) expect(json).toMatchObject({ totalCount: 20, asOf: pages[0]?.json.asOf });
  expect(pages.map(({ json }) => json.pageNo)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  // A page again, after all that, is as it was.
  const again = await list({ parentId: folder, pageSize: "3", after: String(pages[3]?.json.next) });
  expect(again.json).toEqual(pages[4]?.json);
});

test("pages of one position outlive their folder, and a moment of the past shows the tree as it was", async () => {
  const file = await core.file("/d/f", "x");
  await core.file("/d/g", "x");
  const first = await list({ path: "/d", pageSize: "1", after: "" });
  const then = new Date(core.clock.wallClock()).toISOString();
  await core.clock.advance(1000);
  for (const path of ["/v1/files/d/g", "/v1/files/d/f", "/v1/files/d"]) {
    const { id } = (await core.call("GET", path)).json;
    expect((await core.call("DELETE", `/v1/nodes/${id}`)).status).toBe(200);
  }
  expect((await list({ path: "/d" })).status).toBe(404);
  const second = await list({ parentId: String(file.parentId), pageSize: "1", after: String(first.json.next) });
  expect(namesOf(second)).toEqual(["g"]);
  expect(namesOf(await list({ path: "/d", at: then }))).toEqual(["f", "g"]);
  expect((await list({ path: "/d", at: "2020-01-01T00:00:00Z" })).status).toBe(404);
});

test("the path index lags: late, in order, and never takes back what it has shown", async () => {
  core = createTestCore({ pathLagMs: 3000 });
  expect(await core.names("/")).toEqual([]);
  expect((await core.call("GET", "/v1/files/")).status).toBe(200);
  await core.clock.advance(10_000);
  const file = await core.file("/d/f", "x");
  const folder = String(file.parentId);
  // What the store knows is never old.
  expect((await core.node(file.id)).path).toBe("/d/f");
  expect((await core.upload("/v1/files/d/f", "x", { headers: { "if-none-match": "*" } })).status).toBe(412);
  expect((await core.call("GET", "/v1/files/d/f")).status).toBe(404);
  expect(await core.names("/")).toEqual([]);
  const early = await list({ parentId: folder });
  expect([early.status, early.json.items]).toEqual([200, []]);
  expect(early.json.asOf).toBeLessThan(file.position);

  await core.clock.advance(2000);
  await core.file("/d/g", "y");
  await core.clock.advance(999);
  expect(await core.names("/")).toEqual([]);
  await core.clock.advance(1);
  expect(await core.names("/d")).toEqual(["f"]);
  expect((await list({ path: "/d" })).json.asOf).toBeGreaterThanOrEqual(file.position);
  expect((await core.call("GET", "/v1/files/d/f")).json.id).toBe(file.id);
  // An old name stays until the index comes to the move.
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { name: "moved" } });
  expect(await core.names("/d")).toEqual(["f"]);
  expect((await list({ path: "/d", name: "f" })).json.items[0]?.revision).toBe(1);
  core.gateway.setOptions({ pathLagMs: 3_600_000 });
  expect(await core.names("/d")).toEqual(["f"]);
  core.gateway.setOptions({ pathLagMs: 0 });
  expect(await core.names("/d")).toEqual(["g", "moved"]);
  core.gateway.setOptions({ pathLagMs: 3_600_000 });
  expect(await core.names("/d")).toEqual(["g", "moved"]);
  // Nor when the clock goes back.
  core.clock.jump(-86_400_000);
  expect(await core.names("/d")).toEqual(["g", "moved"]);
});

test("the queue of the lag survives a restart", async () => {
  core = createTestCore({ pathLagMs: 3000 });
  await core.file("/shown", "x");
  await core.clock.advance(3000);
  expect(await core.names("/")).toEqual(["shown"]);
  await core.file("/waiting", "x");
  core = core.restart({ pathLagMs: 60_000 });
  expect(await core.names("/")).toEqual(["shown"]);
  await core.clock.advance(59_999);
  expect(await core.names("/")).toEqual(["shown"]);
  await core.clock.advance(1);
  expect(await core.names("/")).toEqual(["shown", "waiting"]);
});

test("an unbound token names the workspace, a bound one only its own", async () => {
  const other = core.gateway.ensureWorkspace("other");
  const unbound = core.token(undefined, null);
  expect((await list({ path: "/" }, unbound)).json.field).toBe("workspace");
  for (const workspace of ["other", other.id]) {
    expect((await list({ path: "/", workspace }, unbound)).status).toBe(200);
    expect((await list({ path: "/", workspace })).status).toBe(403);
    expect((await core.call("GET", "/v1/journal", { query: { workspace } })).status).toBe(403);
  }
  expect((await list({ path: "/", workspace: "none" }, unbound)).status).toBe(404);
  expect((await list({ parentId: other.root }, unbound)).status).toBe(200);
  expect((await list({ parentId: other.root })).status).toBe(403);
  const workspaces = async (token?: string) =>
    (await core.call("GET", "/v1/workspaces", token === undefined ? {} : { token })).json.items.map(({ name }) => name);
  expect(await workspaces()).toEqual(["workspace"]);
  expect(await workspaces(unbound)).toEqual(["other", "workspace"]);
  const page = await core.call("GET", "/v1/workspaces", {
    token: unbound,
    query: { orderBy: "-name", pageSize: "1", pageNo: "2" },
  });
  expect(page.json).toMatchObject({ items: [{ name: "other" }], totalCount: 2, pageNo: 2, pageSize: 1 });
});
