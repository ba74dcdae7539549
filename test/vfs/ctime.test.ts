/** When something was last changed, as programs are shown it. */
import { expect, test } from "vitest";
import { compareTimes } from "../../src/lib/time.ts";
import { setattr } from "../../src/vfs/attributes.ts";
import { statOf } from "../../src/vfs/stat.ts";
import { CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";

const HOUR_MS = 3_600_000;

test.each([true, false])("a time to come is no change when it comes (open for writing: %s)", async (isOpen) => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(pattern(10));
  const handle = isOpen ? await world.open(world.inode(id), { write: true }) : undefined;
  const { clock, context } = world;
  const ctime = async () => (await statOf(context, world.inode(id))).ctime;
  const begun = { seconds: Math.floor(clock.wallClock() / 1000), nanoseconds: 0 };
  const mtime = { seconds: begun.seconds + 60, nanoseconds: 5 };
  await setattr(context, CALLER, world.inode(id).lineage, { mtime });
  const before = await ctime();
  expect(Math.abs(before.seconds - begun.seconds)).toBeLessThan(2);
  await clock.advance(HOUR_MS);
  expect([await ctime(), (await statOf(context, world.inode(id))).mtime]).toEqual([before, mtime]);
  await setattr(context, CALLER, world.inode(id).lineage, { mode: 0o600 });
  const after = await ctime();
  expect(after.seconds - before.seconds).toBe(HOUR_MS / 1000);
  if (handle === undefined) return;
  await clock.advance(HOUR_MS);
  await world.write(handle, 0, Buffer.from("x"));
  const written = await statOf(context, world.inode(id));
  expect(compareTimes(written.ctime, after)).toBeGreaterThan(0);
  expect(compareTimes(written.ctime, written.mtime)).toBeGreaterThanOrEqual(0);
});
