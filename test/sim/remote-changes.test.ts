/** What others change comes in as a whole, in order and once, however late lists, journal and ids are. */
import { describe, expect, test } from "vitest";
import { ATTRIBUTES_BYTES_MAX } from "../../src/contract/attributes.ts";
import { SEED } from "../support/seed.ts";
import type { Process } from "./support/mount.ts";
import { begin } from "./support/one-world.ts";
import { runProgram } from "./support/programs.ts";
import { rowsOf } from "./support/rows.ts";
import { TAG, treeOf } from "./support/tree.ts";
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

  test.each(CASES)("$what of renames", async ({ folders, renames }) => {
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

  test.each(READERS)("$who, and an id told of answers 404 for a moment: the news is not lost", async ({ isListed }) => {
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
  });

  test("an id that answers 404 before the journal tells anything: gone after the settle time, restarts or not", async () => {
    const it = await begin();
    const { outside, workspace, clock } = it.world;
    await it.drain();
    it.world.setLag({ path: 0, journal: 3_600_000, id: 0 });
    await it.save("a");
    await it.untilSent();
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
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
    const { outside, workspace, clock } = it.world;
    await it.world.run(it.calls().mkdir("d"));
    await it.world.run(it.calls().mkdir("e"));
    await it.drain();
    it.world.setLag({ path: 0, journal: 3_600_000, id: 30_000 });
    await it.save("d/a");
    await it.untilSent();
    const [d, e] = (await it.world.run(outside.listFolder(workspace.root))).items;
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

  test("a deletion told several entries after the cursor is remembered until the index is past it", async () => {
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

  test("those that no program can ask for are not listed, and stay what they are at the gateway", async () => {
    const it = await begin();
    const { outside, workspace, clock } = it.world;
    await it.save("a");
    await it.drain();
    const node = async () => {
      const [first] = (await it.world.run(outside.listFolder(workspace.root))).items;
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
