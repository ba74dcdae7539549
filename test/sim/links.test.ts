/**
 * Hard links: a file with several names, each of which is a node of its own at the gateway. All mounts show one file,
 * whichever of its nodes is written, copied, removed or changed by a client without links, also when it is changed on
 * two mounts at once, when its writer stops half-way, and where requests, mounts and the journal are late. No saved
 * content is lost or taken for what replaced another file.
 */
import { describe, expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN, without } from "../support/features.ts";
import { playHistory } from "./support/history.ts";
import { beginLinked, halfUpdated, type LinkedWorld, oneFile } from "./support/linked-world.ts";
import type { EngineHook, Mount, Sabotage } from "./support/mount.ts";
import { createOracle } from "./support/oracle.ts";
import { bytesOf, type Program, runProgram, sourceOf } from "./support/programs.ts";
import { isContentWrite, refuseReferences } from "./support/requests.ts";
import type { Step } from "./support/steps.ts";
import { hashOf, readFile, treeOf } from "./support/tree.ts";
import { beginTwo, LEASES_MS } from "./support/two-world.ts";
import { watchedRows } from "./support/watched-rows.ts";
import { createWorld, type World } from "./support/world.ts";

const SIZE = 40;

const hash = (label: string) => hashOf(bytesOf(label, SIZE));

describe("one file by all its names", () => {
  test("a file linked on one mount is one file on the other, known there before or not", async () => {
    const it = await beginLinked();
    it.beta.weather.isOffline = true;
    await it.save(it.alpha, "a", "one");
    await it.drain(it.alpha);
    await it.link(it.alpha, "a", "b");
    await it.drain(it.alpha);
    it.beta.weather.isOffline = false;
    await it.world.clock.advance(5_000);
    oneFile("one")(await it.shown(it.beta));
    await it.save(it.beta, "b", "two");
    await it.drain(it.beta);
    await it.world.clock.advance(5_000);
    oneFile("two")(await it.shown(it.alpha));
    // Known before it was linked.
    await it.world.run(it.calls(it.alpha).unlink("b"));
    await it.save(it.alpha, "c", "three");
    await it.world.clock.advance(10_000);
    expect((await it.shown(it.beta)).map(({ name, links }) => [name, links])).toEqual([
      ["a", 1],
      ["c", 1],
    ]);
    await it.link(it.beta, "c", "d");
    await it.drain(it.beta);
    await it.world.clock.advance(10_000);
    expect((await it.shown(it.alpha)).map(({ name, links }) => [name, links])).toEqual([
      ["a", 1],
      ["c", 2],
      ["d", 2],
    ]);
  });

  test("a name that a client without links writes is a file of its own from then on, on both mounts", async () => {
    const it = await beginLinked();
    await it.save(it.alpha, "a", "old");
    await it.link(it.alpha, "a", "b");
    await it.drain(it.alpha);
    await it.world.clock.advance(3_000);
    oneFile("old")(await it.shown(it.beta));
    const source = sourceOf("outside;");
    const [, b] = await it.nodes();
    await it.world.run(it.world.outside.writeContent(b?.id ?? "", source));
    await it.world.clock.advance(LEASES_MS);
    for (const mount of [it.alpha, it.beta]) {
      expect((await it.shown(mount)).map(({ name, text, links }) => [name, text, links])).toEqual([
        ["a", "old", 1],
        ["b", "outside", 1],
      ]);
    }
    await it.save(it.alpha, "a", "newer");
    await it.drain(it.alpha);
    await it.world.clock.advance(LEASES_MS);
    expect((await it.shown(it.beta)).map(({ text }) => text)).toEqual(["newer", "outside"]);
  });

  test("a copy made by the gateway is a file of its own", async () => {
    const it = await beginLinked();
    await it.save(it.alpha, "a", "old");
    await it.link(it.alpha, "a", "b");
    await it.drain(it.alpha);
    const [a] = await it.nodes();
    const { root } = it.world.workspace;
    await it.world.run(it.world.outside.copyNode(root, "c", { copyOf: a?.id ?? "" }));
    await it.world.clock.advance(5_000);
    for (const mount of [it.alpha, it.beta]) {
      expect((await it.shown(mount)).map(({ name, links }) => [name, links])).toEqual([
        ["a", 2],
        ["b", 2],
        ["c", 1],
      ]);
    }
  });

  /** Rows written while something is done. */
  async function rowsWritten(mount: Mount, work: () => Promise<unknown>): Promise<number> {
    const database = mount.process?.database;
    const total = () => database?.prepare("SELECT total_changes() AS total").pluck().get() as number;
    const before = total();
    await work();
    return total() - before;
  }

  test("one more name costs a file of many names no more than one of few, where it is made and where it arrives", async () => {
    const it = await beginLinked();
    const { alpha, beta, world } = it;
    await it.save(alpha, "a", "a");
    await it.link(alpha, "a", "b");
    await it.drain(alpha);
    await world.clock.advance(5_000);
    await world.run(it.calls(beta).stat("a"));
    const made: number[] = [];
    const arrived: number[] = [];
    for (const count of [10, 60]) {
      const names = (await world.run(it.calls(alpha).list(""))).length;
      for (let more = names; more < count; more += 1) await it.link(alpha, "a", `${more}`);
      await it.drain(alpha);
      await world.clock.advance(LEASES_MS);
      made.push(await rowsWritten(alpha, () => it.link(alpha, "a", `last of ${count}`)));
      const heard = async () => {
        await it.drain(alpha);
        await world.clock.advance(5_000);
      };
      arrived.push(await rowsWritten(beta, heard));
    }
    expect((await world.run(it.calls(beta).stat("a"))).links).toBeGreaterThan(60);
    expect([made[1], arrived[1]]).toEqual([made[0], arrived[0]]);
  });

  test("a name made while another mount saves the file has the saved content", async () => {
    const it = await beginLinked();
    await it.save(it.alpha, "a", "old");
    await it.link(it.alpha, "a", "b");
    await it.drain(it.alpha);
    await it.world.run(it.calls(it.beta).list(""));
    await it.world.clock.advance(5_000);
    it.alpha.weather.latencyMs = 200;
    await it.save(it.beta, "a", "new");
    await it.link(it.alpha, "a", "c");
    await it.world.clock.advance(3_000);
    expect(it.changes.lastIndexOf("alpha POST")).toBeGreaterThan(it.changes.indexOf("beta PUT"));
    await it.world.clock.advance(LEASES_MS);
    for (const mount of [it.alpha, it.beta]) {
      const shown = await it.shown(mount);
      expect(shown.map(({ name, text, links }) => [name, text, links])).toEqual([
        ["a", "new", 3],
        ["b", "new", 3],
        ["c", "new", 3],
      ]);
    }
    expect(new Set((await it.nodes()).map(({ contentHash }) => contentHash)).size).toBe(1);
  });

  /**
   * Beta knows nothing newer than "old" of a linked file. Alpha has saved "new", and beta puts one name of that file in
   * place of another file.
   */
  async function putInPlaceMeanwhile(it: LinkedWorld): Promise<void> {
    await it.save(it.alpha, "a", "old");
    await it.link(it.alpha, "a", "b");
    await it.save(it.alpha, "t", "other");
    await it.drain(it.alpha);
    await it.world.clock.advance(5_000);
    await it.world.run(it.calls(it.beta).list(""));
    it.world.setLag({ path: 0, journal: 20_000, id: 0 });
    await it.save(it.alpha, "b", "new");
    await it.world.clock.advance(5_000);
    await it.world.run(it.calls(it.beta).rename("a", "t"));
    await it.world.clock.advance(LEASES_MS);
  }

  async function everyName(it: LinkedWorld, text: string): Promise<void> {
    for (const mount of [it.alpha, it.beta]) {
      const shown = await it.shown(mount);
      expect(shown.map(({ name, text, links }) => [name, text, links])).toEqual([
        ["b", text, 2],
        ["t", text, 2],
      ]);
    }
    expect(new Set((await it.nodes()).map(({ contentHash }) => contentHash)).size).toBe(1);
  }

  test("a name that replaces another file, while another mount saves the linked one, has the saved content", async () => {
    const it = await beginLinked();
    await putInPlaceMeanwhile(it);
    await everyName(it, "new");
  });

  test("where references are refused, a name that replaces another file has the saved content too", async () => {
    const it = await beginLinked({ request: refuseReferences });
    await putInPlaceMeanwhile(it);
    await everyName(it, "new");
  });

  test("an attribute that is set elsewhere while the file is linked is there by both names", async () => {
    const it = await beginLinked();
    await it.save(it.alpha, "a", "old");
    await it.drain(it.alpha);
    await it.world.run(it.calls(it.beta).list(""));
    // The new name has its node; that they are one file is not said yet.
    it.rules.choose = ({ method, body }) =>
      method === "PATCH" && JSON.stringify(body).includes('"link"') ? "failed" : undefined;
    await it.link(it.beta, "a", "b");
    await it.world.clock.advance(3_000);
    expect(it.changes).toContain("beta POST");
    await it.world.run(it.calls(it.alpha).setxattr("a", "user.tag", "set meanwhile"));
    await it.drain(it.alpha);
    it.rules.choose = () => undefined;
    await it.drain(it.beta);
    // Before the other mount has the link lease, which would take it away.
    await it.world.clock.advance(5_000);
    for (const { attributes } of await it.nodes()) expect(Object.keys(attributes.xattrs ?? {})).toEqual(["user.tag"]);
    await it.world.clock.advance(LEASES_MS);
    for (const mount of [it.alpha, it.beta]) {
      for (const name of ["a", "b"]) {
        expect(await it.world.run(it.calls(mount).getxattr(name, "user.tag"))).toBe("set meanwhile");
      }
    }
  });

  test("a node without extended attributes and one with an empty list of them count as equal", async () => {
    const it = await beginLinked();
    it.beta.weather.isOffline = true;
    await it.save(it.alpha, "a", "old");
    await it.link(it.alpha, "a", "b");
    await it.drain(it.alpha);
    const [first] = await it.nodes();
    if (first === undefined) throw new Error("a");
    await it.world.run(it.world.outside.patchNode(first.id, { attributes: { xattrs: {} } }));
    it.beta.weather.isOffline = false;
    await it.world.clock.advance(10_000);
    oneFile("old")(await it.shown(it.beta));
    it.changes.length = 0;
    await it.world.clock.advance(4 * LEASES_MS);
    expect(it.changes).toEqual([]);
  });

  test("two names that another client turns into a symlink by their attributes alone stay one file when a program here sets its time", async () => {
    const it = await beginLinked();
    await it.save(it.alpha, "a", "old");
    await it.link(it.alpha, "a", "b");
    await it.drain(it.alpha);
    for (const { id } of await it.nodes()) {
      await it.world.run(it.world.outside.patchNode(id, { attributes: { type: "symlink", target: "elsewhere" } }));
    }
    await it.world.clock.advance(LEASES_MS);
    await it.world.run(it.calls(it.beta).utimens("a", 1_000));
    await it.drain(it.beta);
    await it.world.clock.advance(LEASES_MS);
    it.world.check();
    const old = hash("old");
    expect((await it.nodes()).map(({ contentHash, attributes }) => [contentHash, attributes.link?.hash])).toEqual([
      [old, old],
      [old, old],
    ]);
    for (const mount of [it.alpha, it.beta]) {
      for (const name of ["a", "b"]) {
        expect(await it.world.run(it.calls(mount).readlink(name))).toBe("elsewhere");
        expect((await it.world.run(it.calls(mount).stat(name))).links).toBe(2);
      }
    }
  });

  describe("a symlink whose node has bytes, because another client made it of a file by its attributes", () => {
    async function symlinkWithBytes() {
      const it = await beginLinked();
      await it.save(it.alpha, "with-bytes", "old");
      await it.drain(it.alpha);
      const [node] = await it.nodes();
      const attributes = { type: "symlink", target: "elsewhere" } as const;
      await it.world.run(it.world.outside.patchNode(node?.id ?? "", { attributes }));
      await it.world.clock.advance(LEASES_MS);
      expect(await it.world.run(it.calls(it.alpha).readlink("with-bytes"))).toBe("elsewhere");
      return it;
    }

    /** Both mounts show these symlinks, by name, with their targets and numbers of names. */
    async function bothShow(
      it: LinkedWorld,
      symlinks: Readonly<Record<string, readonly [target: string, links: number]>>,
    ) {
      await it.drain(it.alpha);
      await it.world.clock.advance(LEASES_MS);
      it.world.check();
      expect((await it.nodes()).map(({ name }) => name).sort()).toEqual(Object.keys(symlinks).sort());
      for (const mount of [it.alpha, it.beta]) {
        for (const [name, shown] of Object.entries(symlinks)) {
          const target = await it.world.run(it.calls(mount).readlink(name));
          expect([name, target, (await it.world.run(it.calls(mount).stat(name))).links]).toEqual([name, ...shown]);
        }
      }
    }

    test("another name for it is a name of the same file", async () => {
      const it = await symlinkWithBytes();
      await it.link(it.alpha, "with-bytes", "other");
      await bothShow(it, { "with-bytes": ["elsewhere", 2], other: ["elsewhere", 2] });
    });

    for (const [from, to, target] of [
      ["with-bytes", "plain", "elsewhere"],
      ["plain", "with-bytes", "of here"],
    ] as const) {
      test(`${from} moved over ${to}: the target is kept, the other name goes, and the drain ends`, async () => {
        const it = await symlinkWithBytes();
        await it.world.run(it.calls(it.alpha).symlink("of here", "plain"));
        await it.drain(it.alpha);
        await it.world.run(it.calls(it.alpha).rename(from, to));
        await bothShow(it, { [to]: [target, 1] });
      });
    }
  });

  test("one name is removed and the other written here: the removed one stays away, as the other node has its newer content", async () => {
    const it = await beginLinked();
    await halfUpdated(it, () => it.shown(it.beta));
    await it.world.clock.advance(3_000);
    const [first, second] = await it.nodes();
    if (first === undefined || second === undefined) throw new Error("two nodes");
    const behind = first.modifiedAt < second.modifiedAt ? first : second;
    const ahead = behind === first ? second : first;
    it.beta.weather.isOffline = true;
    it.rules.choose = () => undefined;
    await it.drain(it.alpha);
    expect((await it.nodes()).map(({ contentHash }) => contentHash)).toEqual([ahead.contentHash, ahead.contentHash]);
    await it.world.run(it.calls(it.beta).unlink(behind.name));
    await it.save(it.beta, ahead.name, "mine");
    it.beta.weather.isOffline = false;
    await it.drain(it.beta);
    await it.world.clock.advance(LEASES_MS);
    expect((await it.nodes()).map(({ name }) => name)).toEqual([ahead.name]);
    for (const mount of [it.alpha, it.beta]) {
      expect(await it.shown(mount)).toMatchObject([{ name: ahead.name, text: "mine", links: 1 }]);
    }
  });

  test("the names are removed elsewhere while the file is changed here: the name made there gets the change, and a drain waits for it", async () => {
    const it = await beginLinked();
    const { world, alpha, beta, calls } = it;
    await it.save(alpha, "a", "old");
    await it.link(alpha, "a", "b");
    await it.drain(alpha);
    await world.clock.advance(4_000);
    await world.run(calls(beta).list(""));
    alpha.weather.isOffline = true;
    await it.save(alpha, "a", "new");
    await it.link(beta, "a", "c");
    await it.drain(beta);
    for (const name of ["a", "b"]) await world.run(calls(beta).unlink(name));
    await it.drain(beta);
    const [made] = await it.nodes();
    let tries = 0;
    it.rules.choose = ({ method, path }) => {
      if (!isContentWrite({ method, path }) || !path.includes(made?.id ?? "?")) return undefined;
      tries += 1;
      return tries <= 3 ? "lost-before" : undefined;
    };
    alpha.weather.isOffline = false;
    await it.drain(alpha);
    const [kept, ...others] = await it.nodes();
    expect([kept?.name, others]).toEqual(["c", []]);
    expect(kept?.contentHash).toBe(hash("new"));
  });

  test.each([
    ["a gateway without attributes", without("attributes")],
    ["a gateway without hashes", without("hashes")],
    ["a plain gateway", PLAIN],
  ])("at %s no file can be linked", async (_, features) => {
    const it = await beginLinked({ features });
    await it.save(it.alpha, "a", "a");
    await expect(it.link(it.alpha, "a", "b")).rejects.toMatchObject({ code: "EPERM" });
    await it.drain(it.alpha);
    expect((await it.nodes()).map(({ name }) => name)).toEqual(["a"]);
  });

  test.each(["written", "removed"] as const)(
    "at a plain gateway, one name of a file that other clients linked is %s elsewhere: the other can be read",
    async (how) => {
      const it = await beginLinked({ features: PLAIN });
      const { outside, workspace } = it.world;
      const bytes = bytesOf("old", 40);
      const link = { group: "others", hash: hashOf(bytes) };
      for (const name of ["a", "b"]) {
        await it.world.run(outside.upload(workspace.root, name, sourceOf(bytes), { attributes: { link } }));
      }
      await it.world.clock.advance(3_000);
      expect((await it.world.run(it.calls(it.alpha).stat("a"))).links).toBe(2);
      const [a] = await it.nodes();
      if (a === undefined) throw new Error("a is gone");
      if (how === "written") await it.world.run(outside.writeContent(a.id, sourceOf(bytesOf("new", 40)), {}));
      else await it.world.run(outside.deleteNode(a.id, { ifRevision: a.revision }));
      await it.world.clock.advance(LEASES_MS);
      const shown = (await it.shown(it.alpha)).map(({ name, text, links }) => [name, text, links]);
      expect(shown).toEqual(
        how === "written"
          ? [
              ["a", "new", 1],
              ["b", "old", 1],
            ]
          : [["b", "old", 1]],
      );
      await it.drain(it.alpha);
    },
  );
});

describe("more names for a file that is open", () => {
  /** Both mounts know `a`, which has one name so far. */
  async function begin() {
    const it = await beginTwo();
    const { world, alpha, beta, run, drain, calls, nodes, rules } = it;
    await run(alpha, { do: "save", path: "a", size: SIZE }, "one");
    await drain(alpha);
    await world.clock.advance(LEASES_MS);
    const before = await world.run(calls(beta).stat("a"));
    expect(before.links).toBe(1);
    const a = (await nodes())[0]?.id ?? "?";
    return {
      ...it,
      before,
      stat: (name: string) => world.run(calls(beta).stat(name)),
      /** Each of the names arrives at the gateway only once the one before has been heard of. */
      async link(order: readonly string[]) {
        let arrived = 0;
        rules.choose = ({ method, path, body }) => {
          if (method === "GET") return undefined;
          const of = order.findIndex((name) =>
            name === "a" ? path.includes(a) : JSON.stringify(body ?? "").includes(`"${name}"`),
          );
          return of > arrived ? "failed" : undefined;
        };
        for (const to of order) if (to !== "a") await world.run(calls(alpha).link("a", to));
        for (; arrived < order.length; arrived += 1) await world.clock.advance(20_000);
        rules.choose = () => undefined;
        await drain(alpha);
        await world.clock.advance(5_000);
      },
    };
  }

  const ORDERS = [
    ["hl", "a"],
    ["a", "hl"],
    ["hl", "hm", "a"],
    ["hl", "a", "hm"],
    ["a", "hl", "hm"],
  ] as const;

  test.each(ORDERS.map((order) => ({ what: order.join(", "), order })))(
    "linked elsewhere, and shown in the order $what: an open descriptor is the file that all its names show",
    async ({ order }) => {
      const { world, beta, calls, before, stat, link, drain, labelOf } = await begin();
      const at = calls(beta);
      const fd = await world.run(at.open("a", {}));
      await link(order);
      const now = { inode: before.inode, links: order.length, size: before.size };
      expect(await world.run(at.fstat(fd))).toMatchObject(now);
      for (const name of order) expect(await stat(name)).toMatchObject(now);
      world.check();
      // Bytes that this mount appends by any name of the file are read through the handle that was open before.
      for (const [index, name] of order.entries()) {
        const writer = await world.run(at.open(name, { write: true, append: true }));
        await world.run(at.write(writer, 0, Buffer.from("+")));
        await world.run(at.close(writer));
        const { size } = await world.run(at.fstat(fd));
        expect(size).toBe(before.size + index + 1);
        expect((await world.run(at.read(fd, size - 1, 10))).toString()).toBe("+");
      }
      await world.run(at.close(fd));
      await drain(beta);
      await world.clock.advance(2 * LEASES_MS);
      for (const mount of world.mounts) for (const name of order) expect(await labelOf(mount, name)).toBe("one");
      world.check();
    },
  );
});

describe("a file of 250 names", () => {
  const NAMES = 250;

  const ENTRY_OR_NODE = /^SELECT .*(FROM|JOIN) (entry|node)\b/s;

  /** So many rows are looked at, a name that is heard of: a few, not one for each of the others. */
  const LOOKS = 12;

  const MARKED = /^UPDATE turn SET reached/;

  async function begin() {
    let puts = 0;
    /** How many rows of names and of their nodes each mount has looked at. */
    const looks = new Map<string, number>();
    const watch = { onMarked: () => {} };
    const engine: EngineHook = (_, rows, { settings: { hostName } }) => {
      let isMarked = false;
      const database = watchedRows(rows, (sql, count) => {
        if (ENTRY_OR_NODE.test(sql)) looks.set(hostName, (looks.get(hostName) ?? 0) + count);
        if (MARKED.test(sql)) isMarked = true;
        if (sql !== "COMMIT" || !isMarked) return;
        isMarked = false;
        watch.onMarked();
      });
      return { database };
    };
    const it = await beginTwo({
      engine,
      onAnswer: (_, request, { status }) => {
        if (isContentWrite(request) && status < 300) puts += 1;
      },
    });
    const { world, alpha, beta, run, calls, drain } = it;
    await run(alpha, { do: "save", path: "n0", size: 20 }, "old");
    for (let name = 1; name < NAMES; name += 1) await run(alpha, { do: "link", path: "n0", to: `n${name}` });
    await drain(alpha);
    expect(await world.run(calls(beta).list(""))).toHaveLength(NAMES);
    await world.clock.advance(LEASES_MS);
    const before = puts;
    /** Nodes that got what was saved since. */
    return { ...it, sent: () => puts - before, watch, countLooks };

    function countLooks({ name }: Mount): () => number {
      const first = looks.get(name) ?? 0;
      return () => (looks.get(name) ?? 0) - first;
    }
  }

  test("a save looks at each name a few times, however many there are", async () => {
    const { world, alpha, beta, run, drain, labelOf } = await begin();
    // Most of them are remembered: by the statements that are run a look at all of them at each change would not be
    // seen.
    const { nodes, entries } = beta.process?.engine.context.metadata ?? expect.unreachable("beta is down");
    let looked = 0;
    const { ofEntry } = nodes;
    const { ofInode } = entries;
    nodes.ofEntry = (entry) => {
      looked += 1;
      return ofEntry(entry);
    };
    entries.ofInode = (inode) => {
      const names = ofInode(inode);
      looked += names.length;
      return names;
    };
    await run(alpha, { do: "save", path: "n0", size: 20 }, "new");
    await drain(alpha);
    await world.clock.advance(10_000);
    expect(await labelOf(beta, `n${NAMES - 1}`)).toBe("new");
    expect(looked).toBeGreaterThan(NAMES);
    expect(looked).toBeLessThan(LOOKS * NAMES);
  });

  const REMOVED = [
    { what: "the gateway has", offline: false },
    { what: "was not sent yet", offline: true },
  ];

  test.each(REMOVED)(
    "names of a file that $what are removed one by one: none looks at all the others",
    async (given) => {
      const { world, alpha, run, nodes, drain, countLooks } = await begin();
      alpha.weather.isOffline = given.offline;
      if (given.offline) await run(alpha, { do: "save", path: "n0", size: 20 }, "new");
      const looks = countLooks(alpha);
      const names = Array.from({ length: NAMES }, (_, name) => `n${name}`);
      for (const path of names) await run(alpha, { do: "unlink", path });
      expect(looks()).toBeLessThan(LOOKS * NAMES);
      alpha.weather.isOffline = false;
      await world.clock.advance(60_000);
      await drain(alpha);
      expect(await nodes()).toEqual([]);
    },
  );

  test("the mount that saved it goes offline half-way: once its link lease is over another mount updates the rest, also when that dies meanwhile", async () => {
    const { world, alpha, beta, rules, run, rows, sent, labelOf, watch } = await begin();
    rules.choose = (request) => (isContentWrite(request) && sent() >= NAMES / 2 ? "failed" : undefined);
    await run(alpha, { do: "save", path: "n0", size: 20 }, "new");
    await world.clock.advance(20_000);
    alpha.weather.isOffline = true;
    rules.choose = () => undefined;
    expect(sent()).toBeGreaterThanOrEqual(NAMES / 2);
    expect(sent()).toBeLessThan(NAMES);

    // Its names are marked in slices: it dies after the first.
    watch.onMarked = () => beta.crash();
    expect(rows(beta).linkLeases()).toBe(1);
    await world.clock.advance(LEASES_MS);
    expect(beta.process).toBeUndefined();
    watch.onMarked = () => {};
    await world.run(beta.start());
    await world.clock.advance(20_000);
    expect(sent()).toBe(NAMES);
    expect(await labelOf(beta, `n${NAMES - 1}`)).toBe("new");
    expect(rows(beta).linkLeases()).toBe(0);
    world.check();
  });
});

describe("two mounts save a file by different names", () => {
  /**
   * Alpha's save has arrived as `a`, beta's as `b`, `c` is as before; the networks of both are down. `hasSeen`: gamma
   * knew the file.
   */
  async function begin(hasSeen: boolean) {
    const faults: string[] = [];
    const arrived = new Set<string>();
    let isSaving = false;
    let nodeOfA = "";
    let nodeOfB = "";
    const oracle = createOracle(
      () => world.store,
      (what) => faults.push(what),
    );
    const world: World = await createWorld({
      seed: 1,
      mounts: ["alpha", "beta", "gamma"],
      sabotage: {
        choose({ method, path, body }) {
          if (!isSaving || !isContentWrite({ method, path })) return undefined;
          const isAlphas = JSON.stringify(body).includes(hash("alpha's"));
          return path.includes(isAlphas ? nodeOfA : nodeOfB) ? "none" : "failed";
        },
      },
      onAnswer(mount, request, answer) {
        oracle.onAnswer(mount, request, answer);
        if (!isSaving || !isContentWrite(request) || answer.status >= 300) return;
        arrived.add(mount.name);
        if (arrived.size === 2) for (const one of [alpha, beta]) one.weather.isOffline = true;
      },
    });
    const [alpha, beta, gamma] = world.mounts as [Mount, Mount, Mount];
    const calls = (mount: Mount) => {
      if (mount.process === undefined) throw new Error("the mount is down");
      return oracle.watch(mount, mount.process.kernel);
    };
    const run = (mount: Mount, what: Program, label = "") => world.run(runProgram(calls(mount), what, label));
    const nodes = async () => {
      const { items } = await world.run(world.outside.listFolder(world.workspace.root));
      return new Map(items.map((node) => [node.name, node]));
    };
    /** By name, the beginning of what a mount shows. */
    const shown = async (mount: Mount) => {
      const names = await world.run(calls(mount).list(""));
      const texts = await Promise.all(names.map((name) => world.run(readFile(calls(mount), name))));
      return Object.fromEntries(
        names.map((name, at) => [name, `${texts[at]?.toString("latin1").replace(/;.*/s, "")}`] as const),
      );
    };

    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    for (const to of ["b", "c"]) await run(alpha, { do: "link", path: "a", to });
    await world.clock.advance(5_000);
    await shown(beta);
    if (hasSeen) await shown(gamma);
    await world.clock.advance(LEASES_MS);
    nodeOfA = (await nodes()).get("a")?.id ?? "";
    nodeOfB = (await nodes()).get("b")?.id ?? "";
    isSaving = true;
    await run(alpha, { do: "save", path: "a", size: SIZE }, "alpha's");
    await run(beta, { do: "save", path: "b", size: SIZE }, "beta's");
    await world.clock.advance(2_000);
    expect(arrived.size).toBe(2);
    isSaving = false;
    expect(await shown(gamma)).toMatchObject({ a: "alpha's", b: "beta's" });
    return {
      world,
      gamma,
      run: (what: Program) => run(gamma, what, "gamma's"),
      shown: () => shown(gamma),
      /** By name, the contents at the gateway, as far as they are among those saved here. */
      async contents() {
        const labels = new Map(["old", "alpha's", "beta's", "gamma's"].map((label) => [hash(label), label]));
        return new Map([...(await nodes())].map(([name, { contentHash }]) => [name, labels.get(contentHash ?? "")]));
      },
      /** What all show in the end. */
      async come() {
        for (const one of [alpha, beta]) one.weather.isOffline = false;
        await world.clock.advance(2 * LEASES_MS);
        world.check();
        expect(faults).toEqual([]);
        const all = await shown(gamma);
        for (const one of [alpha, beta]) expect(await shown(one)).toEqual(all);
        return Object.values(all);
      },
    };
  }

  const LOOKS: readonly (readonly [what: string, hasSeen: boolean])[] = [
    ["a mount that knew the file", true],
    ["a mount that sees it for the first time", false],
  ];

  const DONE = (path: string): readonly Program[][] => [
    [{ do: "unlink", path }],
    [{ do: "recreate", path, size: SIZE }],
    [{ do: "save", path, size: SIZE }],
    [{ do: "replace", path, size: SIZE }],
  ];

  for (const [who, hasSeen] of LOOKS) {
    for (const [name, other, theirs] of [
      ["a", "b", "beta's"],
      ["b", "a", "alpha's"],
    ] as const) {
      test.each(DONE(name).map((programs) => ({ what: programs[0]?.do, programs })))(
        `${who} does $what to ${name}: ${other} stays as it is, and its content is kept`,
        async ({ programs }) => {
          const it = await begin(hasSeen);
          for (const program of programs) await it.run(program);
          await it.world.clock.advance(30_000);
          expect((await it.contents()).get(other)).toBe(theirs);
          expect((await it.shown())[other]).toBe(theirs);
          expect(await it.come()).toContain(theirs);
        },
      );
    }

    test(`${who} does nothing: both contents are kept`, async () => {
      const it = await begin(hasSeen);
      expect(await it.come()).toEqual(expect.arrayContaining(["alpha's", "beta's"]));
    });

    test(`${who} waits until the link leases are over: both stay as they are, and the third name is updated`, async () => {
      const it = await begin(hasSeen);
      await it.world.clock.advance(2 * LEASES_MS);
      const contents = await it.contents();
      expect([contents.get("a"), contents.get("b")]).toEqual(["alpha's", "beta's"]);
      expect(["alpha's", "beta's"]).toContain(contents.get("c"));
      expect(await it.come()).toEqual(expect.arrayContaining(["alpha's", "beta's"]));
    });
  }
});

describe("each mount knows only one of the names", () => {
  /**
   * `a` and `d/b` are one file, and beta has not looked into `d`. Alpha makes `a` something else and saves `d/b`, which
   * arrives first of the two; under `a` beta has saved meanwhile. What alpha shows in the root, and the node `a` has.
   */
  async function apart(program: Program) {
    let sent = 0;
    const { world, alpha, beta, rules, calls, labelOf, run, drain, nodes, until } = await beginTwo({
      onAnswer: (mount, request, { status }) => {
        if (mount.name === "alpha" && isContentWrite(request) && status < 300) sent += 1;
      },
    });
    const nodeOfA = async () => (await nodes()).find(({ name }) => name === "a");

    await run(alpha, { do: "mkdir", path: "d" }, "");
    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    await run(alpha, { do: "link", path: "a", to: "d/b" }, "");
    await drain(alpha);
    await world.clock.advance(LEASES_MS);
    await world.run(calls(beta).list(""));
    const before = await nodeOfA();

    alpha.weather.isOffline = true;
    await run(alpha, program, "another");
    await run(alpha, { do: "save", path: "d/b", size: SIZE }, "mine");
    await run(beta, { do: "save", path: "a", size: SIZE }, "theirs");
    await drain(beta);
    sent = 0;
    rules.choose = ({ method, path }) =>
      method !== "GET" && sent === 0 && path.includes(before?.id ?? "?") ? "failed" : undefined;
    alpha.weather.isOffline = false;
    await until(() => sent > 0, 60_000);
    await drain(alpha);
    await world.clock.advance(LEASES_MS);

    const shown: Record<string, string> = {};
    for (const path of ["a", "d/b"]) shown[path] = await labelOf(alpha, path);
    const names = await world.run(calls(alpha).list(""));
    world.check();
    const after = await nodeOfA();
    return { before, after, shown, names };
  }

  test("a name that is another file here shows what the other mount saved under it, and keeps it", async () => {
    const { before, after, shown, names } = await apart({ do: "replace", path: "a", size: SIZE });
    expect(after).toMatchObject({ id: before?.id, contentHash: hash("theirs") });
    expect(shown).toEqual({ a: "theirs", "d/b": "mine" });
    expect(names).toContainEqual(expect.stringMatching(/^a \(conflict/));
  });

  test("a name that was removed here comes back with what the other mount saved under it", async () => {
    const { before, after, shown } = await apart({ do: "unlink", path: "a" });
    expect(after).toMatchObject({ id: before?.id, contentHash: hash("theirs") });
    expect(shown).toEqual({ a: "theirs", "d/b": "mine" });
  });
});

describe("a new name here, while its old name becomes another file elsewhere", () => {
  async function begin() {
    const it = await beginTwo();
    const { world, alpha, beta, labels, drain } = it;
    return {
      ...it,
      async ends() {
        await world.clock.advance(20_000);
        for (const mount of world.mounts) await drain(mount);
        await world.clock.advance(LEASES_MS);
        world.check();
        return [await labels(alpha), await labels(beta)];
      },
    };
  }

  /** What both show in the end; `saved`: which of the two is written first. */
  async function renamedOver(saved: readonly string[]): Promise<Record<string, string>[]> {
    const { world, alpha, beta, run, drain, labels, ends } = await begin();
    for (const path of saved) {
      await run(alpha, { do: "save", path, size: SIZE }, `of ${path}`);
      await world.clock.advance(5_000);
    }
    await drain(alpha);
    await world.clock.advance(LEASES_MS);
    await labels(beta);
    beta.weather.isOffline = true;
    await run(beta, { do: "rename", path: "f", to: "a" });
    await run(alpha, { do: "link", path: "a", to: "b" });
    await drain(alpha);
    beta.weather.isOffline = false;
    return ends();
  }

  test.each([
    { saved: ["f", "a"], which: "older" },
    { saved: ["a", "f"], which: "newer" },
  ])("the file that takes the name ($which) is kept, and the new name has what it was linked to", async ({ saved }) => {
    const both = { a: "of f", b: "of a" };
    expect(await renamedOver(saved)).toEqual([both, both]);
  });

  test("written by a new name without a node, the other names removed here, and one of those saved elsewhere: two files", async () => {
    const { world, alpha, beta, run, drain, labels, ends } = await begin();
    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    await run(alpha, { do: "link", path: "a", to: "b" });
    await drain(alpha);
    await world.clock.advance(LEASES_MS);
    await labels(beta);
    alpha.weather.isOffline = true;
    await run(alpha, { do: "link", path: "a", to: "c" });
    await run(alpha, { do: "overwrite", path: "c", at: 0, size: SIZE }, "alpha");
    for (const path of ["a", "b"]) await run(alpha, { do: "unlink", path });
    await world.clock.advance(5_000);
    await run(beta, { do: "overwrite", path: "a", at: 0, size: SIZE }, "beta");
    await drain(beta);
    alpha.weather.isOffline = false;
    // What was saved by one of the names that are removed here lives on under it.
    const both = { a: "beta", c: "alpha" };
    expect(await ends()).toEqual([both, both]);
  });
});

describe("one name is removed elsewhere", () => {
  test("the other names have its content: nothing waits to be sent, not for a moment", async () => {
    const { world, alpha, beta, run, drain, calls } = await beginTwo();
    const dirty = () => beta.process?.engine.status().dirty;
    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    for (const to of ["b", "c"]) await run(alpha, { do: "link", path: "a", to });
    await drain(alpha);
    expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c"]);
    await world.clock.advance(LEASES_MS);
    await run(alpha, { do: "save", path: "a", size: SIZE }, "new");
    await run(alpha, { do: "link", path: "b", to: "d" });
    await drain(alpha);
    await world.clock.advance(1_000);
    expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c", "d"]);
    await run(alpha, { do: "unlink", path: "d" });
    await drain(alpha);
    const seen: unknown[] = [];
    for (let time = 0; time < 40; time += 1) {
      await world.clock.advance(50);
      seen.push(dirty());
    }
    expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c"]);
    expect(seen).toEqual(seen.map(() => 0));
  });
});

describe("which of two contents is newer", () => {
  /** `a` and one more name of it, which both mounts know, if it is in the root. */
  async function begin(other: string, request = (one: HttpRequest) => one) {
    let puts = 0;
    const it = await beginTwo({
      request,
      onAnswer: (_, request, { status }) => {
        if (isContentWrite(request) && status < 300) puts += 1;
      },
    });
    const { world, alpha, beta, run, labels, drain, nodes } = it;
    await run(alpha, { do: "mkdir", path: "d" });
    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    await run(alpha, { do: "link", path: "a", to: other });
    await drain(alpha);
    await labels(beta);
    await world.clock.advance(LEASES_MS);
    const idOf = async (name: string) => (await nodes()).find((node) => node.name === name)?.id ?? "?";
    return {
      ...it,
      shown: labels,
      idOf,
      puts: () => puts,
      save: (mount: Mount, path: string, label: string) => run(mount, { do: "save", path, size: SIZE }, label),
    };
  }

  const LATE = [
    { what: "the journal is late", lag: 60_000, isOffline: false },
    { what: "the gateway is out of reach", lag: 0, isOffline: true },
  ];

  test.each(LATE)(
    "each mount has kept the other's content, and $what until the link leases are over: they do not overwrite each other for ever",
    async ({ lag, isOffline }) => {
      const { world, alpha, beta, rules, save, idOf, puts, shown } = await begin("b");
      const [a, b] = [await idOf("a"), await idOf("b")];
      // Of each save the name it was made by arrives first.
      rules.choose = ({ method, path, body }) => {
        const text = JSON.stringify(body ?? "");
        const isOther =
          (text.includes(hash("X")) && path.includes(b)) || (text.includes(hash("Y")) && path.includes(a));
        return isContentWrite({ method, path }) && isOther ? "failed" : undefined;
      };
      await save(alpha, "a", "X");
      await save(beta, "b", "Y");
      await world.clock.advance(2_000);
      rules.choose = () => undefined;
      await world.clock.advance(20_000);
      world.setLag({ path: lag, journal: lag, id: 0 });
      for (const mount of world.mounts) mount.weather.isOffline = isOffline;
      await world.clock.advance(200_000);
      for (const mount of world.mounts) mount.weather.isOffline = false;
      await world.clock.advance(4 * LEASES_MS);
      world.setLag({ path: 0, journal: 0, id: 0 });
      await world.clock.advance(2 * LEASES_MS);
      const before = puts();
      await world.clock.advance(6 * LEASES_MS);
      expect(puts()).toBe(before);
      expect(await shown(alpha)).toEqual(await shown(beta));
      expect(Object.values(await shown(alpha))).toEqual(expect.arrayContaining(["X", "Y"]));
    },
  );

  test("references are refused: a node that gets the content from the other mount, while it is read here for it, counts as up to date", async () => {
    const { world, alpha, beta, rules, rows, run, save, idOf, puts, shown } = await begin("b", refuseReferences);
    const a = await idOf("a");
    let [isRead, isSent] = [false, false];
    rules.choose = ({ method, path }) => {
      const isPut = method === "PUT" && path.includes(a);
      if (isPut) isSent = isRead;
      if ((isPut && !isRead) || (method === "DELETE" && puts() === 0)) return "failed";
      if (method !== "GET" || !path.endsWith("/content")) return undefined;
      isRead = true;
      return isSent ? undefined : "failed";
    };
    // The name that is left has to have what came by the one that was removed.
    await run(alpha, { do: "unlink", path: "b" });
    await save(beta, "a", "X");
    for (let waited = 0; !isRead && waited < 2 * LEASES_MS; waited += 50) await world.clock.advance(50);
    // While alpha tries to get the bytes, beta gets through.
    await world.run(beta.process?.engine.retry() ?? Promise.reject());
    await world.clock.advance(2 * LEASES_MS);
    expect([isSent, await shown(alpha)]).toEqual([true, { a: "X" }]);
    expect(rows(alpha).unclean()).toEqual([]);
  });

  test("saved often while offline: a name that is found afterwards is updated", async () => {
    const { world, alpha, beta, calls, drain, save, shown } = await begin("d/c");
    beta.weather.isOffline = true;
    for (let at = 0; at < 20; at += 1) {
      await save(beta, "a", `new${at}`);
      await world.clock.advance(60_000);
    }
    alpha.crash();
    beta.weather.isOffline = false;
    await drain(beta);
    await world.run(calls(beta).list("d"));
    await world.clock.advance(4 * LEASES_MS);
    await drain(beta);
    expect(await shown(beta)).toEqual({ a: "new19" });
    expect(await shown(beta, "d")).toEqual({ c: "new19" });
  });

  test("the same bytes are written again, and the writer of the next ones dies half-way: the other name is updated", async () => {
    const { world, alpha, beta, drain, rules, nodes, idOf, save, shown, until } = await begin("b");
    await save(alpha, "a", "old");
    await drain(alpha);
    await world.clock.advance(LEASES_MS);
    const a = await idOf("a");
    rules.choose = ({ method, path }) => (isContentWrite({ method, path }) && path.includes(a) ? "failed" : undefined);
    await save(beta, "b", "new");
    await until(async () => (await nodes()).some(({ contentHash }) => contentHash === hash("new")));
    beta.crash();
    rules.choose = () => undefined;
    await world.clock.advance(4 * LEASES_MS);
    await drain(alpha);
    expect(await shown(alpha)).toEqual({ a: "new", b: "new" });
  });

  test("a client whose attribute link names no saves writes one name: its content is shown, and not replaced", async () => {
    const { world, alpha, beta, drain, nodes, save, shown } = await begin("b");
    await save(alpha, "a", "newer");
    await drain(alpha);
    await shown(beta);
    await world.clock.advance(LEASES_MS);
    const a = (await nodes()).find(({ name }) => name === "a");
    const link = { group: a?.attributes.link?.group ?? "?", hash: hash("theirs") };
    const attributes = { link };
    await world.run(world.outside.writeContent(a?.id ?? "?", sourceOf(bytesOf("theirs", SIZE)), { attributes }));
    await world.clock.advance(4 * LEASES_MS);
    for (const mount of [alpha, beta]) expect(await shown(mount)).toEqual({ a: "theirs", b: "theirs" });
  });

  test("the mount that updates the names gets no answer, and newer content arrives: no conflict copies", async () => {
    const { world, alpha, beta, rules, idOf, save, shown } = await begin("b");
    const b = await idOf("b");
    const isFromBeta = (body: unknown) => JSON.stringify(body).includes("copyOf");
    // Of alpha's save only `a` arrives; beta, which has the link lease then, reaches nothing with what it sends.
    rules.choose = ({ method, path, body }) =>
      isContentWrite({ method, path }) && (path.includes(b) || isFromBeta(body)) ? "failed" : undefined;
    await save(alpha, "a", "two");
    await world.clock.advance(10_000);
    expect(await shown(beta)).toEqual({ a: "two", b: "two" });
    await world.clock.advance(LEASES_MS);
    await save(alpha, "b", "three");
    // Of this one only `b`, so far.
    rules.choose = ({ method, path, body }) =>
      isContentWrite({ method, path }) && (!path.includes(b) || isFromBeta(body)) ? "failed" : undefined;
    await world.clock.advance(90_000);
    rules.choose = () => undefined;
    await world.clock.advance(2 * LEASES_MS);
    for (const mount of [alpha, beta]) expect(await shown(mount)).toEqual({ a: "three", b: "three" });
  });

  test.each([
    ["one", "other"],
    ["other", "one"],
  ])(
    "%s is saved, then %s, which the other mount saves again, then the first once more: all mounts show that",
    async (before, after) => {
      const { world, alpha, beta, drain, save, shown } = await begin("b");
      const saveAndTell = async (mount: Mount, label: string) => {
        await save(mount, "a", label);
        await drain(mount);
        await world.clock.advance(5_000);
      };
      await saveAndTell(alpha, before);
      await saveAndTell(alpha, after);
      expect(await shown(beta)).toEqual({ a: after, b: after });
      await saveAndTell(beta, after);
      await saveAndTell(alpha, before);
      await world.clock.advance(6 * LEASES_MS);
      for (const mount of [alpha, beta]) expect(await shown(mount)).toEqual({ a: before, b: before });
    },
  );

  test("earlier content that is saved again by one name, while the other one is written, is kept", async () => {
    const { world, alpha, beta, drain, rules, idOf, save, shown } = await begin("b");
    await save(alpha, "a", "on");
    await drain(alpha);
    await world.clock.advance(LEASES_MS);
    expect(await shown(beta)).toEqual({ a: "on", b: "on" });
    const [a, b] = [await idOf("a"), await idOf("b")];
    // Of each save the name it was made by arrives first.
    rules.choose = ({ method, path, body }) => {
      const text = JSON.stringify(body ?? "");
      const isOther =
        (text.includes(hash("new")) && path.includes(b)) || (text.includes(hash("old")) && path.includes(a));
      return isContentWrite({ method, path }) && isOther ? "failed" : undefined;
    };
    await save(alpha, "a", "new");
    await save(beta, "b", "old");
    await world.clock.advance(2_000);
    rules.choose = () => undefined;
    await world.clock.advance(4 * LEASES_MS);
    expect(await shown(alpha)).toEqual(await shown(beta));
    expect(Object.values(await shown(alpha))).toEqual(expect.arrayContaining(["new", "old"]));
  });

  test("a link lease has ended and its last requests get no answer; a mode set then by the writer is not taken back", async () => {
    const { world, alpha, beta, run, calls, labelOf, nodes, rules, idOf, save } = await begin("b");
    const modeOf = async (mount: Mount) => (await world.run(calls(mount).stat("a"))).mode & 0o777;
    const b = await idOf("b");
    const has = (body: unknown, what: string) => JSON.stringify(body ?? "").includes(what);
    const isChange = (method: string, path: string) => isContentWrite({ method, path }) || method === "PATCH";
    // Of alpha's first change only `a` arrives; beta, which has the link lease then, reaches nothing.
    rules.choose = ({ method, path, body }) =>
      isChange(method, path) && (path.includes(b) || has(body, "copyOf")) ? "failed" : undefined;
    await run(alpha, { do: "chmod", path: "a", mode: 0o600 });
    await save(alpha, "a", "two");
    await world.clock.advance(10_000);
    expect([await labelOf(beta, "a"), await modeOf(beta)]).toEqual(["two", 0o600]);
    await world.clock.advance(LEASES_MS);
    // Of the second one only `b` arrives, at first.
    rules.choose = ({ method, path, body }) =>
      isChange(method, path) && (!path.includes(b) || !has(body, hash("three"))) ? "failed" : undefined;
    await run(alpha, { do: "chmod", path: "b", mode: 0o755 });
    await save(alpha, "b", "three");
    await world.clock.advance(20_000);
    alpha.crash();
    await world.clock.advance(90_000);
    rules.choose = () => undefined;
    await world.clock.advance(4 * LEASES_MS);
    expect([await labelOf(beta, "a"), await modeOf(beta)]).toEqual(["three", 0o755]);
    const files = (await nodes()).filter(({ kind }) => kind === "file");
    expect(files.map(({ name, attributes }) => [name, attributes.mode])).toEqual([
      ["a", 0o755],
      ["b", 0o755],
    ]);
  });

  test("a name is removed on one mount, and two saves of the other arrive by different names: no conflict copy", async () => {
    const { world, alpha, beta, run, rules, idOf, save, shown } = await begin("b");
    const a = await idOf("a");
    const isFirst = (body: unknown) => JSON.stringify(body ?? "").includes(hash("two"));
    const isCopy = (body: unknown) => JSON.stringify(body ?? "").includes("copyOf");
    // Of the first save only `b` arrives, of the second only `a`; what alpha sends of the first comes late.
    rules.choose = ({ method, path, body }) =>
      isContentWrite({ method, path }) && (path.includes(a) ? isFirst(body) || isCopy(body) : !isFirst(body))
        ? "failed"
        : undefined;
    await save(beta, "b", "two");
    await world.clock.advance(500);
    await run(alpha, { do: "unlink", path: "b" });
    await world.clock.advance(3_000);
    expect(await shown(alpha)).toEqual({ a: "two" });
    await save(beta, "a", "three");
    await world.clock.advance(20_000);
    beta.weather.isOffline = true;
    rules.choose = () => undefined;
    await world.clock.advance(2 * LEASES_MS);
    expect(await shown(alpha)).toEqual({ a: "three" });
  });

  test("each of two mounts knows one name only, and both save: each name shows what was saved by it, on both", async () => {
    const { world, alpha, beta, run, calls, drain, save, shown } = await begin("d/c");
    await run(alpha, { do: "mkdir", path: "e" });
    await run(alpha, { do: "rename", path: "a", to: "e/a" });
    await drain(alpha);
    for (const mount of [alpha, beta]) {
      await world.run(mount.stop());
      mount.wipe();
      await world.run(mount.start());
    }
    await world.run(calls(alpha).list("e"));
    await world.run(calls(beta).list("d"));
    await save(alpha, "e/a", "alpha's");
    await save(beta, "d/c", "beta's");
    await world.clock.advance(20_000);
    for (const mount of [alpha, beta]) await drain(mount);
    for (let round = 0; round < 2; round += 1) {
      for (const mount of [alpha, beta]) {
        expect([await shown(mount, "e"), await shown(mount, "d")]).toEqual([{ a: "alpha's" }, { c: "beta's" }]);
      }
      await world.clock.advance(4 * LEASES_MS);
    }
  });
});

describe("half updated: the writer stops between two nodes", () => {
  test("both names show the newest content, here and on a mount that knew the file, and only the writer sends", async () => {
    const it = await beginLinked();
    await it.world.run(it.calls(it.beta).list(""));
    await halfUpdated(it);
    await it.world.clock.advance(3_000);
    oneFile("new")(await it.shown(it.alpha));
    oneFile("new")(await it.shown(it.beta));
    it.rules.choose = () => undefined;
    await it.world.clock.advance(30_000);
    expect(it.changes.filter((line) => line.startsWith("beta"))).toEqual([]);
    for (const node of await it.nodes()) expect(await it.versions(node.id)).toBe(2);
  });

  test("a mount that knew nothing shows the newest content by both names", async () => {
    const it = await beginLinked();
    it.beta.weather.isOffline = true;
    await halfUpdated(it);
    it.beta.weather.isOffline = false;
    await it.world.clock.advance(3_000);
    oneFile("new")(await it.shown(it.beta));
  });

  test("the writer dies between the two: it goes on where it was", async () => {
    const it = await beginLinked();
    await halfUpdated(it);
    it.alpha.crash();
    it.rules.choose = () => undefined;
    await it.world.run(it.alpha.start());
    await it.drain(it.alpha);
    await it.world.clock.advance(5_000);
    for (const mount of [it.alpha, it.beta]) oneFile("new")(await it.shown(mount));
    for (const node of await it.nodes()) expect(await it.versions(node.id)).toBe(2);
  });

  test("the writer never comes back: another mount updates the rest", async () => {
    const it = await beginLinked();
    await it.world.run(it.calls(it.beta).list(""));
    await halfUpdated(it);
    it.alpha.crash();
    it.rules.choose = () => undefined;
    expect(new Set((await it.nodes()).map((node) => node.contentHash)).size).toBe(2);
    await it.world.clock.advance(LEASES_MS);
    await it.drain(it.beta);
    expect(new Set((await it.nodes()).map((node) => node.contentHash)).size).toBe(1);
    oneFile("new")(await it.shown(it.beta));
  });

  /** Half updated by a writer that never comes back, while beta, offline, has the name removed that was updated. */
  async function removedMeanwhile(it: LinkedWorld, more: (other: string) => Promise<unknown>): Promise<string> {
    await halfUpdated(it, async () => {
      await it.world.clock.advance(3_000);
      await it.world.run(it.calls(it.beta).list(""));
      it.beta.weather.isOffline = true;
    });
    it.alpha.crash();
    it.rules.choose = () => undefined;
    const [newest, other] = (await it.nodes()).sort((x, y) => (x.modifiedAt < y.modifiedAt ? 1 : -1));
    if (newest === undefined || other === undefined) throw new Error("two nodes");
    await more(other.name);
    await it.world.run(it.calls(it.beta).unlink(newest.name));
    await it.world.clock.advance(3_000);
    it.beta.weather.isOffline = false;
    await it.world.clock.advance(LEASES_MS);
    await it.drain(it.beta);
    return other.name;
  }

  test("the name with the newest content is removed elsewhere: the other name has it", async () => {
    const it = await beginLinked();
    const other = await removedMeanwhile(it, async () => undefined);
    expect((await it.shown(it.beta)).map(({ name, text }) => [name, text])).toEqual([[other, "new"]]);
    expect((await it.nodes()).map(({ name, size }) => [name, size])).toEqual([[other, 40]]);
  });

  test("the name with the newest content is removed elsewhere, and the other one written there: both contents are there", async () => {
    const it = await beginLinked();
    const other = await removedMeanwhile(it, (name) => it.save(it.beta, name, "theirs"));
    const shown = await it.shown(it.beta);
    expect(shown.map(({ text }) => text).sort()).toEqual(["new", "theirs"]);
    expect(shown.find(({ name }) => name === other)?.text).toBe("theirs");
    expect((await it.nodes()).length).toBe(2);
  });
});

describe("half updated: another mount changes the file meanwhile", () => {
  /** By their sizes it is told whose a content is. */
  const SAVES: readonly (number | undefined)[] = [30, 35];

  /** Enough for the other request to be through. */
  const REFUSALS = 5;

  const run = (mount: number, program: Program): Step => ({ do: "run", mount, program });

  /**
   * Saved so often, each time for one of the two nodes, the latest for the one that is ahead; then the writer is away.
   */
  const saved = (times: number): readonly Step[] => [
    ...SAVES.slice(0, times).flatMap((size = 0): Step[] => [
      run(0, { do: "save", path: "a", size }),
      { do: "wait", ms: 1_500 },
    ]),
    { do: "weather", mount: 0, isOffline: true, latencyMs: 0, faultShare: 0 },
  ];

  const LINKED: readonly Step[] = [
    run(0, { do: "save", path: "a", size: 20 }),
    run(0, { do: "link", path: "a", to: "b" }),
    { do: "wait", ms: 4_000 },
  ];

  const sizeOf = ({ body }: HttpRequest) => (body?.kind === "upload" ? body.content.size : undefined);

  /**
   * What the writer sends is refused by one of the nodes until another mount writes, which gets to `first` before the
   * other.
   */
  function oneByOne(first: "the one ahead" | "the one behind"): Sabotage {
    const took: string[] = [];
    let isOver = false;
    let isThrough = false;
    let refusals = 0;
    return {
      choose(request) {
        const { method, path } = request;
        if (!isContentWrite(request) && method !== "DELETE") return "none";
        const node = path.split("/")[3] ?? "";
        const save = SAVES.indexOf(sizeOf(request));
        if (save >= 0) {
          if (!isOver && took[save] === undefined && !took.includes(node)) took[save] = node;
          return isOver || took[save] === node ? "none" : "failed";
        }
        isOver = took.length > 0;
        const isAhead = node === took.at(-1);
        if (isAhead === (first === "the one ahead")) isThrough = true;
        else if (isOver && !isThrough && refusals < REFUSALS) {
          refusals += 1;
          return "failed";
        }
        return "none";
      },
    };
  }

  const PROGRAMS: readonly Program[] = [
    { do: "save", path: "a", size: SIZE },
    { do: "unlink", path: "a" },
    { do: "unlink", path: "b" },
    { do: "replace", path: "a", size: SIZE },
    { do: "replace", path: "b", size: SIZE },
    { do: "list", path: "" },
  ];

  const CASES = ([1, 2] as const).flatMap((times) =>
    (["the one ahead", "the one behind"] as const).flatMap((first) =>
      PROGRAMS.map((program) => ({ times, first, program, what: Object.values(program).join(" ") })),
    ),
  );

  test.each(CASES)("saved $times times, then $what elsewhere, $first first: nothing unseen is lost", async (it) => {
    const steps = [...LINKED, ...saved(it.times), run(1, it.program), { do: "wait", ms: 30_000 } as const];
    await playHistory(steps, { mounts: 2, seed: 1, sabotage: oneByOne(it.first) });
  });

  test.each(["the one ahead", "the one behind"] as const)(
    "a mount that has shown only the older content overwrites the newer one, %s first: noticed",
    async (first) => {
      const steps: readonly Step[] = [
        ...LINKED,
        run(1, { do: "read", path: "a" }),
        { do: "lag", path: 8_000, journal: 8_000, id: 0 },
        ...saved(1),
        run(1, { do: "save", path: "a", size: SIZE }),
      ];
      const sabotage = oneByOne(first);
      await playHistory(steps, { mounts: 2, seed: 1, sabotage });
      const unconditional = (request: HttpRequest): HttpRequest => {
        const { "if-match": _, ...headers } = request.headers;
        return isContentWrite(request) ? { ...request, headers } : request;
      };
      const broken = playHistory(steps, {
        mounts: 2,
        seed: 1,
        sabotage: { ...oneByOne(first), request: unconditional },
      });
      await expect(broken).rejects.toThrow(/overwrote .*never showed/);
    },
  );
});

describe("half updated: a name is found when the name with the new content is gone", () => {
  const [NEW, ANOTHER] = [hash("new"), hash("another")];

  interface Late {
    /** `a`, these and `d/c` are one file. */
    readonly names: readonly string[];
    /** What beta does when only `a` has the new content. */
    readonly programs: readonly Program[];
    /** Whether it has heard of that; else it is told afterwards. */
    readonly hasHeard: boolean;
    /** What is saved there under `a` is sent before it looks into `d`. */
    readonly isSent?: boolean;
    /** Somebody who knows of no links deletes `a`. */
    readonly isDeleted?: boolean;
    /** Hashes by path, on beta before it can send any content, on both in the end. */
    readonly shown: Readonly<Record<string, string>>;
  }

  /** Beta looks into `d` only after its programs. */
  async function comesInLate({ names, programs, hasHeard, isSent, isDeleted, shown }: Late): Promise<void> {
    const { world, alpha, beta, rules, calls, run, drain, nodes, until } = await beginTwo();
    const nodeOfA = async () => (await nodes()).find(({ name }) => name === "a");

    await run(alpha, { do: "mkdir", path: "d" });
    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    for (const to of [...names, "d/c"]) await run(alpha, { do: "link", path: "a", to });
    await drain(alpha);
    await world.clock.advance(LEASES_MS);
    await world.run(calls(beta).list(""));
    const a = await nodeOfA();

    if (!hasHeard) world.setLag({ path: 0, journal: 10_000, id: 0 });
    rules.choose = ({ method, path }) => (method === "GET" || path.includes(a?.id ?? "?") ? undefined : "failed");
    await run(alpha, { do: "save", path: "a", size: SIZE }, "new");
    await until(async () => (await nodeOfA())?.contentHash === NEW);
    alpha.crash();
    if (hasHeard) await world.clock.advance(3_000);
    rules.choose = ({ method, path }) => {
      const isToA = isSent === true && path.includes(a?.id ?? "?");
      return (method === "PUT" && !isToA) || method === "POST" ? "failed" : undefined;
    };
    for (const program of programs) await run(beta, program, "another");
    if (isDeleted === true) await world.run(world.outside.deleteNode(a?.id ?? "?"));
    await world.clock.advance(12_000);
    await world.run(calls(beta).list("d"));
    await world.clock.advance(1_000);

    const shownOn = async (mount: Mount) => {
      const tree = await world.run(treeOf(calls(mount), { withContent: true }));
      const files = [...tree].filter(([, { kind }]) => kind === "file");
      return Object.fromEntries(files.map(([path, { content }]) => [path, content]));
    };
    expect(await shownOn(beta)).toEqual(shown);
    rules.choose = () => undefined;
    await drain(beta);
    await world.run(alpha.start());
    for (const mount of world.mounts) await drain(mount);
    await world.clock.advance(LEASES_MS);
    for (const mount of world.mounts) expect(await shownOn(mount)).toEqual(shown);
    world.check();
  }

  const GONE: Program = { do: "unlink", path: "a" };

  /** As an editor saves: what was there has a name of its own, and the old name's node is the new file's. */
  const BACKED_UP: readonly Program[] = [
    { do: "rename", path: "a", to: "a~" },
    { do: "save", path: "a", size: SIZE },
  ];

  test("the only name with the new content is removed: the content stays under the others", async () => {
    await comesInLate({ names: ["b"], programs: [GONE], hasHeard: true, shown: { b: NEW, "d/c": NEW } });
  });

  test("the name is removed before its content is known to be new: the content stays under the others", async () => {
    await comesInLate({ names: ["b"], programs: [GONE], hasHeard: false, shown: { b: NEW, "d/c": NEW } });
  });

  test("the only name with the new content is moved and saved anew: the content stays where it was moved to", async () => {
    const shown = { a: ANOTHER, "a~": NEW, "d/c": NEW };
    await comesInLate({ names: [], programs: BACKED_UP, hasHeard: true, shown });
  });

  test("the only name with the new content is moved, and its save is sent first: the content stays where it was moved to", async () => {
    const shown = { a: ANOTHER, "a~": NEW, "d/c": NEW };
    await comesInLate({ names: [], programs: BACKED_UP, hasHeard: true, isSent: true, shown });
  });

  test("another client deletes the only name with the new content: the content stays under the others", async () => {
    await comesInLate({ names: ["b"], programs: [], hasHeard: true, isDeleted: true, shown: { b: NEW, "d/c": NEW } });
  });
});
