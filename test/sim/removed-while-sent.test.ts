/** A file that is removed while its bytes are on their way: they go when that is over, and not with the next mount. */
import { expect, test } from "vitest";
import { begin } from "./support/one-world.ts";

/** On the disk, of a small file. */
const BLOCK = 4096;
/** What becomes of the request. */
const ENDS = [
  { how: "it arrives", fault: undefined },
  { how: "it fails", fault: "failed" },
  { how: "its answer is lost", fault: "silent-after" },
  { how: "it is lost", fault: "lost-before" },
] as const;

test.each(ENDS)(
  "removed, and forgotten by the kernel, while it is sent, and $how: nothing of it stays",
  async (given) => {
    const it = await begin(true);
    const { world, mount, calls, metadata } = it;
    await it.save("kept");
    await it.drain();
    mount.weather.latencyMs = 4_000;
    if (given.fault !== undefined) it.once(given.fault, ({ method }) => method === "POST");
    await it.save("a");
    await it.until(() => mount.process?.engine.status().uploading === 1);
    const held = () => metadata().lives.totalBytes();
    expect(held()).toBe(2 * BLOCK);
    await it.unlink("a");
    calls().dropCaches();
    await world.clock.advance(1_000);
    mount.weather.latencyMs = 0;
    await world.clock.advance(60_000);
    await it.drain();
    await world.clock.advance(1_000);
    expect(held()).toBe(BLOCK);
    world.check();
    expect([...(await it.names())]).toEqual(["kept"]);
  },
);
