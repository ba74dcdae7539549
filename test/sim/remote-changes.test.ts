/**
 * Changes of other clients come in as a whole, in order and once, however late lists, journal and ids are, whatever
 * attributes they have, and where the content is the one that was here. At plain gateways they are found by lists and
 * by the clock.
 */
import { describe, expect, test } from "vitest";
import { ATTRIBUTES_BYTES_MAX } from "../../src/contract/attributes.ts";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { PLAIN, PLAINEST } from "../support/features.ts";
import { SEED } from "../support/seed.ts";
import type { EngineHook, Process } from "./support/mount.ts";
import { begin, type OneWorld, there } from "./support/one-world.ts";
import { bytesOf, runProgram, sourceOf, textOf } from "./support/programs.ts";
import { rowsOf } from "./support/rows.ts";
import { readFile, TAG, treeOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

describe("many renames at once", () => {
  type Rename = readonly [from: string, to: string];

  const CASES: readonly { what: string; folders: readonly string[]; renames: readonly Rename[] }[] = [
    {
      what: "a ring of two",
      folders: ["a", "b"],
      renames: [
        ["a", "t"],
        ["b", "a"],
        ["t", "b"],
      ],
    },
    {
      what: "a ring of four",
      folders: ["a", "b", "c", "d"],
      renames: [
        ["d", "t"],
        ["c", "d"],
        ["b", "c"],
        ["a", "b"],
        ["t", "a"],
      ],
    },
    {
      what: "a chain",
      folders: ["a", "b", "c", "d"],
      renames: [
        ["d", "e"],
        ["c", "d"],
        ["b", "c"],
        ["a", "b"],
      ],
    },
    {
      what: "a folder and one in it change places",
      folders: ["a", "a/b"],
      renames: [
        ["a/b", "t"],
        ["a", "t/b"],
        ["t", "a"],
      ],
    },
  ];

  /** Every path with what tells one folder from another: the mark it was made with. From the rows, as they are now. */
  function marked({ database }: Process): string {
    const entries = database.prepare("SELECT parent, name, inode FROM entry WHERE parent <> inode").all() as {
      readonly parent: number;
      readonly name: string;
      readonly inode: number;
    }[];
    const pathOf = (inode: number): string => {
      const entry = entries.find((one) => one.inode === inode);
      return entry === undefined ? "" : `${pathOf(entry.parent)}/${entry.name}`;
    };
    const markOf = (inode: number) => {
      const mark = rowsOf(database).attributes(inode).xattrs?.[TAG] ?? "";
      return Buffer.from(mark, "base64").toString();
    };
    return entries
      .map(({ inode }) => `${pathOf(inode)} was ${markOf(inode)}`)
      .sort()
      .join(", ");
  }

  test.each(CASES)("$what: shown in one transaction", async ({ folders, renames }) => {
    /** What the rows of beta show after each transaction, once it is looked at. */
    let seen: Set<string> | undefined;
    const world = await createWorld({
      seed: SEED,
      mounts: ["alpha", "beta"],
      onStep({ name, process }, label) {
        if (name === "beta" && label === "rows: committed" && process !== undefined) seen?.add(marked(process));
      },
    });
    const [alpha, beta] = world.mounts;
    const [here, there] = [alpha?.process, beta?.process];
    if (beta === undefined || here === undefined || there === undefined) throw new Error("two mounts");
    const settle = async () => {
      const limit = new AbortController();
      expect(await world.run(here.engine.drain({ settle: true, signal: limit.signal }))).toMatchObject({
        drained: true,
      });
    };
    for (const path of folders) {
      await world.run(here.kernel.mkdir(path));
      await world.run(runProgram(here.kernel, { do: "setxattr", path }, path));
    }
    await settle();
    await world.clock.advance(5_000);
    await world.run(treeOf(there.kernel, { withContent: false }));
    const before = marked(there);
    expect(before).toBe(marked(here));

    beta.weather.isOffline = true;
    for (const [from, to] of renames) await world.run(here.kernel.rename(from, to));
    await settle();
    const after = marked(here);
    expect(after).not.toBe(before);

    seen = new Set();
    beta.weather.isOffline = false;
    await world.clock.advance(30_000);
    world.check();
    expect([...seen].filter((one) => one !== before)).toEqual([after]);
  });
});

describe("ids that are not found yet, and late lists", () => {
  const READERS = [
    { who: "the journal is followed", isListed: true },
    { who: "a late listing catches up", isListed: false },
  ];

  test.each(READERS)(
    "$who, and the id of a new node answers 404 for a moment: the node is not lost",
    async ({ isListed }) => {
      const it = await begin();
      const { outside, workspace } = it.world;
      if (isListed) expect(await it.names()).toEqual([]);
      it.world.setLag({ path: isListed ? 0 : 60_000, journal: 0, id: 10_000 });
      await it.world.run(outside.createFolder(workspace.root, "d"));
      await it.until(() => it.rows().cursor() >= it.world.position());
      expect(await it.names()).toEqual([]);
      await it.again("crash");
      await it.world.clock.advance(25_000);
      expect(await it.names()).toEqual(["d"]);
    },
  );

  test("an id that answers 404 before the journal shows anything: gone after the settle time, restarts or not", async () => {
    const it = await begin();
    const { outside, clock } = it.world;
    await it.drain();
    it.world.setLag({ path: 0, journal: 3_600_000, id: 0 });
    await it.save("a");
    await it.untilSent();
    const [node] = await it.nodes();
    await it.world.run(outside.deleteNode(node?.id ?? ""));
    const id = node?.id ?? "";
    it.mount.crash((rows) => void rows.prepare("INSERT INTO reread (node_id, due) VALUES (?, 0)").run(id));
    await it.world.run(it.mount.start());
    await clock.advance(150_000);
    expect(await it.names()).toEqual(["a"]);
    await it.again("crash");
    await clock.advance(100_000);
    expect(await it.names()).toEqual(["a"]);
    await it.again("crash");
    // Five minutes after the first 404, whatever was between.
    await clock.advance(60_000);
    expect(await it.names()).toEqual([]);
    expect(it.rows().tombstone(node?.id ?? "")).toMatchObject({ position: null });
    it.world.setLag({ path: 0, journal: 0, id: 0 });
    await clock.advance(5_000);
    expect(it.rows().tombstone(node?.id ?? "")).not.toMatchObject({ position: null });
  });

  test("a node moved away before its id is found is not taken for gone by a listing of where it was", async () => {
    const it = await begin();
    const { outside, clock } = it.world;
    await it.world.run(it.calls().mkdir("d"));
    await it.world.run(it.calls().mkdir("e"));
    await it.drain();
    it.world.setLag({ path: 0, journal: 3_600_000, id: 30_000 });
    await it.save("d/a");
    await it.untilSent();
    const [d, e] = await it.nodes();
    const [a] = (await it.world.run(outside.listFolder(d?.id ?? ""))).items;
    await it.world.run(outside.patchNode(a?.id ?? "", { parentId: e?.id ?? "" }));
    // The folder is listed again, as after its rows were given up.
    it.mount.crash(
      (rows) => void rows.exec("UPDATE inode SET listed = NULL WHERE id IN (SELECT inode FROM entry WHERE name = 'd')"),
    );
    await it.world.run(it.mount.start());
    const tree = async () => [...(await it.world.run(treeOf(it.calls(), { withContent: true }))).keys()];
    expect(await tree()).toEqual(["d", "d/a", "e"]);
    expect(
      it
        .rows()
        .rereads()
        .map(({ nodeId }) => nodeId),
    ).toContain(a?.id);
    await clock.advance(60_000);
    expect(await tree()).toEqual(["d", "e", "e/a"]);
    it.world.setLag({ path: 0, journal: 0, id: 0 });
    await it.ends(["d", "e", "e/a"]);
  });

  test("a deletion several entries past the followed position is remembered until the index is past it", async () => {
    const it = await begin();
    const { outside, workspace, clock } = it.world;
    await it.save("a");
    await it.save("b");
    // Not looked into yet: a list of either says how far the gateway's lists are.
    for (const name of ["x", "y"]) await it.world.run(outside.createFolder(workspace.root, name));
    await it.drain();
    await clock.advance(5_000);
    expect(await it.names()).toEqual(["a", "b", "x", "y"]);
    it.world.setLag({ path: 8_000, journal: 0, id: 0 });
    const [a, b] = (await it.nodes()).map((node) => node.id);
    // Offline meanwhile, so that one page of the journal tells all of it.
    it.mount.weather.isOffline = true;
    await clock.advance(3_000);
    for (const mode of [0o600, 0o640, 0o600]) await it.world.run(outside.patchNode(b ?? "", { attributes: { mode } }));
    await clock.advance(6_000);
    const { position } = await it.world.run(outside.deleteNode(a ?? ""));
    it.mount.weather.isOffline = false;
    await it.until(() => it.rows().tombstone(a ?? "") !== undefined);
    expect(it.rows().tombstone(a ?? "")).toMatchObject({ position });
    // Listings show what was before the deletion, and later what comes after it.
    const shown = async () => (await it.world.run(outside.listFolder(workspace.root, { pageSize: 1 }))).asOf;
    let asOf = await shown();
    for (; asOf <= position - 4; asOf = await shown()) await clock.advance(100);
    expect(asOf).toBeLessThan(position);
    expect(await it.world.run(it.calls().list("x"))).toEqual([]);
    expect(it.rows().indexed()).toBe(asOf);
    await it.world.run(outside.patchNode(b ?? "", { attributes: { mode: 0o644 } }));
    await clock.advance(2_000);
    expect(it.rows().cursor()).toBeGreaterThan(position);
    expect(it.rows().tombstone(a ?? "")).toMatchObject({ position });
    await it.ends(["b", "x", "y"]);
    expect(await it.world.run(it.calls().list("y"))).toEqual([]);
    expect(it.rows().indexed()).toBe(it.world.position());
    await it.world.run(outside.patchNode(b ?? "", { attributes: { mode: 0o600 } }));
    await clock.advance(15_000);
    expect(it.rows().tombstone(a ?? "")).toBeUndefined();
  });
});

describe("extended attributes set elsewhere", () => {
  const NAMES = ["tag", "user.", "security.capability", "user.two\0names", `user.${"ä".repeat(126)}`];

  test("those that no program can name are not listed, and stay as they are at the gateway", async () => {
    const it = await begin();
    const { outside, clock } = it.world;
    await it.save("a");
    await it.drain();
    const node = async () => {
      const [first] = await it.nodes();
      if (first === undefined) throw new Error("a");
      return first;
    };
    const theirs = Object.fromEntries(
      ["user.note", `user.${"ä".repeat(125)}`, ...NAMES].map((name) => [name, "dGhlaXJz"]),
    );
    await it.world.run(outside.patchNode((await node()).id, { attributes: { xattrs: theirs } }));
    await clock.advance(5_000);
    expect(await it.world.run(it.calls().listxattr("a"))).toEqual(["user.note", `user.${"ä".repeat(125)}`]);
    expect(await it.world.run(it.calls().getxattr("a", "user.note"))).toBe("theirs");
    await it.world.run(it.calls().setxattr("a", "user.ours", "ours"));
    await it.drain();
    expect((await node()).attributes.xattrs).toEqual({ ...theirs, "user.ours": "b3Vycw==" });
  });

  test("more than the gateway takes is refused by setxattr, and nothing is parked; a node filled elsewhere stays writable", async () => {
    const it = await begin();
    const { outside, workspace, clock } = it.world;
    await it.save("a");
    await it.drain();
    const node = async () => (await it.world.run(outside.listFolder(workspace.root))).items[0];
    const set = async (name: string, bytes: number) => {
      try {
        await it.world.run(it.calls().setxattr("a", `user.${name}`, "x".repeat(bytes)));
        return "set";
      } catch (error) {
        return Object(error).code;
      }
    };
    const results: unknown[] = [];
    for (const name of ["a", "b", "c", "d", "e"]) results.push(await set(name, 12_000));
    expect(results).toEqual(["set", "set", "set", "set", "ENOSPC"]);
    // In the place of another there is room.
    expect(await set("a", 11_000)).toBe("set");
    await it.world.run(it.calls().chmod("a", 0o600));
    await it.drain();
    const names = ["user.a", "user.b", "user.c", "user.d"];
    expect(Object.keys((await node())?.attributes.xattrs ?? {})).toEqual(names);

    const { id = "", attributes } = (await node()) ?? {};
    const rest = ATTRIBUTES_BYTES_MAX - JSON.stringify({ xattrs: attributes?.xattrs, note: "" }).length;
    await it.world.run(outside.patchNode(id, { attributes: { note: "x".repeat(rest) } }));
    await clock.advance(5_000);
    expect([await set("f", 1), await set("b", 12_001)]).toEqual(["ENOSPC", "ENOSPC"]);
    await it.save("a");
    await it.world.run(it.calls().chmod("a", 0o640));
    await it.world.run(it.calls().utimens("a", 1_000_000));
    await it.drain();
    expect(it.engine().status().parked).toBe(0);
    expect((await node())?.attributes).toMatchObject({ mode: 0o640, note: "x".repeat(rest) });
  });
});

describe("saved elsewhere with the bytes it had", () => {
  const CALLER = { uid: 0, gid: 0, pid: 1, umask: 0o22, signal: new AbortController().signal };

  const READING = { read: true, write: false, append: false, truncate: false, exclusive: false };

  const HEARD_MS = 5_000;

  const BYTES = Buffer.from("the same bytes, twice");

  /** Known here and open, none of it read, when it is saved once more. */
  async function savedAgain(features: Features) {
    const world = await createWorld({ seed: 1, mounts: ["alpha"], features });
    const [mount] = world.mounts;
    if (mount?.process === undefined) throw new Error("no mount");
    const { kernel, engine, database } = mount.process;
    const source = sourceOf(BYTES);
    const node = await world.run(world.outside.upload(world.workspace.root, "a", source));
    await world.clock.advance(HEARD_MS);
    await world.run(kernel.list(""));
    const id = kernelNodeId(rowsOf(database).inode("a")?.kernelNodeId ?? 0);
    const { handle } = await world.run(engine.fileSystem.open(CALLER, id, READING));
    await world.run(world.outside.writeContent(node.id, source));
    await world.clock.advance(HEARD_MS);
    /** Of the file that is open here, what has not been fetched. */
    const missing = () => database.prepare("SELECT missing FROM live WHERE lineage = ?").pluck().get(id);
    return { world, kernel, engine, handle, missing };
  }

  for (const features of [ALL_FEATURES, PLAIN]) {
    const where = features.isFull ? "" : ", where only heads can be read";
    test(`a program that has it open reads it${where}`, async () => {
      const { world, engine, handle, missing } = await savedAgain(features);
      expect(missing()).not.toBe("[]");
      expect(Buffer.from(await world.run(engine.fileSystem.read(CALLER, handle, 0, 100)))).toEqual(BYTES);
      await world.run(engine.fileSystem.release(handle));
      expect(missing()).toBe("[]");
      world.check();
    });

    test(`a program that opens it later reads it${where}`, async () => {
      const { world, kernel, engine, handle } = await savedAgain(features);
      await world.run(engine.fileSystem.release(handle));
      expect(await world.run(readFile(kernel, "a"))).toEqual(BYTES);
      world.check();
    });
  }

  test("made here and elsewhere with the same bytes, it can be evicted", async () => {
    const it = await begin({}, { settings: { cacheLimit: 0 } });
    const { world, mount } = it;
    const { outside, workspace } = world;
    await it.names();
    mount.weather.isOffline = true;
    await it.save("a", "same");
    await world.run(outside.upload(workspace.root, "a", sourceOf(bytesOf("same", 40))));
    expect(it.engine().status().cacheBytes).toBeGreaterThan(0);
    mount.weather.isOffline = false;
    await world.clock.advance(60_000);
    expect(await it.names()).toEqual(["a"]);
    expect(it.rows().inode("a")?.content).toBe("clean");
    // The cache may hold nothing, which is looked at when something comes into it.
    await world.run(outside.upload(workspace.root, "b", sourceOf(bytesOf("another", 40))));
    await world.clock.advance(5_000);
    await it.content("b");
    await world.clock.advance(5_000);
    expect(it.engine().status().cacheBytes).toBe(0);
    expect(await it.content("a")).toBe(textOf("same"));
    world.check();
  });
});

const POLL_MS = 5_000;

const KINDS = [
  { what: "plain", features: PLAIN },
  { what: "the plainest", features: PLAINEST },
];

describe("a plain gateway: a node is not found for a while", () => {
  /** What is written has settled. */
  const OLD_MS = 6 * 60_000;

  /** Files `a` and `b`, known for long. */
  async function known(features: Features) {
    const it = await begin({}, { features, settings: { pollMs: POLL_MS } });
    const { world, calls } = it;
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
    const remote = async () => [...(await there(world)).keys()].sort();
    await it.save("a", "first");
    await it.save("b", "other");
    await world.run(calls().chmod("a", 0o600));
    await world.clock.advance(OLD_MS);
    const mode = async (path: string) => (await world.run(treeOf(calls(), { withContent: false }))).get(path)?.mode;
    return { ...it, hide, remote, mode };
  }

  /** Several rounds of looking. */
  const MOMENT_MS = 25_000;

  test.each(KINDS)("$what: a file that is not found for a moment stays as it is", async ({ features }) => {
    const it = await known(features);
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

  test.each(KINDS)("$what: a file that is changed meanwhile is not another file", async ({ features }) => {
    const it = await known(features);
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

  test.each(KINDS)("$what: a file that is deleted elsewhere goes within a minute", async ({ features }) => {
    const it = await known(features);
    const node = (await it.nodes()).find(({ name }) => name === "a");
    await it.world.run(it.world.outside.deleteNode(node?.id ?? ""));
    await it.world.clock.advance(60_000);
    expect([await it.names(), await it.remote()]).toEqual([["b"], ["b"]]);
    it.world.check();
  });
});

describe("a plain gateway: a folder is removed elsewhere with all in it", () => {
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

  test.each(KINDS)("$what: the folder goes, with all in it", async ({ features }) => {
    const { world, calls } = await begin({ engine: refuseGone }, { features, settings: { pollMs: POLL_MS } });
    const { outside, workspace } = world;
    const tree = async () => [...(await world.run(treeOf(calls(), { withContent: false }))).keys()];
    const d = await world.run(outside.createFolder(workspace.root, "d"));
    const e = await world.run(outside.createFolder(d.id, "e"));
    const f = await world.run(outside.upload(e.id, "f", NOTHING));
    // The root may have been listed before they were made.
    await world.clock.advance(4 * POLL_MS);
    expect(await tree()).toEqual(["d", "d/e", "d/e/f"]);
    for (const node of [f, e, d]) await world.run(outside.deleteNode(node.id));
    await world.clock.advance(GONE_MS);
    expect(await tree()).toEqual([]);
    world.check();
  });
});

describe("a plain gateway: the clock is set", () => {
  const HOUR = 3_600_000;

  /** Longer than the settle time, and some rounds of looking. */
  const SETTLED_MS = 7 * 60_000;

  /** Deletes at the gateway what is there under this name. */
  async function remove({ world }: OneWorld, name: string): Promise<void> {
    const { items } = await world.run(world.outside.listFolder(world.workspace.root, { name }));
    const [node] = items;
    if (node === undefined) throw new Error(`there is no ${name}`);
    await world.run(world.outside.deleteNode(node.id, { ifRevision: node.revision }));
  }

  test("a file written while the clock was ahead is seen to go", async () => {
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

  test("a removed file stays away when the clock was ahead before", async () => {
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

  test("a removed file stays away when the clock goes ahead then", async () => {
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

  test("rows of a release that had the wall clock's time for positions: a file written then is seen to go", async () => {
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
