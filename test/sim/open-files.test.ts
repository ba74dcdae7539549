/** Files that programs have open for writing: what a drain sends of them, and for what `durability remote` makes their writers wait. */

import { describe, expect, test } from "vitest";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import { minus } from "../../src/lib/clocks.ts";
import { sleep } from "../../src/lib/runtime.ts";
import { PLAIN, without } from "../support/features.ts";
import type { Calls } from "./support/calls.ts";
import type { Mount } from "./support/mount.ts";
import { begin, begin as beginOne, there } from "./support/one-world.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { gatewayTree, hashOf, readFile } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

describe("drain", () => {
  const SIZE = 40;

  const LIMIT_MS = 600_000;

  const TIERS = [
    ["full", ALL_FEATURES],
    ["plain", PLAIN],
  ] as const;

  const UNHASHED = [
    ["without hashes", without("hashes")],
    ["plain without hashes", { ...PLAIN, hashes: false }],
  ] as const;

  async function begin(mounts: readonly string[], features: Features = ALL_FEATURES) {
    const world = await createWorld({ seed: 1, mounts, features, sabotage: {} });
    const calls = ({ process }: Mount) => process?.kernel ?? expect.unreachable("the mount is down");
    const there = async () => {
      const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
      return Object.fromEntries([...tree].map(([path, { content }]) => [path, content]));
    };
    return {
      world,
      mounts: world.mounts,
      calls,
      there,
      save: (mount: Mount, path: string, label: string) =>
        world.run(runProgram(calls(mount), { do: "save", path, size: SIZE }, label)),
      open: (mount: Mount, path: string) => world.run(calls(mount).open(path, { write: true, create: true })),
      write: (mount: Mount, handle: number, label: string) =>
        world.run(calls(mount).write(handle, 0, bytesOf(label, SIZE))),
      shown: async (mount: Mount, path: string) => (await world.run(readFile(calls(mount), path))).toString("latin1"),
      async drain(mount: Mount) {
        const limit = new AbortController();
        const timer = world.clock.setTimer(LIMIT_MS, () => limit.abort());
        const engine = mount.process?.engine ?? expect.unreachable("the mount is down");
        const result = await world.run(engine.drain({ settle: true, signal: limit.signal }));
        timer.cancel();
        return result;
      },
    };
  }

  const DRAINED = { drained: true, left: [] };

  const text = (label: string) => bytesOf(label, SIZE).toString("latin1");

  test("the same content was written elsewhere: it is agreed, and what else was changed here is sent", async () => {
    const { world, mounts, calls, save, open, write, drain, shown, there } = await begin(["alpha", "beta"]);
    const [alpha, beta] = mounts as [Mount, Mount];
    await save(alpha, "a", "old");
    expect(await drain(alpha)).toEqual(DRAINED);
    await world.clock.advance(4_000);
    await world.run(calls(beta).list(""));
    alpha.weather.isOffline = true;
    await save(alpha, "a", "same");
    const handle = await open(alpha, "a");
    await world.run(calls(alpha).rename("a", "b"));
    await save(beta, "a", "same");
    await world.clock.advance(4_000);
    expect(await drain(beta)).toEqual(DRAINED);
    alpha.weather.isOffline = false;
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(Object.keys(await there())).toEqual(["b"]);
    // Nothing was put in its place: what is written from here on arrives too.
    await write(alpha, handle, "more");
    await world.clock.advance(1_000);
    expect(await drain(alpha)).toEqual(DRAINED);
    expect([await shown(alpha, "b"), await there()]).toMatchObject([text("more"), { b: expect.anything() }]);
  });

  test.each(TIERS)("%s: sent, held open and renamed over another: it arrives under that name", async (_, features) => {
    const { world, mounts, calls, save, open, write, drain, there } = await begin(["alpha"], features);
    const [alpha] = mounts as [Mount];
    await save(alpha, "a", "old");
    expect(await drain(alpha)).toEqual(DRAINED);
    const handle = await open(alpha, "a.tmp");
    await write(alpha, handle, "new");
    await world.run(calls(alpha).fsync(handle));
    await world.clock.advance(20_000);
    const sent = (await there())["a.tmp"];
    await world.run(calls(alpha).rename("a.tmp", "a"));
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(await there()).toEqual({ a: sent });
  });

  test.each(UNHASHED)(
    "%s: replaced elsewhere while it is held open unwritten: the copy of before arrives now",
    async (_, features) => {
      const { world, mounts, calls, save, open, drain, there } = await begin(["alpha", "beta"], features);
      const [alpha, beta] = mounts as [Mount, Mount];
      await save(alpha, "a", "old");
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.clock.advance(4_000);
      await world.run(calls(beta).list(""));
      const { a: old } = await there();
      await open(beta, "a");
      await world.run(calls(beta).rename("a", "a~"));
      await save(beta, "a", "new");
      await save(alpha, "a", "other");
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.clock.advance(20_000);
      expect(await drain(beta)).toEqual(DRAINED);
      expect(Object.values(await there())).toContain(old);
    },
  );

  test.each(TIERS)(
    "%s: the bytes of before are written again while others are under way: they are there",
    async (_, features) => {
      const { world, mounts, save, open, write, drain, there } = await begin(["alpha"], features);
      const [alpha] = mounts as [Mount];
      await save(alpha, "a", "old");
      expect(await drain(alpha)).toEqual(DRAINED);
      const handle = await open(alpha, "a");
      await write(alpha, handle, "new");
      await world.clock.advance(40_000);
      const before = await there();
      alpha.weather.latencyMs = 90_000;
      await write(alpha, handle, "mid");
      await world.clock.advance(40_000);
      await write(alpha, handle, "new");
      await world.clock.advance(1_000);
      alpha.weather.latencyMs = 0;
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await there()).toEqual(before);
    },
  );

  test("offline, the same bytes are written again, and its mode is new: that is still to be sent", async () => {
    const { world, mounts, calls, save, open, write, drain } = await begin(["alpha"]);
    const [alpha] = mounts as [Mount];
    await save(alpha, "a", "x");
    expect(await drain(alpha)).toEqual(DRAINED);
    alpha.weather.isOffline = true;
    await world.clock.advance(60_000);
    const handle = await open(alpha, "a");
    await world.run(calls(alpha).chmod("a", 0o600));
    await write(alpha, handle, "x");
    await world.clock.advance(2_000);
    expect(await drain(alpha)).toMatchObject({ drained: false });
    alpha.weather.isOffline = false;
    expect(await drain(alpha)).toEqual(DRAINED);
  });

  test.each(TIERS)(
    "%s: new content from elsewhere is shown although a program has the file open, and what is changed here of the name is sent",
    async (_, features) => {
      const { world, mounts, calls, save, open, drain, shown } = await begin(["alpha", "beta"], features);
      const [alpha, beta] = mounts as [Mount, Mount];
      const there = async () => {
        const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
        return [...tree].map(([path, { content, mode }]) => ({ path, content, mode }));
      };
      await save(alpha, "a", "old");
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.clock.advance(4_000);
      await world.run(calls(beta).list(""));
      const handle = await open(alpha, "a");
      await save(beta, "a", "new");
      expect(await drain(beta)).toEqual(DRAINED);
      await world.clock.advance(400_000);
      expect(await shown(alpha, "a")).toBe(text("new"));
      const [{ content } = expect.unreachable("it is not there")] = await there();
      for (const mode of [0o600, 0o640, 0o604]) {
        await world.run(calls(alpha).chmod("a", mode));
        expect(await drain(alpha)).toEqual(DRAINED);
        expect(await there()).toEqual([{ path: "a", content, mode }]);
      }
      await world.run(calls(alpha).rename("a", "b"));
      expect(await drain(alpha)).toEqual(DRAINED);
      await world.run(calls(alpha).close(handle));
      await world.clock.advance(4_000);
      expect(await drain(alpha)).toEqual(DRAINED);
      expect(await shown(alpha, "b")).toBe(text("new"));
      expect(await there()).toEqual([{ path: "b", content, mode: 0o604 }]);
    },
  );

  /** Written again whenever somebody else has a turn, and each time more: no snapshot of it stays the newest. */
  async function writeOn(it: Awaited<ReturnType<typeof begin>>, mount: Mount, path: string) {
    const handle = await it.open(mount, path);
    let isOver = false;
    const writing = (async () => {
      for (let size = 1; !isOver; size += 1) {
        await it.calls(mount).write(handle, size, Buffer.from("x"));
        await sleep(it.world.clock, 30);
      }
      await it.calls(mount).close(handle);
    })();
    return async () => {
      isOver = true;
      await it.world.run(writing);
    };
  }

  test.each([
    { what: "a new one", isKnown: false, latencyMs: 0 },
    { what: "one the gateway has", isKnown: true, latencyMs: 0 },
    { what: "a new one, far away", isKnown: false, latencyMs: 400 },
  ])("a file is written again and again ($what): what it was when the drain began arrives", async (given) => {
    const it = await begin(["alpha"]);
    const { world, mounts, save, drain, there } = it;
    const [alpha] = mounts as [Mount];
    // What goes before it, and something else to do first.
    if (given.isKnown) await save(alpha, "log", "old");
    if (given.isKnown) expect(await drain(alpha)).toEqual(DRAINED);
    const before = (await there()).log;
    alpha.weather.latencyMs = given.latencyMs;
    for (let other = 0; other < 20; other += 1) await save(alpha, `other${other}`, `other${other}`);
    const end = await writeOn(it, alpha, "log");
    await world.clock.advance(200);
    const begun = world.clock.elapsed();
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(minus(world.clock.elapsed(), begun)).toBeLessThan(20_000);
    const after = (await there()).log;
    expect(after).toBeDefined();
    expect(after).not.toBe(before);
    await end();
  });

  test("a file is written again and again: it is sent at its maximum age, and after an fsync", async () => {
    const it = await begin(["alpha"]);
    const { world, mounts, calls, there } = it;
    const [alpha] = mounts as [Mount];
    const end = await writeOn(it, alpha, "log");
    await world.clock.advance(310_000);
    const first = (await there()).log;
    expect(first).toBeDefined();
    const handle = await it.open(alpha, "log");
    await world.run(calls(alpha).fsync(handle));
    await world.clock.advance(20_000);
    expect((await there()).log).not.toBe(first);
    await world.run(calls(alpha).close(handle));
    await end();
  });

  test("removed elsewhere, and being written here: a new mode or name of it is not waited for", async () => {
    const { world, mounts, calls, save, open, write, drain, there } = await begin(["alpha", "beta"]);
    const [alpha, beta] = mounts as [Mount, Mount];
    await save(alpha, "a", "old");
    expect(await drain(alpha)).toEqual(DRAINED);
    await world.clock.advance(4_000);
    await world.run(calls(beta).list(""));
    const busy = await open(alpha, "a");
    await write(alpha, busy, "new");
    await world.run(calls(beta).unlink("a"));
    expect(await drain(beta)).toEqual(DRAINED);
    await world.clock.advance(2_000);
    await world.run(calls(alpha).chmod("a", 0o600));
    await world.run(calls(alpha).rename("a", "b"));
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(Object.keys(await there())).toEqual(["b"]);
    await world.run(calls(alpha).close(busy));
    await world.clock.advance(4_000);
    expect(await drain(alpha)).toEqual(DRAINED);
    expect(await world.run(calls(alpha).list(""))).toEqual(["b"]);
  });

  test.each([
    ["renamed over another", false],
    ["renamed to where another was moved away from", true],
  ] as const)("what is waited for is %s: it is waited for all the same", async (_, isMovedAway) => {
    const { world, mount, calls, rules, save } = await beginOne();
    await save("a", "old");
    await world.clock.advance(20_000);
    mount.weather.isOffline = true;
    await save("a.tmp", "new");
    await world.clock.advance(5_000);
    const engine = mount.process?.engine ?? expect.unreachable("the mount is down");
    const limit = new AbortController();
    let result: unknown;
    void engine.drain({ settle: false, signal: limit.signal }).then((value) => {
      result = value;
    });
    await world.clock.advance(1_000);
    if (isMovedAway) await world.run(calls().rename("a", "b"));
    await world.run(calls().rename("a.tmp", "a"));
    // All but its content goes.
    rules.choose = ({ body }) => (body?.kind === "upload" ? "failed" : "none");
    mount.weather.isOffline = false;
    await world.clock.advance(60_000);
    expect(result).toBeUndefined();
    rules.choose = () => "none";
    await world.clock.advance(60_000);
    expect(result).toEqual(DRAINED);
    const tree = await world.run(gatewayTree(world.outside, world.workspace.root));
    expect(tree.get("a")?.content).toBe(hashOf(bytesOf("new", SIZE)));
    limit.abort();
  });
});

describe("durability remote", () => {
  const LIMIT_MS = 10_000;

  const STANDSTILL_MS = 60_000;

  const SIZE = 40;

  const OURS = bytesOf("ours", SIZE);

  const THEIRS = bytesOf("theirs", SIZE);

  const HOW: readonly {
    readonly how: string;
    /** What it has written before, and nobody has sent. */
    readonly before?: Buffer;
    run(calls: Calls, fd: number): Promise<void>;
  }[] = [
    {
      how: "closes it",
      async run(calls, fd) {
        await calls.write(fd, 0, OURS);
        await calls.close(fd);
      },
    },
    {
      how: "syncs it",
      async run(calls, fd) {
        await calls.write(fd, 0, OURS);
        await calls.fsync(fd);
      },
    },
    {
      how: "has written to it, and closes another opening of it",
      before: bytesOf("before", SIZE),
      async run(calls) {
        const other = await calls.open("a", { write: true });
        await calls.write(other, 0, OURS);
        await calls.close(other);
      },
    },
  ];

  const DONE = ["writes it", "removes it"] as const;

  /** How it has ended by now. */
  function endOf(work: Promise<void>): () => string {
    let end = "not yet";
    work.then(
      () => {
        end = "well";
      },
      (error: unknown) => {
        end = String(error);
      },
    );
    return () => end;
  }

  test.each(HOW.flatMap((one) => DONE.map((theirs) => ({ ...one, theirs }))))(
    "somebody $theirs; the program $how",
    async ({ run, theirs, before }) => {
      const it = await begin({}, { settings: { durability: "remote" } });
      const { world, calls } = it;
      const { outside, workspace, clock } = world;
      await it.save("a");
      const [node] = (await world.run(outside.listFolder(workspace.root))).items;
      if (node === undefined) throw new Error("a");
      const fd = await world.run(calls().open("a", { write: true }));
      if (before !== undefined) await world.run(calls().write(fd, 0, before));
      await (theirs === "writes it"
        ? world.run(outside.writeContent(node.id, sourceOf(THEIRS)))
        : world.run(outside.deleteNode(node.id)));
      // It was heard of, and waits for what was written.
      await clock.advance(3_000);
      const ended = endOf(run(calls(), fd));
      await clock.advance(LIMIT_MS);
      expect(ended()).toBe("well");
      const contents = [...(await there(world)).values()].map(({ content }) => content).sort();
      expect(contents).toEqual([hashOf(OURS), ...(theirs === "writes it" ? [hashOf(THEIRS)] : [])].sort());
    },
  );

  test("what waits for a folder that does not get to the gateway is told so, and sent once that does", async () => {
    const it = await begin({}, { settings: { durability: "remote" } });
    const { world, calls } = it;
    await it.names();
    it.rules.choose = ({ method, path }) => (method === "POST" && path === "/v1/nodes" ? "failed" : undefined);
    await world.run(calls().mkdir("d"));
    const fd = await world.run(calls().open("d/f", { write: true, create: true }));
    await world.run(calls().write(fd, 0, OURS));
    const ended = endOf(calls().close(fd));
    await world.clock.advance(STANDSTILL_MS - 1_000);
    expect(ended()).toBe("not yet");
    await world.clock.advance(2_000);
    expect(ended()).toMatch(/^CallError: EIO: .*the gateway does not get it: its folder has to be sent first$/);
    it.rules.choose = () => undefined;
    await it.ends(["d", "d/f"]);
  });
});
