/** Changes of other clients are heard of by the journal's stream, by its pages, and by reading nodes again. */
import { describe, expect, test } from "vitest";
import { minus } from "../../src/lib/clocks.ts";
import { begin } from "./support/one-world.ts";
import { rowsOf } from "./support/rows.ts";
import type { Fault } from "./support/transport.ts";
import { createWorld, type World } from "./support/world.ts";

describe("the stream", () => {
  const POLL_MS = 20_000;

  async function begin(streams: () => Fault | undefined, nodes: () => Fault | undefined = () => undefined) {
    const asked: string[] = [];
    const world = await createWorld({
      seed: 1,
      mounts: ["alpha"],
      settings: { pollMs: POLL_MS },
      sabotage: {
        choose({ path }) {
          if (path.startsWith("/v1/journal")) asked.push(path);
          if (path.startsWith("/v1/nodes/")) return nodes() ?? "none";
          return path === "/v1/journal/stream" ? (streams() ?? "none") : "none";
        },
      },
    });
    const [mount] = world.mounts;
    const kernel = mount?.process?.kernel;
    const engine = mount?.process?.engine;
    if (kernel === undefined || engine === undefined) throw new Error("no mount");
    const isLive = () => engine.status().live;
    const ms = async (isSo: () => Promise<boolean>) => {
      const start = world.clock.elapsed();
      while (!(await world.run(isSo()))) {
        if (minus(world.clock.elapsed(), start) > 10 * 60_000) throw new Error("never");
        await world.clock.advance(50);
      }
      return minus(world.clock.elapsed(), start);
    };
    const isThere = (name: string) => async () => (await kernel.list("")).includes(name);
    await ms(async () => isLive());
    // Once the stream is there, a page tells what came before it.
    await world.clock.advance(5_000);
    expect(await world.run(kernel.list(""))).toEqual([]);
    asked.length = 0;
    return { world, asked, ms, isThere, isLive };
  }

  const make = (world: World, name: string) => world.run(world.outside.createFolder(world.workspace.root, name));

  test("a change that comes by the stream is shown at once, and no page is asked for", async () => {
    const { world, asked, ms, isThere } = await begin(() => undefined);
    try {
      for (const name of ["a", "b", "c"]) {
        await make(world, name);
        expect(await ms(isThere(name))).toBeLessThan(500);
      }
      expect(asked).toEqual([]);
      world.check();
    } finally {
      world.end();
    }
  });

  test("without a stream changes come by pages, and the stream is asked for less and less often", async () => {
    const { world, asked, ms, isThere } = await begin(() => "unavailable");
    try {
      await make(world, "a");
      expect(await ms(isThere("a"))).toBeLessThanOrEqual(POLL_MS + 1_000);
      asked.length = 0;
      await world.clock.advance(10 * 60_000);
      const streams = asked.filter((path) => path.endsWith("/stream")).length;
      expect(streams).toBeGreaterThan(10);
      expect(streams).toBeLessThan(60);
    } finally {
      world.end();
    }
  });

  test("a stream that broke is taken up where it was", async () => {
    let fault: Fault | undefined;
    const { world, asked, ms, isThere } = await begin(() => fault);
    try {
      fault = "unavailable";
      // The one that was open ends with the gateway.
      world.restartGateway();
      await make(world, "a");
      expect(await ms(isThere("a"))).toBeLessThanOrEqual(10_000 + POLL_MS);
      fault = undefined;
      await world.clock.advance(60_000);
      asked.length = 0;
      await make(world, "b");
      expect(await ms(isThere("b"))).toBeLessThan(500);
      expect(asked).toEqual([]);
      world.check();
    } finally {
      world.end();
    }
  });

  test.each([
    ["by the stream", undefined],
    ["in pages", "unavailable"],
  ] as const)(
    "while a change that came %s cannot be applied the journal is not live, though it is heard of",
    async (_, stream) => {
      let fault: Fault | undefined;
      const { world, ms, isThere, isLive } = await begin(
        () => stream,
        () => fault,
      );
      try {
        fault = "lost-before";
        await make(world, "a");
        expect(await ms(async () => !isLive())).toBeLessThan(2 * 60_000);
        fault = undefined;
        await ms(isThere("a"));
        await ms(async () => isLive());
        world.check();
      } finally {
        world.end();
      }
    },
  );
});

describe("a node that the gateway fails to answer for", () => {
  /** A mount that knows both files, and somebody who writes them. */
  async function withTwoFiles() {
    const it = await begin();
    const { outside, workspace } = it.world;
    for (const name of ["bad", "good"]) await it.save(name);
    await it.drain();
    const { items } = await it.world.run(outside.listFolder(workspace.root));
    const ids = new Map(items.map(({ name, id }) => [name, id]));
    const rename = (name: string, to: string) => it.world.run(outside.patchNode(ids.get(name) ?? "", { name: to }));
    const fails = (fault: Fault) => {
      let count = 0;
      it.rules.choose = ({ method, path }) => {
        if (method !== "GET" || path !== `/v1/nodes/${ids.get("bad")}`) return undefined;
        count += 1;
        return fault;
      };
      return () => count;
    };
    return { ...it, rename, fails };
  }

  test("a node that answers 500 for good: later changes are shown as soon as ever, and the node once it answers", async () => {
    const it = await withTwoFiles();
    const asked = it.fails("failed");
    await it.rename("bad", "bad, renamed");
    await it.rename("good", "good, renamed");
    await it.world.clock.advance(5_000);
    expect(await it.names()).toEqual(["bad", "good, renamed"]);
    // It is asked for ever more seldom, and keeps nothing from being heard of meanwhile.
    await it.world.clock.advance(20 * 60_000);
    const before = asked();
    expect(before).toBeLessThan(20);
    await it.rename("good", "good again");
    await it.world.clock.advance(5_000);
    expect(await it.names()).toEqual(["bad", "good again"]);
    await it.world.clock.advance(10 * 60_000);
    expect(asked() - before).toBeLessThan(4);
    it.rules.choose = () => undefined;
    await it.world.clock.advance(10 * 60_000);
    await it.ends(["bad, renamed", "good again"]);
  });

  test("a mount that starts beside a node that answers 500 for good, changed here last, follows the others", async () => {
    const it = await withTwoFiles();
    await it.save("bad", "again");
    await it.drain();
    await it.world.run(it.mount.stop());
    it.fails("failed");
    await it.world.run(it.mount.start());
    await it.rename("good", "good, renamed");
    await it.world.clock.advance(6 * 60_000);
    expect(await it.names()).toEqual(["bad", "good, renamed"]);
  });

  test("writes become settled though no program asks for a list", async () => {
    const it = await begin();
    it.world.setLag({ path: 3_000, journal: 1_000, id: 0 });
    await it.names();
    await it.save("a");
    await it.world.clock.advance(60_000);
    expect(it.rows().written()).toBeGreaterThan(0);
    expect(it.rows().indexed()).toBeGreaterThanOrEqual(it.rows().written());
  });
});

describe("rows of deletions and of nodes to read again", () => {
  test("a node that cannot be read keeps no other node from being read again", async () => {
    const it = await begin();
    const { outside } = it.world;
    await it.save("a");
    await it.save("b");
    await it.drain();
    it.world.setLag({ path: 0, journal: 3_600_000, id: 0 });
    const [a, b] = await it.nodes();
    await it.world.run(outside.patchNode(b?.id ?? "", { name: "c" }));
    it.rules.choose = ({ path }) => (path === `/v1/nodes/${a?.id}` ? "unavailable" : undefined);
    it.mount.crash((rows) => {
      const insert = rows.prepare("INSERT INTO reread (node_id, due) VALUES (?, 0)");
      for (const node of [a, b]) insert.run(node?.id);
    });
    await it.world.run(it.mount.start());
    await it.world.clock.advance(5_000);
    expect(await it.names()).toEqual(["a", "c"]);
    it.rules.choose = () => undefined;
    it.world.setLag({ path: 0, journal: 0, id: 0 });
    await it.ends(["a", "c"]);
    expect(it.rows().rereads().length).toBe(0);
  });

  test("deletions are forgotten though no program lists a folder any more", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    await it.unlink("a");
    await it.until(() => it.asked.includes("DELETE /v1/nodes/ID 200"));
    await it.world.clock.advance(1_000);
    expect(it.rows().tombstones() > 0).toBe(true);
    await it.world.clock.advance(90_000);
    expect(it.rows().tombstones() > 0).toBe(false);
  });

  test("a name that was deleted while its folder is being listed does not come back with the listing", async () => {
    const answers: (() => void)[] = [];
    const shown: boolean[] = [];
    let held = "";
    const it = await begin({
      engine(_, database, { client }) {
        const { listFolder, readJournal } = client;
        Object.assign(client, {
          async listFolder(...args: Parameters<typeof listFolder>) {
            const page = await listFolder(...args);
            if (args[0] === held) await new Promise<void>((resolve) => answers.push(resolve));
            return page;
          },
          readJournal(...args: Parameters<typeof readJournal>) {
            const rows = rowsOf(database);
            shown.push(rows.inode("n", rows.inode("d")?.id ?? 0) !== undefined);
            return readJournal(...args);
          },
        });
        return {};
      },
    });
    const { outside, workspace } = it.world;
    const d = await it.world.run(outside.createFolder(workspace.root, "d"));
    const e = await it.world.run(outside.createFolder(workspace.root, "e"));
    const n = await it.world.run(outside.createFolder(d.id, "n"));
    expect(await it.names()).toEqual(["d", "e"]);
    held = d.id;
    const listed = it.calls().list("d");
    await it.until(() => answers.length > 0);
    // The journal tells of it, another listing is past it, and the journal goes on.
    await it.world.run(outside.deleteNode(n.id));
    await it.until(() => it.rows().cursor() >= it.world.position());
    expect(await it.world.run(it.calls().list("e"))).toEqual([]);
    await it.world.run(outside.patchNode(e.id, { attributes: { mode: 0o700 } }));
    await it.until(() => it.rows().cursor() >= it.world.position());
    held = "";
    for (const answer of answers) answer();
    expect(await it.world.run(listed)).toEqual([]);
    expect(shown).not.toContain(true);
  });
});
