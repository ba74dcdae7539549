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

/** What becomes of the request that is ended. */
const ARRIVALS = [
  { how: "it is lost on the way", fault: "silent-before" },
  { how: "it arrives later", fault: "late" },
  { how: "it was carried out", fault: "silent-after" },
] as const;
const GONE = [
  { what: "removed", left: ["d", "other"] },
  { what: "renamed over", left: ["d", "d/a"] },
  { what: "in a folder that is removed", left: ["other"] },
] as const;

test.each(GONE.flatMap((gone) => ARRIVALS.map((arrival) => ({ ...gone, ...arrival }))))(
  "$what while it is sent, $how: the upload ends at once, a drain does not wait for it, and nothing of it stays",
  async ({ what, left, fault }) => {
    for (const isVersion of [false, true]) {
      const it = await begin(true);
      const { world, calls } = it;
      await it.save("other");
      await world.run(calls().mkdir("d"));
      if (isVersion) await it.save("d/a", "older");
      await it.drain();
      let upload: AbortSignal | undefined;
      it.once(fault, ({ body, signal }) => {
        if (body?.kind === "upload") upload = signal;
        return upload !== undefined;
      });
      await it.save("d/a");
      await it.until(() => upload !== undefined);
      expect(upload?.aborted).toBe(false);
      if (what === "renamed over") await it.rename("other", "d/a");
      else await it.unlink("d/a");
      if (what === "in a folder that is removed") await world.run(calls().rmdir("d"));
      expect(upload?.aborted).toBe(true);
      const begun = world.clock.elapsed();
      await it.drain();
      expect(world.clock.elapsed() - begun).toBeLessThan(5_000);
      await it.ends(left);
    }
  },
);
