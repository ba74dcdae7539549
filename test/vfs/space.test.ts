/** Looking at the disk now and then, and its end. */
import { expect, test } from "vitest";
import type { FsError } from "../../src/vfs/errors.ts";
import { requireRoom } from "../../src/vfs/space.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

test("stopped while it looks at the disk, nobody looks again", async () => {
  const { context, clock } = await createBytesWorld();
  let looks = 0;
  let end = () => {};
  Object.assign(context.disk, {
    look() {
      looks += 1;
    },
    restore: () =>
      new Promise<void>((resolve) => {
        end = resolve;
      }),
  });
  context.space.start();
  await clock.advance(60_000);
  expect(looks).toBe(1);
  end();
  await clock.advance(60_000);
  expect(looks).toBe(2);
  context.space.stop();
  end();
  await clock.advance(60_000);
  expect(looks).toBe(2);
});

test("a full disk is waited for where a name was just removed, whose bytes are on their way out", async () => {
  const { context, clock } = await createBytesWorld();
  let isFull = true;
  Object.assign(context.disk, { look() {}, restore: async () => {}, requireChangeable() {} });
  Object.defineProperty(context.disk, "trouble", { get: () => (isFull ? "full" : undefined) });
  const said = () =>
    requireRoom(context).then(
      () => "room",
      (error: FsError) => error.code,
    );
  expect(await said()).toBe("ENOSPC");

  context.bytes.removedAt = clock.elapsed();
  const waiting = said();
  await clock.advance(300);
  isFull = false;
  await clock.advance(100);
  expect(await waiting).toBe("room");

  isFull = true;
  const inVain = said();
  await clock.advance(2_000);
  expect(await inVain).toBe("ENOSPC");
});
