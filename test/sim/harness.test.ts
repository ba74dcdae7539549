/** The simulation itself: the same seed is the same history, and what it is there to catch is caught. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { elapsedTime } from "../../src/lib/clocks.ts";
import type { Connection } from "../../src/metadata/database.ts";
import { CallError } from "./support/calls.ts";
import { hearLists } from "./support/heard.ts";
import { playHistory } from "./support/history.ts";
import { createModel } from "./support/model.ts";
import { createPaired } from "./support/paired.ts";
import { runProgram } from "./support/programs.ts";
import { type Step, stepsOf } from "./support/steps.ts";
import { lookAround, readFile } from "./support/tree.ts";

const [steps = []] = fc.sample(stepsOf({ mounts: 2, isOutside: true }, { min: 25, max: 25 }), {
  seed: 7,
  numRuns: 1,
});

test("the same steps and seed are the same history, line by line", async () => {
  const first = await playHistory(steps, { seed: 7, mounts: 2 });
  const second = await playHistory(steps, { seed: 7, mounts: 2 });
  expect(second).toEqual(first);
  expect(first.length).toBeGreaterThan(steps.length);
});

test("another seed is another history", async () => {
  const first = await playHistory(steps, { seed: 7, mounts: 2 });
  const other = await playHistory(steps, { seed: 8, mounts: 2 });
  expect(other).not.toEqual(first);
});

test("a process that dies leaves nothing behind: however many do, no signal has more listeners than calls", async () => {
  const death: Step = { do: "crash", mount: 0, program: { do: "read", path: "a" }, ticks: 3, ms: 0 };
  const warnings: string[] = [];
  const warned = ({ name, message }: Error) => void warnings.push(`${name}: ${message}`);
  process.on("warning", warned);
  try {
    await playHistory([{ do: "lag", path: 0, journal: 0, id: 0 }, ...Array<Step>(15).fill(death)], {
      seed: 1,
      mounts: 2,
    });
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", warned);
  }
  expect(warnings).toEqual([]);
});

test("a folder whose list is answered at the very moment of the question was heard by the list before it", async () => {
  let now = elapsedTime(0);
  const client = { listFolder: async () => ({ items: [] }) } as unknown as Client;
  const heard = hearLists(
    client,
    () => now,
  )({
    prepare: () => ({ all: () => [{ folder: 1, nodeId: "root" }] }),
  } as unknown as Connection);
  const list = async (at: number) => {
    now = elapsedTime(at);
    await client.listFolder("root");
  };
  await list(5_000);
  expect(heard.notSince(elapsedTime(5_000))).toEqual([1]);
  await list(10_000);
  expect(heard.notSince(elapsedTime(5_000))).toEqual([]);
  expect(heard.notSince(elapsedTime(5_001))).toEqual([1]);
});

/** For some of these moments the deletion arrives after the mount made afresh has seen `d`, and before it asks for its list. */
const removedWhile = (ms: number): readonly Step[] => [
  { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
  { do: "run", mount: 0, program: { do: "mkdir", path: "e" } },
  { do: "drain", mount: 0 },
  { do: "weather", mount: 1, isOffline: false, latencyMs: 100, faultShare: 0 },
  { do: "run", mount: 0, program: { do: "rmdir", path: "d" } },
  { do: "wait", ms },
  { do: "fresh", mount: 1 },
];

test("a folder that goes while a mount made afresh looks around is no fault of that mount", async () => {
  let refused = 0;
  for (let ms = 0; ms < 500; ms += 25) {
    const lines = await playHistory(removedWhile(ms), { seed: 1, mounts: 2 });
    const end = lines.findIndex((line) => line.endsWith("end: fair weather"));
    if (lines.slice(0, end).some((line) => line.endsWith("beta GET /v1/nodes: 404"))) refused += 1;
  }
  expect(refused).toBeGreaterThan(0);
});

test("the look-around of a new mount passes over what goes meanwhile, and over nothing else", async () => {
  const model = createModel();
  for (const path of ["d", "e", "e/d"]) await model.mkdir(path);
  const listed: string[] = [];
  const calls = {
    ...model,
    list(path: string) {
      listed.push(path);
      return model.list(path);
    },
    async stat(path: string) {
      const status = await model.stat(path);
      if (path === "d") await model.rmdir("d");
      return status;
    },
  };
  await lookAround(calls);
  expect(listed).toEqual(["", "d", "e", "e/d"]);
  const failing = { ...model, stat: () => Promise.reject(new CallError("EIO", "e")) };
  await expect(lookAround(failing)).rejects.toThrow("EIO");
});

describe("a write that was cut off: what the model allows", () => {
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

  test.each(OUTCOMES)("what became of it (done: $isDone) is accepted", async ({ isDone }) => {
    const { paired } = await cutOff(isDone);
    await paired.compare(true);
  });

  test.each(OUTCOMES)(
    "what became of it (done: $isDone), once it was read, has to stay",
    async ({ isDone, content, other }) => {
      const { paired, read, becomes } = await cutOff(isDone);
      expect(await read()).toBe(content);
      await becomes(other);
      await expect(paired.compare(true)).rejects.toThrow("a: content is");
    },
  );

  test.each(OUTCOMES)("a third content (done: $isDone) is a fault", async ({ isDone }) => {
    const { paired, becomes } = await cutOff(isDone);
    await becomes("c");
    await expect(paired.compare(true)).rejects.toThrow(/a: content is .* -- or: a: content is/);
  });
});
