/**
 * A workspace with a quota: files that do not fit wait here, programs get EDQUOT in time, and free space is used once
 * there is some.
 */
import { expect, test } from "vitest";
import { ALL_FEATURES } from "../../src/contract/features.ts";
import type { Node } from "../../src/contract/resources.ts";
import { CALLER } from "../engine/support/bytes-world.ts";
import { PLAIN } from "../support/features.ts";
import { codeOf } from "./support/calls.ts";
import type { Sabotage } from "./support/mount.ts";
import { begin, there } from "./support/one-world.ts";
import { runProgram, textOf } from "./support/programs.ts";

const TIMEOUT = { timeout: 120_000 };

const HOUR = 3_600_000;

async function small(quota: number | undefined, sabotage: Sabotage = {}, more: Parameters<typeof begin>[1] = {}) {
  const one = await begin(sabotage, more);
  const { world, calls, engine, asked } = one;
  world.setQuota(quota);
  await one.again("remount");
  const said = (work: Promise<unknown>) => world.run(work.then(() => "done", codeOf));
  return {
    ...one,
    save: (path: string, size: number) => said(runProgram(calls(), { do: "save", path, size }, path)),
    said,
    refusals: () => asked.filter((line) => line.endsWith("507")).length,
    there: async () => [...(await there(world)).keys()],
    node: async (name: string): Promise<Node> => {
      const { items } = await world.run(world.outside.listFolder(world.workspace.root, { name }));
      if (items[0] === undefined) throw new Error(`there is no ${name}`);
      return items[0];
    },
    async space() {
      const { blocks, free, available, blockSize } = await world.run(engine().fileSystem.statfs(CALLER));
      return { total: blocks * blockSize, free: free * blockSize, available: available * blockSize };
    },
  };
}

test(
  "a file that the gateway has no room for waits, can be read, is reported, and goes when others make room",
  TIMEOUT,
  async () => {
    const { world, save, queue, refusals, there, engine, content, node, again, unlink } = await small(undefined);
    expect(engine().status().quota).toBe(undefined);
    // Told by a refusal alone.
    world.setQuota(100);
    expect(await save("large", 90)).toBe("done");
    await world.clock.advance(10_000);
    expect(await save("more", 60)).toBe("done");
    await world.clock.advance(10_000);
    expect(refusals()).toBe(1);
    expect(engine().status()).toMatchObject({ parked: 0, quota: { limit: 100, used: 90, waiting: 60 } });
    expect(engine().status().paused).toContain("over quota by 50 bytes");
    const [item, ...others] = await queue();
    expect([item?.path, item?.what, item?.state, others]).toEqual(["/more", "upload", "waiting", []]);
    expect(item?.why).toContain("over quota by 50 bytes");
    const [full, fits] = [await save("more bytes", 1), await world.run(engine().fileSystem.statfs(CALLER))];
    expect([full, fits.available]).toEqual(["EDQUOT", 0]);
    await unlink("more bytes");
    const drained = await world.run(engine().drain({ settle: false, signal: new AbortController().signal }));
    expect(drained).toEqual({ drained: false, left: [`/more: ${item?.why}`] });
    await again("crash");
    await world.clock.advance(HOUR);
    expect(await world.run(engine().retry())).toMatchObject({ retried: 1 });
    await world.clock.advance(HOUR);
    // It is the workspace that is asked, not the upload that is tried.
    expect(refusals()).toBeLessThan(4);
    expect([await there(), await content("more")]).toEqual([["large"], textOf("more", 60)]);
    const { id, revision } = await node("large");
    await world.run(world.outside.deleteNode(id, { ifRevision: revision }));
    await world.clock.advance(30_000);
    expect([await there(), await queue()]).toEqual([["more"], []]);
    expect(engine().status()).toMatchObject({ dirty: 0, quota: { limit: 100, used: 60, waiting: 0 } });
    expect(engine().status().paused).toBe(undefined);
  },
);

test(
  "a file that waits for room makes way for a folder made elsewhere under its name, whose files can be removed",
  TIMEOUT,
  async () => {
    const { world, save, calls, there, names, unlink, node, engine } = await small(undefined);
    expect(await save("large", 60)).toBe("done");
    await world.clock.advance(10_000);
    world.setQuota(100);
    expect(await save("a", 60)).toBe("done");
    await world.clock.advance(10_000);
    expect([await there(), engine().status().quota?.waiting]).toEqual([["large"], 60]);
    await world.run(world.outside.createFolder(world.workspace.root, "a"));
    const [{ id, revision }, folder] = [await node("large"), await node("a")];
    await world.run(world.outside.patchNode(id, { parentId: folder.id }, { ifRevision: revision }));
    await world.clock.advance(20_000);
    expect(await names()).toEqual(["a", expect.stringContaining("conflict")]);
    expect(await world.run(calls().list("a"))).toEqual(["large"]);
    await unlink("a/large");
    await world.clock.advance(40_000);
    expect(await there()).toEqual(["a", expect.stringContaining("conflict")]);
  },
);

test(
  "with a larger quota, or none, waiting files go; a smaller one is known when it is asked for",
  TIMEOUT,
  async () => {
    const { world, save, there, engine, refusals } = await small(200);
    expect(await save("a", 150)).toBe("done");
    await world.clock.advance(10_000);
    world.setQuota(160);
    await world.clock.advance(20_000);
    expect(engine().status().quota).toEqual({ limit: 160, used: 150, waiting: 0 });
    expect(await save("b", 20)).toBe("EDQUOT");
    world.setQuota(undefined);
    await world.clock.advance(20_000);
    expect(engine().status().quota).toBe(undefined);
    expect(await save("b", 2_000)).toBe("done");
    await world.clock.advance(10_000);
    expect([await there(), refusals()]).toEqual([["a", "b"], 0]);
  },
);

test(
  "a program gets EDQUOT when it adds bytes that will not fit, sent or not, and never when it frees some",
  TIMEOUT,
  async () => {
    const { world, save, said, calls, names, unlink, there, ends, space, mount, refusals } = await small(40_960);
    const { total } = await space();
    expect([total, await space()]).toEqual([40_960, { total, free: total, available: total }]);
    await names();
    mount.weather.isOffline = true;
    await world.clock.advance(5_000);
    expect(await save("a", 20_480)).toBe("done");
    expect(await save("b", 16_384)).toBe("done");
    expect((await space()).available).toBe(4_096);
    const fd = await world.run(calls().open("b", { write: true }));
    const write = (offset: number, size: number) => said(calls().write(fd, offset, Buffer.alloc(size, 1)));
    expect(await write(16_384, 4_097)).toBe("EDQUOT");
    expect(await said(calls().ftruncate(fd, 20_481))).toBe("EDQUOT");
    expect((await world.run(calls().fstat(fd))).size).toBe(16_384);
    expect(await write(16_384, 4_096)).toBe("done");
    expect((await space()).available).toBe(0);
    // In place nothing is added.
    expect(await write(0, 20_480)).toBe("done");
    expect([await said(calls().mkdir("names")), await save("names/empty", 0)]).toEqual(["done", "done"]);
    expect(await said(calls().link("a", "d"))).toBe("EDQUOT");
    expect(await said(calls().rename("a", "e"))).toBe("done");
    expect(await said(calls().ftruncate(fd, 10))).toBe("done");
    expect(await write(10, 20_470)).toBe("done");
    await world.run(calls().close(fd));
    await unlink("e");
    expect(await save("c", 20_480)).toBe("done");
    mount.weather.isOffline = false;
    await ends(["b", "c", "names", "names/empty"]);
    expect([await there(), refusals()]).toEqual([["b", "c", "names", "names/empty"], 0]);
  },
);

test.each([
  { tier: "full", features: ALL_FEATURES },
  { tier: "plain", features: PLAIN },
])(
  "a $tier gateway: in a full workspace files can be renamed over each other, and made smaller",
  TIMEOUT,
  async ({ features }) => {
    const { world, save, rename, ends, calls, engine, content } = await small(100, {}, { features });
    expect([await save("old", 40), await save("new", 60)]).toEqual(["done", "done"]);
    await world.clock.advance(20_000);
    await rename("new", "old");
    await ends(["old"]);
    expect([engine().status().quota?.used, (await content("old")).length]).toEqual([60, 60]);
    expect(await save("other", 40)).toBe("done");
    await world.clock.advance(20_000);
    await world.run(calls().truncate("old", 10));
    await ends(["old", "other"]);
    expect(engine().status().quota).toEqual({ limit: 100, used: 50, waiting: 0 });
  },
);

test("one more name for a large file counts with its size", TIMEOUT, async () => {
  const { save, said, calls, ends, refusals } = await small(1_000);
  expect(await save("a", 400)).toBe("done");
  expect([await said(calls().link("a", "b")), await said(calls().link("a", "c"))]).toEqual(["done", "EDQUOT"]);
  expect([await said(calls().truncate("a", 501)), await said(calls().truncate("a", 500))]).toEqual(["EDQUOT", "done"]);
  await ends(["a", "b"]);
  expect(refusals()).toBe(0);
});

test("a gateway that does not say how much room is left is asked now and then, not all the time", TIMEOUT, async () => {
  const { world, mount, rules, save } = await small(100);
  expect(await save("a", 90)).toBe("done");
  await world.clock.advance(20_000);
  let asked = 0;
  rules.choose = ({ path }) => {
    if (!path.startsWith("/v1/workspaces")) return undefined;
    asked += 1;
    return "failed";
  };
  mount.weather.latencyMs = 4;
  expect(await save("b", 20)).toBe("EDQUOT");
  expect(asked).toBeLessThan(25);
});

test("an answer that is stored at the second try counts once", TIMEOUT, async () => {
  let undone = 0;
  let isSecond = false;
  // What is written down of an answer is undone at first, as by any mistake, and done again.
  const twice: Sabotage = {
    engine(_, rows) {
      rows.function("once", () => {
        isSecond = !isSecond;
        if (!isSecond) return 0;
        undone += 1;
        throw new Error("undone");
      });
      rows.exec("CREATE TEMP TRIGGER once BEFORE DELETE ON main.attempt BEGIN SELECT once(); END");
      return {};
    },
  };
  const { world, save, engine, unlink } = await small(1_000, twice);
  expect([await save("a", 400), await save("b", 100)]).toEqual(["done", "done"]);
  await world.clock.advance(5_000);
  expect(engine().status().quota).toEqual({ limit: 1_000, used: 500, waiting: 0 });
  await unlink("a");
  await world.clock.advance(5_000);
  expect(engine().status().quota).toEqual({ limit: 1_000, used: 100, waiting: 0 });
  expect(undone).toBeGreaterThanOrEqual(3);
});

test("with durability remote, close and fsync say that there is no room", TIMEOUT, async () => {
  const { world, calls, said, save, ends } = await small(undefined, {}, { settings: { durability: "remote" } });
  expect(await save("a", 90)).toBe("done");
  // Told by the refusal alone.
  world.setQuota(100);
  const fd = await world.run(calls().open("b", { write: true, create: true }));
  await world.run(calls().write(fd, 0, Buffer.alloc(20, 1)));
  expect(await said(calls().fsync(fd))).toBe("EDQUOT");
  expect(await said(calls().close(fd))).toBe("EDQUOT");
  world.setQuota(200);
  await ends(["a", "b"]);
  expect(await save("b", 100)).toBe("done");
});

test(
  "the quota applies to a writer of a file that is open for reading already, and both see the bytes that fit",
  TIMEOUT,
  async () => {
    const { world, save, said, calls, ends, content, refusals } = await small(100);
    expect(await save("a", 60)).toBe("done");
    await world.clock.advance(20_000);
    const reader = await world.run(calls().open("a", {}));
    const writer = await world.run(calls().open("a", { write: true }));
    const write = (offset: number, size: number) => said(calls().write(writer, offset, Buffer.alloc(size, "n")));
    expect([await write(60, 41), await said(calls().ftruncate(writer, 101))]).toEqual(["EDQUOT", "EDQUOT"]);
    expect((await world.run(calls().fstat(reader))).size).toBe(60);
    expect([await write(60, 40), await write(100, 1)]).toEqual(["done", "EDQUOT"]);
    expect((await world.run(calls().read(reader, 60, 100))).toString()).toBe("n".repeat(40));
    await world.run(calls().close(reader));
    await world.run(calls().close(writer));
    await ends(["a"]);
    expect([(await content("a")).length, refusals()]).toEqual([100, 0]);
  },
);
