/** A gateway without positions, and a mount whose wall clock is set: nothing waits for the clock, or is forgotten for it. */
import { expect, test } from "vitest";
import { begin, there } from "./support/one-world.ts";

const HOUR = 3_600_000;
/** Longer than the settle time, and some rounds of looking. */
const SETTLED_MS = 7 * 60_000;

const LACKS = [
  { what: "positions", lacks: ["positions", "journal"] },
  { what: "positions and revisions", lacks: ["positions", "journal", "revisions"] },
] as const;

/** Deletes at the gateway what is there under this name. */
async function remove({ world }: Awaited<ReturnType<typeof begin>>, name: string): Promise<void> {
  const { items } = await world.run(world.outside.listFolder(world.workspace.root, { name }));
  const [node] = items;
  if (node === undefined) throw new Error(`there is no ${name}`);
  await world.run(world.outside.deleteNode(node.id, { ifRevision: node.revision }));
}

test.each(LACKS)("without $what: what was written while the clock was ahead is seen to go", async ({ lacks }) => {
  const it = await begin(true, {}, { lacks });
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

test.each(LACKS)("without $what: what was removed stays away when the clock was ahead before", async ({ lacks }) => {
  const it = await begin(true, {}, { lacks });
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

test.each(LACKS)("without $what: what was removed stays away when the clock goes ahead then", async ({ lacks }) => {
  const it = await begin(true, {}, { lacks });
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
  const it = await begin(true, {}, { lacks: ["positions", "journal"] });
  await it.save("a");
  await it.drain();
  const metadata = it.metadata();
  const later = it.world.clock.wallClock() + HOUR;
  metadata.transaction(() => {
    for (const key of ["cursor", "indexed", "written"] as const) metadata.settings.set(key, String(later));
    const root = metadata.settings.get("root") ?? "";
    for (const { id, base } of metadata.nodes.below(root)) {
      if (base !== null) metadata.nodes.update(id, { base: { ...base, position: later } });
    }
  });
  await it.again("crash");
  expect(await it.names()).toEqual(["a"]);
  await remove(it, "a");
  await it.world.clock.advance(SETTLED_MS);
  expect(await it.names()).toEqual([]);
});
