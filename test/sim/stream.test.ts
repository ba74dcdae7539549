/**
 * The journal's stream tells of a change long before the next look at its pages would; where it is not
 * there, pages do; and a stream that breaks is taken up again, without loss and without doing anything twice.
 */
import { expect, test } from "vitest";
import type { Fault } from "./support/transport.ts";
import { createWorld, type World } from "./support/world.ts";

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
  const fresh = mount?.process?.engine.context.fresh;
  if (kernel === undefined || fresh === undefined) throw new Error("no mount");
  const ms = async (isSo: () => Promise<boolean>) => {
    const start = world.clock.elapsed();
    while (!(await world.run(isSo()))) {
      if (world.clock.elapsed() - start > 10 * 60_000) throw new Error("never");
      await world.clock.advance(50);
    }
    return world.clock.elapsed() - start;
  };
  const isThere = (name: string) => async () => (await kernel.list("")).includes(name);
  await ms(async () => fresh.isLive());
  // Once the stream is there, a page tells what came before it.
  await world.clock.advance(5_000);
  expect(await world.run(kernel.list(""))).toEqual([]);
  asked.length = 0;
  return { world, asked, ms, isThere, fresh };
}

const make = (world: World, name: string) => world.run(world.outside.createFolder(world.workspace.root, name));

test("what comes by the stream is shown at once, and no page is asked for", async () => {
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

test("without a stream pages tell, and the stream is asked for ever more seldom", async () => {
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
] as const)("what is told %s and cannot be applied is not live, though the journal is heard of", async (_, stream) => {
  let fault: Fault | undefined;
  const { world, ms, isThere, fresh } = await begin(
    () => stream,
    () => fault,
  );
  try {
    fault = "lost-before";
    await make(world, "a");
    expect(await ms(async () => !fresh.isLive())).toBeLessThan(2 * 60_000);
    fault = undefined;
    await ms(isThere("a"));
    await ms(async () => fresh.isLive());
    world.check();
  } finally {
    world.end();
  }
});
