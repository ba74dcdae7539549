/** A daemon that gives way leaves nothing behind that the kernel had forgotten: its successor would keep it for good. */
import { expect, test } from "vitest";
import { begin } from "./support/one-world.ts";

test("what the kernel forgot right before a reload is gone when the daemon has left", async () => {
  const { world, mount, save, unlink, metadata } = await begin(true);
  await save("a");
  await world.clock.advance(10_000);
  await unlink("a");
  const engine = mount.process?.engine;
  if (engine === undefined) throw new Error("the mount is down");
  const { inodes } = metadata();
  const nameless = () => inodes.nameless(0, inodes.newestNameless(), 10).length;
  await world.run(engine.leave(async () => {}));
  expect([nameless(), engine.context.bytes.forgotten.size]).toEqual([0, 0]);
});
