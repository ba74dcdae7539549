/** Hard links: a file gets more names elsewhere while a program has it open, and files of very many names. */

import { describe, expect, test } from "vitest";
import { isContentWrite } from "./support/content-write.ts";
import type { EngineHook, Mount } from "./support/mount.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";
import { watchedRows } from "./support/watched-rows.ts";

describe("more names while it is open", () => {
  const SIZE = 40;

  /** Both mounts know `a`, which has one name so far. */
  async function begin() {
    const it = await beginTwo();
    const { world, alpha, beta, run, drain, calls, nodes, rules } = it;
    await run(alpha, { do: "save", path: "a", size: SIZE }, "one");
    await drain(alpha);
    await world.clock.advance(TURNS_MS);
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
    "linked elsewhere, told of as $what: who has it open has the file that is there by name",
    async ({ order }) => {
      const { world, beta, calls, before, stat, link, drain, labelOf } = await begin();
      const at = calls(beta);
      const fd = await world.run(at.open("a", {}));
      await link(order);
      const now = { inode: before.inode, links: order.length, size: before.size };
      expect(await world.run(at.fstat(fd))).toMatchObject(now);
      for (const name of order) expect(await stat(name)).toMatchObject(now);
      world.check();
      // What this mount appends by any of its names is read by who had it open before.
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
      await world.clock.advance(2 * TURNS_MS);
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
    await world.clock.advance(TURNS_MS);
    const before = puts;
    /** Nodes that got what was saved since. */
    return { ...it, sent: () => puts - before, watch, countLooks };

    function countLooks({ name }: Mount): () => number {
      const first = looks.get(name) ?? 0;
      return () => (looks.get(name) ?? 0) - first;
    }
  }

  test("each of its names is looked at a few times, however many they are", async () => {
    const { world, alpha, beta, run, drain, labelOf } = await begin();
    // Most of them are remembered: by the statements that are run a look at all of them at each change would not be seen.
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
    { what: "nothing of which was sent", offline: true },
  ];

  test.each(REMOVED)(
    "one name after the other goes of a file that $what: none looks at all the others",
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

  test("who saved it goes away half-way: when his turn is over another mount brings the rest, also one that dies of that", async () => {
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
    expect(rows(beta).turns()).toBe(1);
    await world.clock.advance(TURNS_MS);
    expect(beta.process).toBeUndefined();
    watch.onMarked = () => {};
    await world.run(beta.start());
    await world.clock.advance(20_000);
    expect(sent()).toBe(NAMES);
    expect(await labelOf(beta, `n${NAMES - 1}`)).toBe("new");
    expect(rows(beta).turns()).toBe(0);
    world.check();
  });
});
