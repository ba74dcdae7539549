/** Shared runs: nobody gets a run that began before they asked. */
import { expect, test } from "vitest";
import { shareRuns } from "../../src/lib/shared-run.ts";

function controlled() {
  const ends: ((error?: Error) => void)[] = [];
  const run = shareRuns(
    () =>
      new Promise((resolve, reject) => {
        ends.push((error) => (error === undefined ? resolve() : reject(error)));
      }),
  );
  return { run, ends };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await undefined;
}

test("callers that come while one runs share the next", async () => {
  const { run, ends } = controlled();
  const first = run();
  const late = [run(), run(), run()];
  await settle();
  expect(ends.length).toBe(1);
  ends[0]?.();
  await first;
  await settle();
  expect(ends.length).toBe(2);
  const afterwards = run();
  ends[1]?.();
  await Promise.all(late);
  await settle();
  expect(ends.length).toBe(3);
  ends[2]?.();
  await afterwards;
});

test("a failure is told to those who shared that run, and to nobody else", async () => {
  const { run, ends } = controlled();
  const first = run();
  const second = run();
  ends[0]?.(new Error("disk"));
  await expect(first).rejects.toThrow("disk");
  await settle();
  ends[1]?.();
  await second;
});
