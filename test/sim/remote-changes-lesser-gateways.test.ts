/** What others change, at plain gateways: found out by lists and by the clock. */

import { describe, expect, test } from "vitest";
import type { Features } from "../../src/contract/features.ts";
import { PLAIN, PLAINEST } from "../support/features.ts";
import type { EngineHook } from "./support/mount.ts";
import { begin, there } from "./support/one-world.ts";
import { runProgram } from "./support/programs.ts";
import { gatewayTree, readFile, treeOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

const KINDS = [
  { what: "plain", features: PLAIN },
  { what: "the plainest", features: PLAINEST },
];

describe("a node that is not found for a while", () => {
  const POLL_MS = 5_000;

  /** What is written has settled. */
  const OLD_MS = 6 * 60_000;

  async function begin(features: Features) {
    const world = await createWorld({ seed: 1, mounts: ["alpha"], features, settings: { pollMs: POLL_MS } });
    const [mount] = world.mounts;
    const calls = () => {
      if (mount?.process === undefined) throw new Error("the mount is down");
      return mount.process.kernel;
    };
    const names = () => world.run(calls().list(""));
    /** Its rows are put aside, and brought back. */
    const hide = (name: string): (() => void) => {
      const { store } = world;
      const place = store.prepare<[string], Record<string, unknown>>("SELECT * FROM place WHERE name = ?").get(name);
      if (place === undefined) throw new Error(`no ${name}`);
      const set = (deleted: number, count: number) => {
        store.prepare("UPDATE node SET deleted = ? WHERE id = ?").run(deleted, place.node);
        store.prepare("UPDATE mark SET count = count + ? WHERE folder = ?").run(count, place.parent);
        // Pages it has made are kept for a while.
        world.restartGateway();
      };
      store.prepare("DELETE FROM place WHERE name = ?").run(name);
      set(1, -1);
      return () => {
        const columns = Object.keys(place);
        const insert = `INSERT INTO place (${columns.join()}) VALUES (${columns.map((column) => `@${column}`).join()})`;
        store.prepare(insert).run(place);
        set(0, 1);
      };
    };
    const save = (path: string, label: string) => world.run(runProgram(calls(), { do: "save", path, size: 40 }, label));
    const remote = async () => [...(await world.run(gatewayTree(world.outside, world.workspace.root))).keys()].sort();
    await save("a", "first");
    await save("b", "other");
    await world.run(calls().chmod("a", 0o600));
    await world.clock.advance(OLD_MS);
    const content = async (path: string) => (await world.run(readFile(calls(), path))).toString("latin1");
    const mode = async (path: string) => (await world.run(treeOf(calls(), { withContent: false }))).get(path)?.mode;
    return { world, names, hide, save, remote, content, mode };
  }

  /** Several rounds of looking. */
  const MOMENT_MS = 25_000;

  test.each(KINDS)("$what: what is not found for a moment stays as it is", async ({ features }) => {
    const it = await begin(features);
    const before = await it.content("a");
    const show = it.hide("a");
    for (let waited = 0; waited < MOMENT_MS; waited += POLL_MS / 2) {
      await it.world.clock.advance(POLL_MS / 2);
      expect(await it.names()).toEqual(["a", "b"]);
    }
    show();
    await it.world.clock.advance(30_000);
    expect(await it.names()).toEqual(["a", "b"]);
    expect(await it.content("a")).toBe(before);
    expect(await it.mode("a")).toBe(0o600);
    it.world.check();
  });

  test.each(KINDS)("$what: changed while its node is not found, it is no other file", async ({ features }) => {
    const it = await begin(features);
    const show = it.hide("a");
    await it.world.clock.advance(2 * POLL_MS);
    await it.save("a", "second");
    const saved = await it.content("a");
    // Longer than what is believed of a file that nobody changed here.
    await it.world.clock.advance(120_000);
    expect(await it.names()).toEqual(["a", "b"]);
    show();
    await it.world.clock.advance(OLD_MS);
    expect([await it.names(), await it.remote()]).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
    expect(await it.content("a")).toBe(saved);
    it.world.check();
  });

  test.each(KINDS)("$what: what is deleted elsewhere goes within a minute", async ({ features }) => {
    const it = await begin(features);
    const { items } = await it.world.run(it.world.outside.listFolder(it.world.workspace.root));
    const node = items.find(({ name }) => name === "a");
    await it.world.run(it.world.outside.deleteNode(node?.id ?? ""));
    await it.world.clock.advance(60_000);
    expect([await it.names(), await it.remote()]).toEqual([["b"], ["b"]]);
    it.world.check();
  });
});

describe("a folder removed elsewhere with all in it", () => {
  /** Twice the settle time, and some looks. */
  const GONE_MS = 11 * 60_000;

  const NOTHING = { size: 0, async *read() {} };

  /** The list of a folder that is not there is a 404, not an empty one. */
  const refuseGone: EngineHook = (_files, _rows, { client }) => {
    const { listFolder, getNode } = client;
    Object.assign(client, {
      async listFolder(...args: Parameters<typeof listFolder>) {
        await getNode(args[0]);
        return listFolder(...args);
      },
    });
    return {};
  };

  test.each(KINDS)("$what: a folder removed elsewhere with all that was in it goes", async ({ features }) => {
    const settings = { pollMs: 5_000 };
    const world = await createWorld({
      seed: 1,
      mounts: ["alpha"],
      features,
      settings,
      sabotage: { engine: refuseGone },
    });
    const { outside, workspace } = world;
    const tree = async () => {
      const calls = world.mounts[0]?.process?.kernel;
      if (calls === undefined) throw new Error("the mount is down");
      return [...(await world.run(treeOf(calls, { withContent: false }))).keys()];
    };
    const d = await world.run(outside.createFolder(workspace.root, "d"));
    const e = await world.run(outside.createFolder(d.id, "e"));
    const f = await world.run(outside.upload(e.id, "f", NOTHING));
    // The root may have been listed before they were made.
    await world.clock.advance(4 * settings.pollMs);
    expect(await tree()).toEqual(["d", "d/e", "d/e/f"]);
    for (const node of [f, e, d]) await world.run(outside.deleteNode(node.id));
    await world.clock.advance(GONE_MS);
    expect(await tree()).toEqual([]);
    world.check();
  });
});

describe("the clock is set", () => {
  const HOUR = 3_600_000;

  /** Longer than the settle time, and some rounds of looking. */
  const SETTLED_MS = 7 * 60_000;

  /** Deletes at the gateway what is there under this name. */
  async function remove({ world }: Awaited<ReturnType<typeof begin>>, name: string): Promise<void> {
    const { items } = await world.run(world.outside.listFolder(world.workspace.root, { name }));
    const [node] = items;
    if (node === undefined) throw new Error(`there is no ${name}`);
    await world.run(world.outside.deleteNode(node.id, { ifRevision: node.revision }));
  }

  test("what was written while the clock was ahead is seen to go", async () => {
    const it = await begin({}, { features: PLAIN });
    it.mount.skewMs = HOUR;
    await it.save("a");
    await it.drain();
    it.mount.skewMs = 0;
    await it.world.clock.advance(SETTLED_MS);
    expect(await it.names()).toEqual(["a"]);
    await remove(it, "a");
    await it.world.clock.advance(SETTLED_MS);
    expect([await it.names(), [...(await there(it.world)).keys()]]).toEqual([[], []]);
  });

  test("what was removed stays away when the clock was ahead before", async () => {
    const it = await begin({}, { features: PLAIN });
    await it.save("a");
    await it.save("b");
    await it.drain();
    it.mount.skewMs = HOUR;
    await it.world.clock.advance(SETTLED_MS);
    expect(await it.names()).toEqual(["a", "b"]);
    it.mount.skewMs = 0;
    await it.world.clock.advance(10_000);
    it.world.setLag({ path: 60_000, journal: 0, id: 0 });
    await it.world.clock.advance(10_000);
    await it.unlink("a");
    await it.drain();
    for (let waited = 0; waited < 60_000; waited += 1_000) {
      await it.world.clock.advance(1_000);
      expect([waited, await it.names()]).toEqual([waited, ["b"]]);
    }
    it.world.check();
  });

  test("what was removed stays away when the clock goes ahead then", async () => {
    const it = await begin({}, { features: PLAIN });
    await it.save("a");
    await it.save("b");
    await it.drain();
    await it.world.clock.advance(SETTLED_MS);
    it.world.setLag({ path: 60_000, journal: 0, id: 0 });
    await it.world.clock.advance(70_000);
    await it.unlink("a");
    await it.drain();
    it.mount.skewMs = HOUR;
    for (let waited = 0; waited < 60_000; waited += 1_000) {
      await it.world.clock.advance(1_000);
      expect([waited, await it.names()]).toEqual([waited, ["b"]]);
    }
    it.world.check();
  });

  test("rows of a release that had the wall clock's time for positions: what was written is seen to go", async () => {
    const it = await begin({}, { features: PLAIN });
    await it.save("a");
    await it.drain();
    const later = it.world.clock.wallClock() + HOUR;
    it.mount.crash((rows) => {
      rows.prepare("UPDATE setting SET value = ? WHERE key IN ('cursor', 'indexed', 'written')").run(String(later));
      rows.prepare("UPDATE node SET base_position = ? WHERE base_parent IS NOT NULL").run(later);
    });
    await it.world.run(it.mount.start());
    expect(await it.names()).toEqual(["a"]);
    await remove(it, "a");
    await it.world.clock.advance(SETTLED_MS);
    expect(await it.names()).toEqual([]);
  });
});
