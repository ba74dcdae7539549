/**
 * Data that were set back. Those of the gateway: mounts show what is there now, send what is unsent, and keep the
 * contents that the gateway had acknowledged, or shown, and lost. The rows of a mount, which are lost, damaged or older
 * than its files: no content that a program was promised is lost, none is doubled, and mount and gateway agree in the
 * end.
 */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createLayout } from "../../src/content/layout.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { type Connection, SqliteError } from "../../src/lib/sqlite/index.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { SEED } from "../support/seed.ts";
import { callsOf, type Damage, playDamage, rest } from "./support/damage-run.ts";
import { onDisk, ROOMY } from "./support/disk.ts";
import { type Mount, STATE } from "./support/mount.ts";
import { queueOf } from "./support/one-world.ts";
import { withPower } from "./support/power.ts";
import { bytesOf, runProgram, sourceOf, textOf } from "./support/programs.ts";
import { rowsOf } from "./support/rows.ts";
import type { Fault } from "./support/transport.ts";
import { gatewayTree, readFile, treeOf } from "./support/tree.ts";
import { createWorld, type World, type WorldOptions } from "./support/world.ts";

describe("the gateway's data are set back", () => {
  const file = (path: string, text: string) => `${path} file ${createHash("sha256").update(text).digest("hex")}`;

  /** The local file behind a name. */
  const liveFileOf = ({ process, name: of }: Mount, name: string) => {
    if (process === undefined) throw new Error(`${of} is down`);
    return createLayout(process.files, STATE).cacheFile(
      kernelNodeId(rowsOf(process.database).inode(name)?.kernelNodeId ?? 0),
    );
  };

  /** Twice the settle time, and some looks. */
  const SETTLED_MS = 11 * 60_000;

  const tablesOf = (store: Connection) =>
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

  async function begin(
    mounts: readonly string[] = ["alpha"],
    more: Pick<WorldOptions, "tokenSeconds" | "engine"> = {},
  ) {
    const rules: { choose: (request: HttpRequest) => Fault | undefined } = { choose: () => undefined };
    const world = await createWorld({
      seed: 1,
      mounts,
      settings: { pollMs: 5_000 },
      sabotage: { choose: (request) => rules.choose(request) },
      ...more,
    });
    const [mount, other] = world.mounts;
    if (mount === undefined) throw new Error("no mount");
    const calls = (of: Mount | undefined = mount) => {
      if (of?.process === undefined) throw new Error("the mount is down");
      return of.process.kernel;
    };
    const { outside, workspace } = world;
    return {
      world,
      rules,
      mount,
      other,
      calls,
      root: workspace.root,
      save: async (path: string, text: string) => {
        const fd = await world.run(calls().open(path, { create: true, write: true, truncate: true }));
        await world.run(calls().write(fd, 0, Buffer.from(text)));
        await world.run(calls().close(fd));
      },
      tree: (of: Mount | undefined = mount) => world.run(treeOf(calls(of), { withContent: true })),
      remote: () => world.run(gatewayTree(outside, workspace.root)),
      make: (parent: string, name: string, text: string) => world.run(outside.upload(parent, name, sourceOf(text))),
    };
  }

  const shown = (tree: ReadonlyMap<string, { kind: string; content: string }>) =>
    [...tree].map(([path, { kind, content }]) => `${path} ${kind} ${content}`).sort();

  /** Where that is does not depend on when. */
  const CONFLICT = / \(conflict, \w+, [-\d. ]+\)/;

  test.each(["while it is up", "while it is down"])(
    "%s: names and places are those of the older data, and local contents are kept",
    async (when) => {
      const { world, mount, save, root, tree, remote, make } = await begin();
      const { outside } = world;
      const d = await world.run(outside.createFolder(root, "d"));
      const e = await world.run(outside.createFolder(d.id, "e"));
      const a = await make(d.id, "a", "one");
      const b = await make(e.id, "b", "kept");
      const c = await make(root, "c", "to move");
      await tree();
      const restore = backup(world);

      await world.run(outside.writeContent(a.id, sourceOf("two, lost")));
      await world.run(outside.deleteNode(b.id));
      await world.run(outside.patchNode(c.id, { parentId: e.id, name: "moved" }));
      await make(d.id, "new", "lost");
      await save("d/own", "acknowledged, lost");
      await world.clock.advance(60_000);
      expect(shown(await tree())).toEqual(shown(await remote()));
      expect((await tree()).size).toBe(6);

      if (when === "while it is down") await world.run(mount.stop());
      restore();
      if (when === "while it is down") await world.run(mount.start());
      await world.clock.advance(SETTLED_MS);
      expect(shown(await tree())).toEqual(shown(await remote()));
      expect(shown(await tree()).map((line) => line.replace(CONFLICT, " (conflict)"))).toEqual([
        file("c", "to move"),
        "d folder ",
        file("d/a (conflict)", "two, lost"),
        file("d/a", "one"),
        "d/e folder ",
        file("d/e/b", "kept"),
        file("d/new", "lost"),
        file("d/own", "acknowledged, lost"),
      ]);

      // Nothing is left behind: what comes now is followed as ever.
      await world.run(outside.writeContent(a.id, sourceOf("three")));
      await make(e.id, "later", "x");
      await world.clock.advance(30_000);
      expect(shown(await tree())).toEqual(shown(await remote()));
      world.check();
    },
  );

  test("a file that was deleted here is back with the older data, and deleted once more it stays away", async () => {
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

  test("a folder that is gone too is made again for the files in it", async () => {
    const { world, mount, save, calls, tree, remote } = await begin();
    const restore = backup(world);
    await world.run(calls().mkdir("d"));
    await world.run(calls().mkdir("d/e"));
    await world.run(calls().mkdir("empty"));
    await save("d/e/f", "lost");
    await world.clock.advance(60_000);
    restore();
    await world.clock.advance(60_000);
    const engine = mount.process?.engine ?? expect.unreachable("the mount is down");
    const waiting = (await world.run(queueOf(engine))).map(({ why }) => why);
    expect(waiting).toEqual([expect.stringMatching(/^the gateway does not find it any more/)]);
    await world.clock.advance(2 * SETTLED_MS);
    expect(shown(await tree())).toEqual(["d folder ", "d/e folder ", file("d/e/f", "lost")]);
    expect(shown(await remote())).toEqual(shown(await tree()));
    world.check();
  });

  test("a file that two mounts have is made again once", async () => {
    const { world, save, other, tree, remote } = await begin(["alpha", "beta"]);
    const restore = backup(world);
    await save("f", "lost");
    await world.clock.advance(60_000);
    expect(shown(await tree(other))).toEqual([file("f", "lost")]);
    restore();
    await world.clock.advance(2 * SETTLED_MS);
    expect(shown(await remote())).toEqual([file("f", "lost")]);
    expect([shown(await tree()), shown(await tree(other))]).toEqual([[file("f", "lost")], [file("f", "lost")]]);
    world.check();
  });

  test("a file that is open for writing without a change is not lost, and readers go on", async () => {
    const { world, save, calls, tree, remote } = await begin();
    const restore = backup(world);
    await save("f", "lost");
    await world.clock.advance(60_000);
    const writer = await world.run(calls().open("f", { write: true }));
    const reader = await world.run(calls().open("f", {}));
    restore();
    await world.clock.advance(60_000);
    expect((await world.run(calls().read(reader, 0, 100))).toString()).toBe("lost");
    await world.run(calls().close(writer));
    await world.clock.advance(SETTLED_MS);
    expect((await world.run(calls().read(reader, 0, 100))).toString()).toBe("lost");
    await world.run(calls().close(reader));
    expect(shown(await remote())).toEqual([file("f", "lost")]);
    expect(shown(await tree())).toEqual([file("f", "lost")]);
    world.check();
  });

  test("of a linked file the name whose node is gone is made again, and the file has the content that is left", async () => {
    const { world, save, calls, tree, remote } = await begin();
    await save("f", "kept");
    await world.clock.advance(60_000);
    const restore = backup(world);
    await world.run(calls().link("f", "g"));
    await world.clock.advance(60_000);
    restore();
    await world.clock.advance(2 * SETTLED_MS);
    expect(shown(await remote())).toEqual(shown(await tree()));
    expect(shown(await tree())).toEqual([file("f", "kept"), file("g", "kept")]);
    world.check();
  });

  test.each(["the gateway does not answer for a while", "the mount dies"])(
    "%s while nodes are compared: nothing is forgotten",
    async (what) => {
      const { world, rules, mount, save, tree, remote } = await begin();
      const restore = backup(world);
      for (const name of ["a", "b", "c"]) await save(name, `${name}, lost`);
      await world.clock.advance(60_000);
      let asked = 0;
      rules.choose = (request) => {
        if (request.method !== "GET" || !/\/nodes\/[-0-9a-f]{36}$/.test(request.path)) return undefined;
        asked += 1;
        return asked > 1 && asked < 20 ? "silent-before" : undefined;
      };
      restore();
      for (let waited = 0; asked < 2 && waited < 60_000; waited += 100) await world.clock.advance(100);
      expect(asked).toBeGreaterThanOrEqual(2);
      if (what === "the mount dies") {
        mount.crash();
        asked = 20;
        await world.run(mount.start());
      }
      await world.clock.advance(3 * SETTLED_MS);
      const all = [file("a", "a, lost"), file("b", "b, lost"), file("c", "c, lost")];
      expect(shown(await remote())).toEqual(all);
      expect(shown(await tree())).toEqual(all);
      world.check();
    },
  );

  test("a local file whose bytes have changed on the disk is not sent", async () => {
    const { world, mount, save, remote } = await begin();
    const restore = backup(world);
    await save("f", "lost");
    await world.clock.advance(60_000);
    const file = await world.run(mount.files().open(liveFileOf(mount, "f"), "r+"));
    await world.run(file.write(Buffer.from("\0\0\0\0"), 0));
    await world.run(file.close());
    restore();
    await world.clock.advance(2 * SETTLED_MS);
    expect(shown(await remote())).toEqual([]);
  });

  /** The words of the log line with which a mount begins anew. */
  const ANOTHER = "data were set back";

  test.each(["while it is up", "while it is down"])(
    "%s: other clients have made the journal longer than it was: the rollback is noticed all the same",
    async (when) => {
      const { world, mount, save, root, tree, remote, make } = await begin();
      const restore = backup(world);
      await save("f", "lost");
      await make(root, "theirs", "lost too");
      await tree();
      await world.clock.advance(60_000);
      if (when === "while it is down") await world.run(mount.stop());
      restore();
      for (let count = 0; count < 20; count += 1) await make(root, `new-${count}`, "new");
      if (when === "while it is down") await world.run(mount.start());
      await world.clock.advance(2 * SETTLED_MS);
      const all = shown(await tree());
      expect(all).toEqual(shown(await remote()));
      expect(all.length).toBe(22);
      expect(all).toEqual(
        expect.arrayContaining([file("f", "lost"), file("theirs", "lost too"), file("new-19", "new")]),
      );
      world.check();
    },
  );

  test.each(["made", "changed"])(
    "a file that was %s last, acknowledged, and lost before the journal showed it is kept",
    async (what) => {
      const { world, save, root, tree, remote, make } = await begin();
      if (what === "changed") await save("f", "before");
      await make(root, "first", "there");
      await world.clock.advance(60_000);
      const restore = backup(world);
      world.setLag({ path: 0, journal: 120_000, id: 0 });
      await save("f", "lost");
      await world.clock.advance(5_000);
      expect(shown(await remote())).toContain(file("f", "lost"));
      restore();
      for (let count = 0; count < 5; count += 1) await make(root, `new-${count}`, "new");
      await world.clock.advance(2 * SETTLED_MS);
      const names = shown(await tree()).map((line) => line.replace(CONFLICT, " (conflict)"));
      expect(shown(await tree())).toEqual(shown(await remote()));
      expect(names).toContain(file(what === "made" ? "f" : "f (conflict)", "lost"));
      expect(world.lines.filter((line) => line.includes(ANOTHER)).length).toBe(1);
      world.check();
    },
  );

  test("a restart of the gateway or of the mount is no rollback", async () => {
    const { world, mount, save, root, remote, tree, make } = await begin();
    for (const name of ["a", "b"]) await save(name, name);
    await make(root, "theirs", "there");
    await world.clock.advance(60_000);
    world.setLag({ path: 5_000, journal: 30_000, id: 1_000 });
    await save("c", "c");
    await world.clock.advance(2_000);
    world.restartGateway();
    await world.clock.advance(10_000);
    await world.run(mount.stop());
    world.restartGateway();
    await world.run(mount.start());
    await save("d", "d");
    await world.clock.advance(1_000);
    world.restartGateway();
    await world.clock.advance(SETTLED_MS);
    expect(world.lines.filter((line) => line.includes(ANOTHER))).toEqual([]);
    expect(shown(await tree())).toEqual(shown(await remote()));
    world.check();
  });

  const plain = (tree: ReadonlyMap<string, { kind: string; content: string }>) =>
    shown(tree).map((line) => line.replace(CONFLICT, " (conflict)"));

  /** Until it is noticed: the questions are under way. */
  async function noticed(world: World): Promise<void> {
    for (let waited = 0; !world.lines.some((line) => line.includes(ANOTHER)); waited += 10) {
      if (waited >= 60_000) throw new Error("not noticed");
      await world.clock.advance(10);
    }
  }

  test("a local file that cannot be read keeps neither the other files nor the journal from going on", async () => {
    const { world, mount, save, root, remote, make } = await begin();
    const restore = backup(world);
    for (const name of ["a", "b"]) await save(name, `${name}, lost`);
    await world.clock.advance(60_000);
    const path = new RegExp(`${liveFileOf(mount, "a")}$`);
    mount.process?.files.fail({ path, code: "EIO", on: ["hash"], times: Number.POSITIVE_INFINITY });
    restore();
    await make(root, "later", "x");
    await world.clock.advance(6 * SETTLED_MS);
    expect(plain(await remote())).toEqual(expect.arrayContaining([file("b", "b, lost"), file("later", "x")]));
  });

  test("a gateway that fails now and then while nodes are compared is asked for the rest", async () => {
    const { world, rules, save, remote } = await begin();
    const restore = backup(world);
    for (let index = 0; index < 100; index += 1) await save(`f${index}`, `lost ${index}`);
    await world.clock.advance(60_000);
    let asked = 0;
    rules.choose = ({ method, path }) => {
      if (method !== "GET" || !/\/nodes\/[-0-9a-f]{36}$/.test(path)) return undefined;
      asked += 1;
      return asked % 20 === 0 ? "unavailable" : undefined;
    };
    restore();
    await world.clock.advance(60 * 60_000);
    expect((await remote()).size).toBe(100);
  });

  test("while nodes are compared nothing is evicted, and no drain ends", async () => {
    let available = ROOMY;
    const { world, mount, save, remote } = await begin(["alpha"], {
      engine: (files) => onDisk(files, () => available),
    });
    const restore = backup(world);
    for (const name of ["a", "b", "c"]) await save(name, `${name}, lost`);
    await world.clock.advance(60_000);
    mount.weather.latencyMs = 3_000;
    restore();
    await noticed(world);
    // From here on the cache is to make room at each look at the disk.
    available = 0;
    const drained = mount.process?.engine.drain({ settle: false, signal: new AbortController().signal });
    expect(await world.run(drained ?? Promise.reject(new Error("down")), 3_600_000)).toMatchObject({ drained: true });
    expect(plain(await remote())).toEqual(["a", "b", "c"].map((name) => file(name, `${name}, lost`)));
    world.check();
  });

  test("other clients change a file before the loss of a newer version is noticed: the acknowledged content is kept", async () => {
    const { world, mount, root, save, remote, make } = await begin();
    await save("f", "before");
    await make(root, "first", "there");
    await world.clock.advance(60_000);
    const restore = backup(world);
    world.setLag({ path: 0, journal: 120_000, id: 0 });
    await save("f", "ours, lost");
    await world.clock.advance(3_000);
    await save("n", "new, lost");
    await world.clock.advance(3_000);
    mount.weather.isOffline = true;
    restore();
    world.setLag({ path: 0, journal: 0, id: 0 });
    const [node] = (await world.run(world.outside.listFolder(root, { name: "f" }))).items;
    for (const text of ["theirs 1", "theirs 2"])
      await world.run(world.outside.writeContent(node?.id ?? "", sourceOf(text)));
    for (let count = 0; count < 10; count += 1) await make(root, `new-${count}`, "new");
    await world.clock.advance(10_000);
    mount.weather.isOffline = false;
    await world.clock.advance(3 * SETTLED_MS);
    const kept = [file("f (conflict)", "ours, lost"), file("f", "theirs 2"), file("n", "new, lost")];
    expect(plain(await remote())).toEqual(expect.arrayContaining(kept));
    world.check();
  });

  test("writing for long while the journal is always late is no rollback", async () => {
    // One connection for all that time.
    const { world, save, tree, remote } = await begin(["alpha"], { tokenSeconds: 3_600 });
    world.setLag({ path: 0, journal: 3_000, id: 0 });
    for (let elapsed = 0, count = 0; elapsed < 2 * SETTLED_MS; elapsed += 1_000, count += 1) {
      await save(`f${count % 5}`, `save ${count}`);
      await world.clock.advance(1_000);
    }
    expect(world.lines.filter((line) => line.includes(ANOTHER))).toEqual([]);
    await world.clock.advance(60_000);
    expect(shown(await tree())).toEqual(shown(await remote()));
    world.check();
  });

  test.each([
    ["the token is refused", { refusal: 401 }],
    ["the account is refused", { refusal: 403 }],
    ["the gateway is not reached", { isOffline: true }],
  ] as const)(
    "a journal that is not heard for long, as %s, is no rollback, and a drain waits for it",
    async (_, trouble) => {
      const { world, mount, save, tree, remote } = await begin(["alpha"], { tokenSeconds: 3_600 });
      world.setLag({ path: 3_000, journal: 3_000, id: 0 });
      await world.clock.advance(10_000);
      await save("f", "the journal has not told of this one");
      await world.clock.advance(2_000);
      Object.assign(mount.weather, trouble);
      await save("f", "nor of this one");
      await world.clock.advance(SETTLED_MS);
      Object.assign(mount.weather, { refusal: undefined, isOffline: false });
      const { engine } = mount.process ?? expect.unreachable("the mount is down");
      // A person who sees the refused change has it tried again.
      await world.run(engine.retry());
      const drained = await world.run(engine.drain({ settle: true, signal: new AbortController().signal }));
      expect(drained).toEqual({ drained: true, left: [] });
      expect(world.lines.filter((line) => line.includes(ANOTHER))).toEqual([]);
      expect(shown(await remote())).toEqual([file("f", "nor of this one")]);
      expect(shown(await tree())).toEqual(shown(await remote()));
      world.check();
    },
  );

  test("a live journal that never shows an acknowledged write means a rollback", async () => {
    const { world, save } = await begin(["alpha"], { tokenSeconds: 3_600 });
    await world.clock.advance(10_000);
    world.setLag({ path: 0, journal: 4 * SETTLED_MS, id: 0 });
    await save("f", "never told");
    await world.clock.advance(SETTLED_MS / 4);
    expect(world.lines.filter((line) => line.includes(ANOTHER))).toEqual([]);
    await world.clock.advance(SETTLED_MS);
    expect(world.lines.filter((line) => line.includes(ANOTHER))).not.toEqual([]);
  });
});

describe("the rows of a mount are lost, damaged or old", () => {
  const RUNS = Number(process.env.SIM_RUNS ?? 1);

  const DAMAGES: readonly Damage[] = (["copy", "none", "behind"] as const).flatMap((rows) =>
    (["whole", "damaged", "gone"] as const).flatMap((list) =>
      [true, false].flatMap((isDrained) =>
        (["crash", "stop"] as const).map((ends): Damage => ({ rows, list, isDrained, ends })),
      ),
    ),
  );

  /**
   * Rows that nothing says are old are found to be only by the list, and only after a crash. How it ended matters
   * little else.
   */
  const isPlayed = ({ rows, list, ends }: Damage) => (list === "whole" && rows !== "behind") || ends === "crash";

  const isFound = ({ rows, list }: Damage) => rows !== "behind" || list === "whole";

  describe.each(DAMAGES.filter(isPlayed).filter(isFound))(
    "rows: $rows, dirty-file log: $list, drained: $isDrained, $ends",
    (damage) => {
      test("nothing is lost or doubled", async () => {
        for (let index = 0; index < RUNS; index += 1) {
          const seed = SEED * 1000 + index;
          expect(await playDamage(seed, damage), `seed ${seed}`).toEqual([]);
        }
      });
    },
  );

  /** The daemon dies, and another one starts with these rows. */
  async function startsWith(world: World, mount: Mount, rows: ReturnType<Mount["copyRows"]>): Promise<void> {
    mount.crash();
    mount.replaceRows(rows, "a test took them away");
    mount.weather.isOffline = false;
    await world.run(mount.start());
    await rest(world, mount);
  }

  test("bytes written into missing ranges after the rows were copied are not overwritten by a fetch", async () => {
    const world = await createWorld({ seed: SEED, mounts: ["alpha"] });
    const [mount] = world.mounts;
    if (mount?.process === undefined) throw new Error("no mount");
    const origin = bytesOf("far", 300_000);
    await world.run(world.outside.upload(world.workspace.root, "far", sourceOf(origin)));
    await world.clock.advance(5_000);
    const { kernel } = mount.process;
    const handle = await world.run(kernel.open("far", { write: true }));
    mount.weather.isOffline = true;
    await world.run(kernel.write(handle, 0, Buffer.alloc(4096, "1")));
    const copy = mount.copyRows();
    await world.run(kernel.write(handle, 204_800, Buffer.alloc(4096, "2")));

    await startsWith(world, mount, copy);
    const wanted = Buffer.from(origin);
    wanted.fill("1", 0, 4096).fill("2", 204_800, 208_896);
    expect((await world.run(readFile(callsOf(mount), "far"))).equals(wanted)).toBe(true);
  });

  test("power loss takes the end of the dirty-file log, and later the rows are damaged: a file that the log lacks is not removed", async () => {
    const power = withPower();
    const world = await createWorld({ seed: SEED, mounts: ["alpha"], ...power.options });
    const [mount] = world.mounts;
    if (mount === undefined) throw new Error("no mount");
    const copy = mount.copyRows();
    await world.run(callsOf(mount).list(""));
    mount.weather.isOffline = true;
    const list = await mount.files().open("/state/staged", "r+");
    const { size } = await list.stat();
    await world.run(runProgram(callsOf(mount), { do: "save", path: "a", size: 50 }, "one"));
    power.lose(mount, { keepsRows: true });
    await (await mount.files().open("/state/staged", "r+")).truncate(size);
    await world.run(mount.start());
    await startsWith(world, mount, copy);
    expect(await world.run(readFile(callsOf(mount), "a"))).toEqual(bytesOf("one", 50));
  });

  /** Replaced offline in a new file, so that rows from before do not know it; and the rows are taken away. */
  async function replaced(how: "crash" | "power loss", meanwhile: (world: World) => Promise<unknown> = async () => {}) {
    const power = withPower();
    const world = await createWorld({ seed: SEED, mounts: ["alpha"], ...power.options });
    const [mount] = world.mounts;
    if (mount === undefined) throw new Error("no mount");
    await world.run(runProgram(callsOf(mount), { do: "save", path: "a", size: 50 }, "old"));
    await rest(world, mount);
    const copy = mount.copyRows();
    mount.weather.isOffline = true;
    await world.run(runProgram(callsOf(mount), { do: "replace", path: "a", size: 60 }, "new"));
    await meanwhile(world);
    if (how === "crash") mount.crash();
    else power.lose(mount, { keepsRows: true });
    mount.replaceRows(how === "crash" ? undefined : copy, "a test took them away");
    mount.weather.isOffline = false;
    return { world, mount };
  }

  /** Names with their contents; of a name for what was kept only that it is one. */
  async function contentsIn(world: World, mount: Mount) {
    const names = await world.run(callsOf(mount).list(""));
    const contents = names.map(async (name) => {
      const content = await world.run(readFile(callsOf(mount), name));
      return [name.replace(/ \(recovered.*| \d+ \(recovered.*/, " (recovered)"), content.toString("latin1")] as const;
    });
    return Object.fromEntries(await Promise.all(contents));
  }

  test("recovered content replaces the version it was written over, and no other", async () => {
    const theirs = "theirs";
    for (const isChanged of [false, true]) {
      const { world, mount } = await replaced("crash", async ({ outside, workspace, run }) => {
        if (!isChanged) return;
        const [node] = (await run(outside.listFolder(workspace.root))).items;
        const source = sourceOf(theirs);
        await run(outside.writeContent(node?.id ?? "", source));
      });
      await world.run(mount.start());
      await rest(world, mount);
      const news = textOf("new", 60);
      expect(await contentsIn(world, mount)).toEqual(isChanged ? { a: theirs, "a (recovered)": news } : { a: news });
    }
  });

  test("after power loss recovered content replaces nothing, and a file that the log lacks is not removed", async () => {
    for (const isTold of [true, false]) {
      const { world, mount } = await replaced("power loss");
      if (!isTold) {
        const list = await mount.files().open("/state/staged", "r+");
        const lines = Buffer.alloc((await list.stat()).size);
        await list.read(lines, 0, lines.length, 0);
        await list.truncate(lines.indexOf("\n") + 1);
      }
      await world.run(mount.start());
      await rest(world, mount);
      const name = isTold ? "a (recovered)" : "file (recovered)";
      expect(await contentsIn(world, mount)).toEqual({ a: textOf("old", 50), [name]: textOf("new", 60) });
    }
  });

  test.each([
    { isSent: false, ends: { a: bytesOf("theirs", 40), "a (conflict)": bytesOf("late", 40) } },
    { isSent: true, ends: { a: bytesOf("theirs", 40) } },
  ])(
    "rows as they were when a program had written to a detached file: its content is kept if it is still to be sent (sent: $isSent)",
    async ({ isSent, ends }) => {
      const world = await createWorld({ seed: SEED, mounts: ["alpha"] });
      const [mount] = world.mounts;
      if (mount?.process === undefined) throw new Error("no mount");
      const { kernel } = mount.process;
      await world.run(runProgram(kernel, { do: "save", path: "a", size: 40 }, "old"));
      await rest(world, mount);
      const [node] = (await world.run(world.outside.listFolder(world.workspace.root))).items;
      const fd = await world.run(kernel.open("a", { write: true }));
      await world.run(world.outside.writeContent(node?.id ?? "", sourceOf(bytesOf("theirs", 40))));
      await world.clock.advance(3_000);
      await world.run(kernel.write(fd, 0, bytesOf("late", 40)));
      const copy = mount.copyRows();
      await world.run(kernel.close(fd));
      if (isSent) {
        await rest(world, mount);
        const copies = (await world.run(kernel.list(""))).filter((name) => name.includes("conflict"));
        for (const name of copies) await world.run(kernel.unlink(name));
        await rest(world, mount);
      }
      await startsWith(world, mount, copy);
      const shown = Object.entries(await contentsIn(world, mount)).map(([name, text]) => [
        name.replace(/ \(conflict, .*\)/, " (conflict)"),
        text,
      ]);
      const wanted = Object.entries(ends).map(([name, bytes]) => [name, bytes.toString("latin1")]);
      expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(wanted));
      world.check();
    },
  );

  test("damage that the write-back loop meets does not count as a mistake of one row", async () => {
    const world = await createWorld({ seed: SEED, mounts: ["alpha"] });
    const running = world.mounts[0]?.process;
    if (running === undefined) throw new Error("no mount");
    await world.run(runProgram(running.kernel, { do: "save", path: "a", size: 50 }, "one"));
    running.database.function("damaged", () => {
      throw new SqliteError("database disk image is malformed", "SQLITE_CORRUPT");
    });
    running.database.exec("CREATE TEMP TRIGGER damaged BEFORE INSERT ON main.attempt BEGIN SELECT damaged(); END");
    await world.clock.advance(60_000);
    expect(running.engine.status().paused).toContain("is damaged");
    expect(world.lines.filter((line) => line.includes("write-back of a node failed"))).toEqual([]);
  });

  test("once rows turn out to be damaged, changes are refused and nothing is sent", async () => {
    const told: unknown[] = [];
    const world = await createWorld({
      seed: SEED,
      mounts: ["alpha"],
      engine: () => ({ onDamage: (error) => void told.push(error) }),
    });
    const running = world.mounts[0]?.process;
    if (running === undefined) throw new Error("no mount");
    const { kernel, database, engine } = running;
    await world.run(runProgram(kernel, { do: "save", path: "a", size: 50 }, "one"));
    const before = world.position();
    // As SQLite says it of a page that is none.
    const damaged = () => {
      throw new SqliteError("database disk image is malformed", "SQLITE_CORRUPT");
    };
    database.function("damaged", damaged);
    database.exec("CREATE TEMP TRIGGER damaged BEFORE UPDATE ON main.inode BEGIN SELECT damaged(); END");
    await expect(world.run(runProgram(kernel, { do: "save", path: "a", size: 60 }, "two"))).rejects.toThrow("EIO");
    database.exec("DROP TRIGGER damaged");

    await expect(world.run(kernel.mkdir("d"))).rejects.toThrow("EIO");
    await expect(world.run(kernel.unlink("a"))).rejects.toThrow("EIO");
    expect(await world.run(kernel.list(""))).toContain("a");
    await world.clock.advance(60_000);
    expect(world.position()).toBe(before);
    expect(engine.status().paused).toContain("is damaged");
    expect(told).toHaveLength(1);
  });
});
