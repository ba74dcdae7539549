/**
 * A program writes other bytes over as many, and the mount dies before it answers: that was done or not. While the
 * network keeps contents from being looked at names and sizes do not tell, so either is right, until one is seen.
 */
import { expect, test } from "vitest";
import { playHistory } from "./support/history.ts";
import { createModel } from "./support/model.ts";
import { createPaired } from "./support/paired.ts";
import { runProgram } from "./support/programs.ts";
import { readFile } from "./support/tree.ts";

/** Long after the write is answered. */
const TICKS = 90;

const WEATHERS = [
  { what: "offline", isOffline: true, faultShare: 0 },
  { what: "failing", isOffline: false, faultShare: 0.5 },
];

test.each(WEATHERS)("killed at any moment of it, and once more, while $what", async ({ isOffline, faultShare }) => {
  for (let ticks = 0; ticks < TICKS; ticks += 1) {
    const death = {
      do: "crash",
      mount: 0,
      program: { do: "overwrite", path: "a", at: 0, size: 1 },
      ticks,
      ms: 0,
    } as const;
    const history = playHistory(
      [
        { do: "run", mount: 0, program: { do: "save", path: "a", size: 1 } },
        { do: "weather", mount: 0, latencyMs: 0, isOffline, faultShare },
        death,
        death,
      ],
      { seed: 1, mounts: 1 },
    );
    await expect(history, `${ticks} ticks`).resolves.toBeDefined();
  }
});

/** `a` was "a;"; writing "b;" over it was cut off, in weather that hides what came of it. */
async function cutOff(isDone: boolean) {
  const mount = createModel();
  const weather = { isClear: true };
  let isDying = false;
  const dying: typeof mount = {
    ...mount,
    async write(...args) {
      if (isDone || !isDying) await mount.write(...args);
      if (isDying) await new Promise(() => {});
    },
  };
  const paired = createPaired(dying, createModel(), () => !weather.isClear);
  await runProgram(paired.calls, { do: "save", path: "a", size: 1 }, "a");
  Object.assign(weather, { isClear: false });
  isDying = true;
  const overwrite = (calls: typeof paired.calls, label: string) =>
    runProgram(calls, { do: "overwrite", path: "a", at: 0, size: 1 }, label);
  void overwrite(paired.calls, "b");
  await new Promise((resolve) => setImmediate(resolve));
  await paired.crashed(mount);
  await paired.compare(false);
  Object.assign(weather, { isClear: true });
  return {
    paired,
    read: async () => (await readFile(paired.calls, "a")).toString(),
    /** Nobody asked for that. */
    becomes: (label: string) => overwrite(mount, label),
  };
}

const OUTCOMES = [
  { isDone: true, content: "b;", other: "a" },
  { isDone: false, content: "a;", other: "b" },
];

test.each(OUTCOMES)("what it came to (done: $isDone) is right", async ({ isDone }) => {
  const { paired } = await cutOff(isDone);
  await paired.compare(true);
});

test.each(OUTCOMES)(
  "what it came to (done: $isDone), once read, is so for good",
  async ({ isDone, content, other }) => {
    const { paired, read, becomes } = await cutOff(isDone);
    expect(await read()).toBe(content);
    await becomes(other);
    await expect(paired.compare(true)).rejects.toThrow("a: content is");
  },
);

test.each(OUTCOMES)("what is neither (done: $isDone) is wrong", async ({ isDone }) => {
  const { paired, becomes } = await cutOff(isDone);
  await becomes("c");
  await expect(paired.compare(true)).rejects.toThrow(/a: content is .* -- or: a: content is/);
});
