/** The gateway's data are replaced by older ones while a mount is up: the mount shows what is there now, and sends what is unsent. */
import type { Database } from "better-sqlite3";
import { expect, test } from "vitest";
import { gatewayTree, treeOf } from "./tree.ts";
import { createWorld, type World } from "./world.ts";

/** Twice the settle time, and some looks. */
const SETTLED_MS = 11 * 60_000;

const tablesOf = (store: Database) =>
  store
    .prepare<[], string>("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all();

/** Keeps the gateway's rows as they are now; answers what brings them back. */
function backup({ store, restartGateway }: World): () => void {
  store.exec("ATTACH ':memory:' AS kept");
  const tables = tablesOf(store);
  for (const table of tables) store.exec(`CREATE TABLE kept.${table} AS SELECT * FROM main.${table}`);
  return () => {
    for (const table of tables) {
      store.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM kept.${table}`);
    }
    restartGateway();
  };
}

const bytes = (text: string) => ({
  size: text.length,
  async *read() {
    yield Buffer.from(text);
  },
});

async function begin() {
  const world = await createWorld({ seed: 1, mounts: ["alpha"], settings: { pollMs: 5_000 } });
  const [mount] = world.mounts;
  const calls = () => {
    if (mount?.process === undefined) throw new Error("the mount is down");
    return mount.process.kernel;
  };
  const { outside, workspace } = world;
  return {
    world,
    mount,
    calls,
    root: workspace.root,
    tree: () => world.run(treeOf(calls(), { withContent: true })),
    remote: () => world.run(gatewayTree(outside, workspace.root)),
    make: (parent: string, name: string, text: string) => world.run(outside.upload(parent, name, bytes(text))),
  };
}

const shown = (tree: ReadonlyMap<string, { kind: string; content: string }>) =>
  [...tree].map(([path, { kind, content }]) => `${path} ${kind} ${content}`).sort();

test.each(["while it is up", "while it is down"])(
  "%s: names, places and contents are those of the older data",
  async (when) => {
    const { world, mount, calls, root, tree, remote, make } = await begin();
    const { outside } = world;
    const d = await world.run(outside.createFolder(root, "d"));
    const e = await world.run(outside.createFolder(d.id, "e"));
    const a = await make(d.id, "a", "one");
    const b = await make(e.id, "b", "kept");
    const c = await make(root, "c", "to move");
    await tree();
    const restore = backup(world);

    await world.run(outside.writeContent(a.id, bytes("two, lost")));
    await world.run(outside.deleteNode(b.id));
    await world.run(outside.patchNode(c.id, { parentId: e.id, name: "moved" }));
    await make(d.id, "new", "lost");
    const fd = await world.run(calls().open("d/own", { create: true, write: true }));
    await world.run(calls().write(fd, 0, Buffer.from("acknowledged, lost")));
    await world.run(calls().close(fd));
    await world.clock.advance(60_000);
    expect(shown(await tree())).toEqual(shown(await remote()));
    expect((await tree()).size).toBe(6);

    if (when === "while it is down") await world.run(mount?.stop() ?? Promise.resolve());
    restore();
    if (when === "while it is down") await world.run(mount?.start() ?? Promise.resolve());
    await world.clock.advance(SETTLED_MS);
    expect(shown(await tree())).toEqual(shown(await remote()));
    expect([...(await tree()).keys()].sort()).toEqual(["c", "d", "d/a", "d/e", "d/e/b"]);

    // Nothing is left behind: what comes now is followed as ever.
    await world.run(outside.writeContent(a.id, bytes("three")));
    await make(e.id, "later", "x");
    await world.clock.advance(30_000);
    expect(shown(await tree())).toEqual(shown(await remote()));
    world.check();
  },
);

test("what was deleted here is there again with the older data, and deleted once more it does not come back", async () => {
  const { world, calls, root, tree, remote, make } = await begin();
  await make(root, "a", "one");
  await tree();
  const restore = backup(world);
  await world.run(calls().unlink("a"));
  await world.clock.advance(60_000);
  expect(shown(await remote())).toEqual([]);
  restore();
  await world.clock.advance(60_000);
  expect([...(await tree()).keys()]).toEqual(["a"]);
  world.setLag({ path: 8_000, journal: 5_000, id: 0 });
  await world.run(calls().unlink("a"));
  for (let second = 0; second < 60; second += 1) {
    await world.clock.advance(1_000);
    expect(await world.run(calls().list(""))).toEqual([]);
  }
  expect(shown(await remote())).toEqual([]);
  world.check();
});
