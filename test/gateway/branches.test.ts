/** Branches: one head each, main's where there is none; what is common to all stays so. */
import { beforeEach, expect, test } from "vitest";
import type { Node } from "../../src/contract/resources.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

const write = (id: string, content: string, branch: string, headers: Record<string, string> = {}, more = {}) =>
  core.upload(`/v1/nodes/${id}/content`, content, { method: "PUT", headers, metadata: { branch, ...more } });
const read = async (id: string, query: Record<string, string> = {}) => {
  const answer = await core.call("GET", `/v1/nodes/${id}/content`, { query });
  return [answer.bytes.toString(), answer.headers.etag];
};
const node = async (id: string, branch: string) =>
  (await core.call("GET", `/v1/nodes/${id}`, { query: { branch } })).json;

test("a branch shows main's content until it is written on, and its own from then on", async () => {
  const file = await core.file("/d/f", "main", { contentType: "text/plain" });
  expect(await read(file.id, { branch: "b" })).toEqual(["main", `"${file.head}"`]);
  await core.clock.advance(10);
  const written = await write(file.id, "longer", "b");
  expect(written.json).toMatchObject({ revision: 2, size: 6, path: "/d/f" });
  expect(written.json.head).not.toBe(file.head);
  expect(await read(file.id, { branch: "b" })).toEqual(["longer", `"${written.json.head}"`]);
  expect(await read(file.id, { branch: "c" })).toEqual(["main", `"${file.head}"`]);
  expect(await read(file.id)).toEqual(["main", `"${file.head}"`]);
  // Every way to look at it says the same.
  for (const branch of ["b", "c", "main"]) {
    const byId = await node(file.id, branch);
    expect((await core.call("GET", "/v1/files/d/f", { query: { branch } })).json).toEqual(byId);
    for (const more of [{}, { orderBy: "size" }, { recursive: "true" }, { name: "f" }]) {
      const { items } = (await core.call("GET", "/v1/nodes", { query: { path: "/d", branch, ...more } })).json;
      expect(items).toEqual([byId]);
    }
    expect([branch, byId.size, byId.revision]).toEqual([branch, branch === "b" ? 6 : 4, 2]);
  }
  expect((await node(file.id, "b")).modifiedAt).not.toBe((await node(file.id, "main")).modifiedAt);
  // main goes on by itself.
  await core.file("/d/f", "main again");
  expect((await read(file.id, { branch: "b" }))[0]).toBe("longer");
  expect((await read(file.id, { branch: "c" }))[0]).toBe("main again");
});

test("versions say their branch, the journal which head moved", async () => {
  const file = await core.file("/f", "one");
  const start = file.position;
  const b = (await write(file.id, "two", "b")).json;
  const main = await core.file("/f", "three");
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { name: "g" } });
  const versions = async (query: Record<string, string> = {}) =>
    (await core.call("GET", `/v1/nodes/${file.id}/versions`, { query })).json.items.map(({ number, branch }) => [
      number,
      branch,
    ]);
  expect(await versions()).toEqual([
    [1, "main"],
    [2, "b"],
    [3, "main"],
  ]);
  expect(await versions({ branch: "b" })).toEqual([[2, "b"]]);
  expect(await versions({ branch: "main", orderBy: "-size" })).toEqual([
    [3, "main"],
    [1, "main"],
  ]);
  expect(await versions({ branch: "c" })).toEqual([]);
  const { items } = (await core.call("GET", "/v1/journal", { query: { after: String(start) } })).json;
  expect(items).toMatchObject([
    { kind: "updated", branch: "b", branchHead: b.head, head: file.head, contentHash: file.contentHash, revision: 2 },
    { kind: "updated", branch: "main", branchHead: main.head, head: main.head, contentHash: main.contentHash },
    { kind: "moved", branch: null, branchHead: null, head: main.head },
  ]);
});

test("conditions are against the branch's head", async () => {
  const file = await core.file("/f", "one");
  const first = await write(file.id, "two", "b", { "if-match": `"${file.head}"` });
  expect(first.status).toBe(200);
  const stale = await write(file.id, "three", "b", { "if-match": `"${file.head}"` });
  expect([stale.status, stale.json.node.head]).toEqual([412, first.json.head]);
  expect((await write(file.id, "three", "b", { "if-match": `"${first.json.head}"` })).status).toBe(200);
  expect((await write(file.id, "three", "main", { "if-match": `"${file.head}"` })).status).toBe(200);
  const byPath = await core.upload("/v1/files/f", "x", {
    metadata: { branch: "b" },
    headers: { "if-match": `"${first.json.head}"` },
  });
  expect(byPath.status).toBe(412);
});

test("a file that begins on a branch is empty on main; a key belongs to its branch", async () => {
  const upload = () => core.upload("/v1/files/f", "x", { metadata: { branch: "b", idempotencyKey: "k" } });
  const first = await upload();
  expect([first.status, first.json.size]).toEqual([201, 1]);
  expect((await upload()).json).toEqual(first.json);
  expect((await core.upload("/v1/files/f", "x", { metadata: { idempotencyKey: "k" } })).json.field).toBe(
    "idempotencyKey",
  );
  expect(await read(first.json.id, { branch: "b" })).toEqual(["x", `"${first.json.head}"`]);
  expect((await read(first.json.id))[0]).toBe("");
  expect(await node(first.json.id, "main")).toMatchObject({ size: 0, mimeType: first.json.mimeType });
});

test("places and attributes are common, the time of the content is its branch's", async () => {
  const times = ["1.000000000", "2.000000000"] as const;
  const file = await core.file("/f", "x", { metadata: { attributes: { mode: 0o600, mtime: times[0] } } });
  await write(file.id, "y", "b", {}, { attributes: { uid: 5, mtime: times[1] } });
  expect((await node(file.id, "main")).attributes).toEqual({ mode: 0o600, uid: 5, mtime: times[0] });
  expect((await node(file.id, "b")).attributes).toEqual({ mode: 0o600, uid: 5, mtime: times[1] });
  await write(file.id, "z", "b");
  expect((await node(file.id, "b")).attributes).toEqual({ mode: 0o600, uid: 5 });
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { name: "g" } });
  expect([(await node(file.id, "b")).name, (await node(file.id, "b")).size]).toEqual(["g", 1]);
});

test("content by reference is what its branch shows, unless a version is named", async () => {
  const source = await core.file("/source", "main's");
  const onMain = String(source.head);
  const onBranch = (await write(source.id, "b's", "b")).json.head;
  const target = await core.file("/target", "old");
  const take = async (reference: object) =>
    (await core.call("PUT", `/v1/nodes/${target.id}/content`, { json: { copyOf: source.id, ...reference } })).status;
  const shown = async () => [(await read(target.id))[0], (await read(target.id, { branch: "b" }))[0]];
  expect(await take({ branch: "b" })).toBe(200);
  expect(await shown()).toEqual(["old", "b's"]);
  expect(await take({ branch: "b", version: onMain })).toBe(200);
  expect(await shown()).toEqual(["old", "main's"]);
  // A branch without a head of its own shows main's.
  expect(await take({ branch: "c" })).toBe(200);
  expect((await read(target.id, { branch: "c" }))[0]).toBe("main's");
  expect(await take({})).toBe(200);
  expect((await shown())[0]).toBe("main's");
  expect(await take({ version: onBranch })).toBe(200);
  expect((await shown())[0]).toBe("b's");
});

test("content by reference goes to a branch, and a past moment shows the heads it had", async () => {
  const file = await core.file("/f", "one");
  const other = await core.file("/g", "other");
  const moments: [string, string, string][] = [];
  const remember = async () => {
    const contents = [(await read(file.id))[0] ?? "", (await read(file.id, { branch: "b" }))[0] ?? ""] as const;
    moments.push([new Date(core.clock.wallClock()).toISOString(), ...contents]);
    await core.clock.advance(5);
  };
  await remember();
  const reference = { copyOf: other.id, branch: "b" };
  expect((await core.call("PUT", `/v1/nodes/${file.id}/content`, { json: reference })).json.size).toBe(5);
  await remember();
  await core.file("/f", "two");
  await remember();
  await write(file.id, "three", "b");
  await remember();
  expect(moments.map(([, main, b]) => [main, b])).toEqual([
    ["one", "one"],
    ["one", "other"],
    ["two", "other"],
    ["two", "three"],
  ]);
  for (const [at, main, b] of moments) {
    expect((await read(file.id, { at }))[0]).toBe(main);
    expect((await read(file.id, { at, branch: "b" }))[0]).toBe(b);
    for (const orderBy of ["name", "size"]) {
      const listed = await core.call("GET", "/v1/nodes", { query: { path: "/", at, branch: "b", orderBy } });
      const shown: Node[] = JSON.parse(listed.bytes.toString()).items;
      expect(shown.find(({ id }) => id === file.id)?.size).toBe(b.length);
    }
  }
});
