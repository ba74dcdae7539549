/** A gateway that shows only heads: content on its way to another node stays here until it has arrived, whatever the cache may hold. */
import { expect, test } from "vitest";
import { hashOf } from "../support/bytes-world.ts";
import { begin, there } from "./support/one-world.ts";

test("renamed over another while offline, and its node deleted elsewhere before that was sent", {
  timeout: 120_000,
}, async () => {
  const it = await begin(true, {}, { lacks: ["versions"], settings: { cacheLimit: 0 } });
  const { world, mount, calls, metadata } = it;
  const { outside, workspace } = world;
  await it.save("a", "content of a");
  await it.save("b", "content of b");
  await it.drain();
  const content = await it.content("a");
  const reader = await world.run(calls().open("a", {}));
  await world.run(calls().read(reader, 0, 100));
  mount.weather.isOffline = true;
  await world.clock.advance(10_000);
  await it.rename("a", "b");
  await world.run(calls().close(reader));
  // The cache may hold nothing.
  await world.clock.advance(10_000);
  const { items } = await world.run(outside.listFolder(workspace.root, { name: "a" }));
  const [node] = items;
  if (node === undefined) throw new Error("it is gone");
  await world.run(outside.deleteNode(node.id, { ifRevision: node.revision }));
  mount.weather.isOffline = false;
  await it.ends(["b"]);
  expect((await there(world)).get("b")?.content).toBe(hashOf(Buffer.from(content)));
  // It goes like everything else once it is the node's own.
  expect(await it.content("b")).toBe(content);
  await world.clock.advance(10_000);
  expect(metadata().lives.totalBytes()).toBe(0);
});
