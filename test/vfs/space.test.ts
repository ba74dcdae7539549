/** Looking at the disk now and then, and its end. */
import { expect, test } from "vitest";
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
