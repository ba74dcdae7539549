/** The gateway fails to tell of one node, now or for good: the others are heard of, and it is once it is told. */
import { expect, test } from "vitest";
import { begin } from "./support/one-world.ts";
import type { Fault } from "./support/transport.ts";

/** A mount that knows both files, and somebody who writes them. */
async function withTwoFiles() {
  const it = await begin(true);
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

test("a node that answers 500 for good: what comes after it is heard of as soon as ever, and it once it answers", async () => {
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

test("what was written is settled without anybody asking for a list", async () => {
  const it = await begin(true);
  it.world.setLag({ path: 3_000, journal: 1_000, id: 0 });
  await it.names();
  await it.save("a");
  await it.world.clock.advance(60_000);
  const { settings } = it.metadata();
  expect(settings.getNumber("written")).toBeGreaterThan(0);
  expect(settings.getNumber("indexed")).toBeGreaterThanOrEqual(settings.getNumber("written"));
});
