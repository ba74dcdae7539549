/**
 * What an upload may do with each set of the four scopes it needs (gateway-spec §4, upload rules 3
 * and 4): only node.journal.create may be missing, and then new folders stay unprovisioned.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { type Scope, UPLOAD_SCOPES } from "../../src/contract/scopes.ts";
import { createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";

const JOURNAL: Scope = "node.journal.create";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

/** Every set of the four but the whole. */
const properSubsets = Array.from({ length: 2 ** UPLOAD_SCOPES.length - 1 }, (_, bits) =>
  UPLOAD_SCOPES.filter((_, index) => (bits & (1 << index)) !== 0),
);

function uploadWith(scopes: readonly string[], path: string, content = "x") {
  return core.upload(`/v1/files/${path}`, content, { token: core.token(scopes) });
}

async function statusByPath(path: string): Promise<number> {
  return (await core.call("GET", `/v1/files/${path}`)).status;
}

test("there are 15 of them, one of which lacks the journal scope alone", () => {
  expect(properSubsets.length).toBe(15);
  expect(properSubsets.filter((scopes) => scopes.length === 3 && !scopes.includes(JOURNAL)).length).toBe(1);
});

describe.each(properSubsets.map((scopes) => ({ scopes })))("with $scopes", ({ scopes }) => {
  const missing = UPLOAD_SCOPES.filter((scope) => !scopes.includes(scope));

  if (missing.length === 1 && missing[0] === JOURNAL) {
    test("it is done, and the new folders are not found by path until a journal entry provisions them", async () => {
      const answer = await uploadWith(scopes, "a/b/c.txt");
      expect([answer.status, answer.json.path]).toEqual([201, "/a/b/c.txt"]);
      const { id, parentId: inner } = answer.json;
      const outer = (await core.node(String(inner))).parentId;
      for (const path of ["a", "a/b", "a/b/c.txt"]) expect([path, await statusByPath(path)]).toEqual([path, 404]);
      expect((await core.call("GET", "/v1/nodes", { query: { path: "/a" } })).status).toBe(404);
      expect((await core.call("GET", "/v1/nodes", { query: { parentId: String(inner) } })).status).toBe(404);
      expect(await core.names("/")).toEqual([]);
      // By id everything is there.
      expect((await core.call("GET", `/v1/nodes/${id}/content`)).bytes.toString()).toBe("x");
      // It stays so over a restart, and for whoever uploads into the same folder.
      core = core.restart();
      expect((await uploadWith(scopes, "a/d")).status).toBe(201);
      expect(await statusByPath("a/d")).toBe(404);

      const record = (nodeId: string) => core.call("POST", "/v1/journal", { json: { nodeId, kind: "seen" } });
      expect((await record(String(inner))).status).toBe(201);
      // The outer one still hides it.
      expect(await statusByPath("a/b/c.txt")).toBe(404);
      expect((await record(String(outer))).status).toBe(201);
      for (const path of ["a", "a/b", "a/b/c.txt", "a/d"])
        expect([path, await statusByPath(path)]).toEqual([path, 200]);
      expect(await core.names("/a")).toEqual(["b", "d"]);
    });

    test("a file in a folder that is there is found at once, a new folder alone is not", async () => {
      const folder = await core.folder(core.workspace.root, "there");
      expect((await uploadWith(scopes, "there/f")).status).toBe(201);
      expect(await statusByPath("there/f")).toBe(200);
      const made = await core.call("POST", "/v1/nodes", {
        json: { parentId: folder.id, name: "n", kind: "folder" },
        token: core.token(scopes),
      });
      expect(made.status).toBe(201);
      expect(await statusByPath("there/n")).toBe(404);
      expect(await core.names("/there")).toEqual(["f"]);
    });

    test("nothing of it is in the journal", async () => {
      const positions = async () => (await core.call("GET", "/v1/journal")).json.items.map(({ position }) => position);
      const before = await positions();
      const answer = await uploadWith(scopes, "a/f");
      expect(await positions()).toEqual(before);
      expect(answer.json.position).toBeGreaterThan(Math.max(...before));
    });
    return;
  }

  test("it is refused before a byte is read or kept", async () => {
    let read = 0;
    const file = part("file", "x".repeat(100_000));
    async function* counted() {
      for await (const chunk of file.data) {
        read += chunk.length;
        yield chunk;
      }
    }
    const answer = await core.call("POST", "/v1/files/a/f", {
      body: uploadBody({ ...file, data: counted() }),
      token: core.token(scopes),
    });
    expect([answer.status, answer.json.scope]).toEqual([403, missing.find((scope) => scope !== JOURNAL)]);
    expect([read, core.blobs.contents.size]).toEqual([0, 0]);
    expect(await core.names("/")).toEqual([]);
    expect(await statusByPath("a")).toBe(404);
  });
});

test("of a folder, node.node.create is needed, and the journal entry only for being found", async () => {
  const json = { parentId: core.workspace.root, name: "n", kind: "folder" };
  const refused = await core.call("POST", "/v1/nodes", { json, token: core.token([JOURNAL]) });
  expect([refused.status, refused.json.scope]).toEqual([403, "node.node.create"]);
  const made = await core.call("POST", "/v1/nodes", { json, token: core.token(["node.node.create"]) });
  expect(made.status).toBe(201);
  expect(await statusByPath("n")).toBe(404);
  const whole = core.token(["node.node.create", JOURNAL]);
  const other = await core.call("POST", "/v1/nodes", { json: { ...json, name: "m" }, token: whole });
  expect(other.status).toBe(201);
  expect(await statusByPath("m")).toBe(200);
});

test("parents are made where the store has none, also while the path index is behind", async () => {
  core = createTestCore({ pathLagMs: 10_000 });
  const first = await core.file("/a/b/one", "1");
  expect(await statusByPath("a/b/one")).toBe(404);
  const second = await core.file("/a/b/two", "2");
  expect(second.parentId).toBe(first.parentId);
  const [third, fourth] = await Promise.all([core.file("/x/y/one", "1"), core.file("/x/y/two", "2")]);
  expect(third.parentId).toBe(fourth.parentId);
  // A folder that is gone in the store, but still in the index, is made anew.
  await core.clock.advance(10_000);
  expect(await statusByPath("a/b/one")).toBe(200);
  for (const id of [first.id, second.id, first.parentId]) {
    expect((await core.call("DELETE", `/v1/nodes/${id}`)).status).toBe(200);
  }
  expect(await statusByPath("a/b/one")).toBe(200);
  const again = await core.file("/a/b/one", "3");
  expect(again.parentId).not.toBe(first.parentId);
  expect(again.id).not.toBe(first.id);
  await core.clock.advance(10_000);
  expect(await core.names("/a/b")).toEqual(["one"]);
  expect((await core.call("GET", "/v1/files/a/b/one")).json.id).toBe(again.id);
});
