/** Waiting for the next entry of a connection that lasts leaves nothing behind. */
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { unlessAborted } from "../../src/vfs/journal-stream.ts";

test("each round takes its listener off again; an abort ends the waiting, before or after", async () => {
  const connection = new AbortController();
  const { signal } = connection;
  const listeners = () => getEventListeners(signal, "abort").length;
  for (let round = 0; round < 20; round += 1) {
    expect(await unlessAborted(Promise.resolve(round), signal)).toBe(round);
    await expect(unlessAborted(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
  }
  expect(listeners()).toBe(0);
  const never = new Promise<number>(() => {});
  const waiting = unlessAborted(never, signal);
  connection.abort();
  expect(await waiting).toBeUndefined();
  expect(await unlessAborted(never, signal)).toBeUndefined();
});
