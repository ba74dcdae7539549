/** What a drain asks of the gateway while it waits for it. */
import { expect, test } from "vitest";
import { RemoteError } from "../../src/client/errors.ts";
import type { Context } from "../../src/vfs/context.ts";
import { isSettled } from "../../src/vfs/drain.ts";
import { makeWorld } from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;

test("whether the index shows everything is not asked while the gateway wants a pause", async () => {
  const { context, metadata, clock } = await makeWorld();
  let asked = 0;
  const listFolder = async () => {
    asked += 1;
    if (asked > 1) return { items: [], totalCount: 0, pageNo: 1, pageSize: 1, asOf: 7, next: null };
    throw new RemoteError("throttled", "too many requests", { retryAfterMs: 60_000 });
  };
  const asking: Context = { ...context, client: { ...context.client, listFolder } };
  for (const what of ["written", "cursor"] as const) metadata.settings.set(what, "7");
  for (let waited = 0; waited < 59_000; waited += 250) {
    expect(await isSettled(asking, SIGNAL)).toBe(false);
    await clock.advance(250);
  }
  expect(asked).toBe(1);
  await clock.advance(1_000);
  expect(await isSettled(asking, SIGNAL)).toBe(true);
});
