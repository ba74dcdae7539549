/** A tree goes back to what it was at a moment, whatever happened since, is happening, or is asked twice. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { savesOfLink } from "../../src/contract/saves.ts";
import { createTestCore } from "../support/gateway-core.ts";
import { SEED } from "../support/seed.ts";
import {
  act,
  histories,
  lookOf,
  momentOf,
  removeAll,
  restoreTree,
  type Step,
  shapeOf,
  tree,
} from "./support/tree-histories.ts";

/** A history with a moment in it; what the tree was then, and what became of it. */
async function live(before: readonly Step[], after: readonly Step[]) {
  const core = createTestCore();
  for (const step of before) await act(core, step);
  const { root } = core.workspace;
  const then = { at: momentOf(core), shape: await shapeOf(core, root), nodes: await tree(core, root) };
  for (const step of after) await act(core, step);
  return { core, root, then };
}

const LONG = { seed: SEED, numRuns: 80 };

test("exactly: the tree is what it was then, in slices of any size, each of them asked for twice", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(20), fc.integer({ min: 1, max: 5 }), async (before, after, pageSize) => {
      const { core, root, then } = await live(before, after);
      const now = { at: momentOf(core), shape: await shapeOf(core, root) };
      const wanted = { at: then.at, exact: true, pageSize };
      const planned = await restoreTree(core, root, { ...wanted, plan: true });
      expect(await shapeOf(core, root)).toEqual(now.shape);
      await core.clock.advance(1000);
      const done = await restoreTree(core, root, wanted, { tries: 2 });
      expect(await shapeOf(core, root)).toEqual(then.shape);
      const what = (items: typeof done) => items.map(({ action, nodeId }) => `${action} ${nodeId}`).sort();
      expect(what(done)).toEqual(what(planned));
      expect(new Set(what(done)).size).toBe(done.length);
      expect(done.filter(({ action }) => action === "skip")).toEqual([]);
      expect(await restoreTree(core, root, wanted)).toEqual([]);
      await restoreTree(core, root, { at: now.at, exact: true });
      expect(await shapeOf(core, root)).toEqual(now.shape);
    }),
    LONG,
  );
});

test("what is newer stays: a name it has goes to nobody else", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(20), async (before, after) => {
      const { core, root, then } = await live(before, after);
      const newer = (await tree(core, root)).filter(({ id }) => !then.nodes.some((node) => node.id === id));
      await restoreTree(core, root, { at: then.at, pageSize: 3 });
      const now = new Map((await tree(core, root)).map((node) => [node.id, node]));
      for (const node of then.nodes) {
        const found = now.get(node.id);
        expect(found && [found.parentId, ...lookOf(found)]).toEqual([node.parentId, ...lookOf(node)]);
        if (found?.name !== node.name) expect(found?.name).toMatch(/ \(restored 2026-01-01 00\.\d\d\.\d\d\)(\.txt)?$/);
      }
      for (const { id, name, parentId } of newer) expect(now.get(id)).toMatchObject({ name, parentId });
      expect(await restoreTree(core, root, { at: then.at })).toEqual([]);
    }),
    LONG,
  );
});

test("of a folder: what is in it, wherever it is by now", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(20), fc.nat(99), async (before, after, which) => {
      const { core, then } = await live(before, after);
      const folders = then.nodes.filter(({ kind }) => kind === "folder");
      const folder = folders[which % Math.max(1, folders.length)];
      if (folder === undefined) return;
      const json = { at: then.at, exact: true, pageSize: 2 };
      const { status } = await core.call("POST", `/v1/nodes/${folder.id}/restore-tree`, { json });
      if (status === 409) return;
      await restoreTree(core, folder.id, json);
      const below = Object.entries(then.shape).filter(([path]) => path.startsWith(`${folder.path}/`));
      const expected = Object.fromEntries(below.map(([path, look]) => [path.slice(folder.path.length), look]));
      expect(await shapeOf(core, folder.id)).toEqual(expected);
    }),
    LONG,
  );
});

test("others go on meanwhile: it comes to an end, and asked for again to the tree of then", async () => {
  await fc.assert(
    fc.asyncProperty(histories(20), histories(10), histories(10), async (before, after, meanwhile) => {
      const { core, root, then } = await live(before, after);
      const wanted = { at: then.at, exact: true, pageSize: 1 };
      const rest = [...meanwhile];
      await restoreTree(core, root, wanted, {
        async between() {
          const step = rest.shift();
          if (step !== undefined) await act(core, step);
        },
      });
      await restoreTree(core, root, wanted);
      expect(await shapeOf(core, root)).toEqual(then.shape);
    }),
    LONG,
  );
});

async function past() {
  const core = createTestCore();
  const { root } = core.workspace;
  const ask = (id: string, json: object, token?: string) =>
    core.call("POST", `/v1/nodes/${id}/restore-tree`, { json, ...(token === undefined ? {} : { token }) });
  const move = (id: string, json: object) => core.call("PATCH", `/v1/nodes/${id}`, { json });
  const moment = async () => {
    const at = momentOf(core);
    await core.clock.advance(1000);
    return at;
  };
  return { core, root, ask, move, moment };
}

test("a folder that the tree is in by now is not put into it, and said so", async () => {
  const { core, root, ask, move, moment } = await past();
  const top = await core.folder(root, "top");
  const below = await core.folder(top.id, "below");
  const at = await moment();
  await move(below.id, { parentId: root });
  await move(top.id, { parentId: below.id });
  const { json } = await ask(top.id, { at });
  const reason = "the folder it was in is below it now";
  const skipped = { action: "skip", nodeId: below.id, kind: "folder", path: "/below", reason };
  expect(json).toEqual({ items: [skipped], next: null, position: null });
});

test("a plan says of folders that changed places what will be done", async () => {
  const { core, root, ask, move, moment } = await past();
  const top = await core.folder(root, "top");
  const below = await core.folder(top.id, "below");
  const at = await moment();
  await move(below.id, { parentId: root });
  await move(top.id, { parentId: below.id });
  const items = [
    { action: "move", nodeId: top.id, kind: "folder", path: "/top", from: "/below/top" },
    { action: "move", nodeId: below.id, kind: "folder", path: "/top/below", from: "/below" },
  ];
  expect((await ask(root, { at, plan: true })).json.items).toEqual(items);
  expect((await ask(root, { at })).json.items).toEqual(items);
});

test.each(["file", "folder"] as const)(
  "what has the name of the topmost %s by now keeps it, also exactly",
  async (kind) => {
    const { core, root, ask, moment } = await past();
    const make = () => (kind === "folder" ? core.folder(root, "d") : core.file("/d", "bytes"));
    const older = await make();
    const at = await moment();
    await removeAll(core, older.id);
    const newer = await make();
    if (kind === "folder") await core.file("/d/newer", "bytes");
    const name = `d (restored ${at.slice(0, 19).replace("T", " ").replaceAll(":", ".")})`;
    const items = [{ action: "restore", nodeId: older.id, kind, path: `/${name}` }];
    expect((await ask(older.id, { at, exact: true, plan: true })).json.items).toEqual(items);
    expect((await ask(older.id, { at, exact: true })).json.items).toEqual(items);
    expect(await core.names("/")).toEqual(["d", name]);
    expect((await core.call("GET", `/v1/nodes/${newer.id}`)).json).toMatchObject({ path: "/d" });
    if (kind === "folder") expect(await core.names("/d")).toEqual(["newer"]);
  },
);

test("a folder that is deleted or moved between two requests is not gone on with", async () => {
  const { core, root, ask, move, moment } = await past();
  const folder = await core.folder(root, "d");
  for (const name of ["a", "b", "c"]) await core.file(`/d/${name}`, name);
  const at = await moment();
  await removeAll(core, folder.id);
  const first = await ask(root, { at, pageSize: 2 });
  expect(first.json.items.map(({ path }) => path)).toEqual(["/d", "/d/c"]);
  await removeAll(core, folder.id);
  const second = await ask(root, { at, pageSize: 2, after: first.json.next });
  expect([second.json.items, await core.names("/")]).toEqual([[], []]);
  expect((await ask(root, { at })).json.items.length).toBe(4);
  await move(folder.id, { name: "moved" });
  expect(await core.names("/moved")).toEqual(["a", "b", "c"]);
});

test("a `next` that was made up leads nowhere else", async () => {
  const { core, root, ask, moment } = await past();
  await core.folder(root, "d");
  const at = await moment();
  const other = core.gateway.ensureWorkspace("other");
  for (let n = 0; n < 3; n += 1) await core.folder(root, `new ${n}`);
  const { next } = (await ask(root, { at, exact: true, pageSize: 1 })).json;
  const told = JSON.parse(Buffer.from(String(next), "base64url").toString());
  const made = (change: (cursor: typeof told) => void) => {
    const copy = structuredClone(told);
    change(copy);
    return Buffer.from(JSON.stringify(copy)).toString("base64url");
  };
  const wrong = [
    made((copy) => {
      copy[2][0].id = other.root;
    }),
    made((copy) => {
      copy[0] = 1e9;
    }),
    "x",
  ];
  for (const after of wrong) {
    const answer = await ask(root, { at, exact: true, pageSize: 1, after });
    expect([answer.status, answer.json.field]).toEqual([400, "after"]);
  }
  const mine = await ask(root, { at: new Date(Date.parse(at) - 1).toISOString(), exact: true, after: next });
  expect([mine.status, mine.json.field]).toEqual([400, "after"]);
});

test("each change is told under the key, by whoever asked", async () => {
  const { core, root, ask, moment } = await past();
  const file = await core.file("/d/a", "old");
  const at = await moment();
  await core.upload(`/v1/nodes/${file.id}/content`, "new", { method: "PUT" });
  await removeAll(core, String(file.parentId));
  const { position } = (await ask(root, { at, idempotencyKey: "back" })).json;
  const { items } = (await core.call("GET", "/v1/journal", { query: { orderBy: "-position", pageSize: "4" } })).json;
  expect(items.map(({ kind, key }) => [kind, key])).toEqual([
    ["updated", "back"],
    ["restored", "back"],
    ["restored", "back"],
    ["deleted", null],
  ]);
  expect(position).toBe(items[0]?.position);
});

test("a file goes back by itself, and stays where it is", async () => {
  const { core, ask, move, moment } = await past();
  const file = await core.file("/d/a", "old", { metadata: { attributes: { mode: 0o600, mtime: "7.000000000" } } });
  const at = await moment();
  await core.upload(`/v1/nodes/${file.id}/content`, "new", {
    method: "PUT",
    metadata: { attributes: { mode: 0o644 } },
  });
  await move(file.id, { name: "b" });
  const { json } = await ask(file.id, { at });
  expect(json.items).toEqual([{ action: "content", nodeId: file.id, kind: "file", path: "/d/b" }]);
  expect(await core.node(file.id)).toMatchObject({
    contentHash: file.contentHash,
    attributes: { mode: 0o600, mtime: "7.000000000" },
  });
});

test("the other names of a linked file get the content that came back", async () => {
  const { core, ask, moment } = await past();
  const link = (saves: string[], hash: string) => ({ attributes: { link: { group: "g", hash, saves } } });
  const file = await core.file("/d/a", "old");
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: link(["s1"], String(file.contentHash)) });
  const at = await moment();
  const newer = await core.upload(`/v1/nodes/${file.id}/content`, "new", { method: "PUT" });
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: link(["s2", "s1"], String(newer.json.contentHash)) });
  await ask(file.id, { at });
  const { attributes } = await core.node(file.id);
  expect(attributes.link).toMatchObject({ group: "g", hash: file.contentHash });
  expect(attributes.link?.saves?.slice(1)).toEqual(
    savesOfLink({ group: "g", hash: String(newer.json.contentHash), saves: ["s2", "s1"] }),
  );
});

test("what was not there then, or is in a deleted folder, cannot go back", async () => {
  const { core, ask, moment } = await past();
  const before = await moment();
  const file = await core.file("/d/a", "x");
  const at = await moment();
  expect((await ask(file.id, { at: before })).json.detail).toMatch(/^at: the node ".*" was not there then\.$/);
  await removeAll(core, String(file.parentId));
  const refused = await ask(file.id, { at });
  expect([refused.status, refused.json.node.path]).toEqual([409, "/d"]);
  await ask(String(file.parentId), { at });
  expect(await core.names("/d")).toEqual(["a"]);
});

test("over its quota it stops where it is, and goes on once there is room", async () => {
  const { core, root, ask, moment } = await past();
  for (const name of ["a", "b", "c"]) await core.file(`/${name}`, "xx");
  const at = await moment();
  for (const { id } of await tree(core, root)) await core.call("DELETE", `/v1/nodes/${id}`);
  core.gateway.setOptions({ quota: { all: 3 } });
  const first = await ask(root, { at, pageSize: 1 });
  const refused = await ask(root, { at, pageSize: 1, after: first.json.next });
  expect([refused.status, await core.names("/")]).toEqual([507, ["a"]]);
  core.gateway.setOptions({ quota: {} });
  await ask(root, { at, after: first.json.next });
  expect(await core.names("/")).toEqual(["a", "b", "c"]);
});

test("deleting what is newer takes a scope of its own", async () => {
  const { core, root, ask, moment } = await past();
  const at = await moment();
  const token = core.token(["node.node.update", "node.file.read"]);
  const refused = await ask(root, { at, exact: true }, token);
  expect([refused.status, refused.json.scope]).toEqual([403, "node.file.delete"]);
  expect((await ask(root, { at }, token)).status).toBe(200);
});

test("a node that went elsewhere under another name goes back by one change", async () => {
  const { core, root, ask, move, moment } = await past();
  const first = await core.folder(root, "a");
  const file = await core.file("/b/x", "x");
  const at = await moment();
  await move(file.id, { parentId: first.id, name: "y" });
  const { items } = (await ask(root, { at })).json;
  expect(items).toEqual([{ action: "move", nodeId: file.id, kind: "file", path: "/b/x", from: "/a/y" }]);
});
