/**
 * What somebody else changes is told to the kernel: a history in which each kind of thing is kept there
 * and then changed elsewhere; and each word to the kernel left out in turn is noticed.
 */
import { expect, test } from "vitest";
import type { KernelCache, KernelNews } from "../../src/vfs/kernel-cache.ts";
import { playHistory } from "./support/history.ts";
import type { Sabotage } from "./support/mount.ts";
import type { Program } from "./support/programs.ts";
import type { Step } from "./support/steps.ts";

const run = (mount: number, program: Program): Step => ({ do: "run", mount, program });
const wait = (ms: number): Step => ({ do: "wait", ms });

/** Looks at everything, so that the kernel of the mount keeps it; a listing when it is made for the second time. */
const look = (mount: number): Step[] => [
  ...["", "d", "", "d"].map((path) => run(mount, { do: "list", path })),
  ...["a", "b", "d/a", "d/b"].map((path) => run(mount, { do: "read", path })),
];

const CHANGED: readonly Step[] = [
  run(0, { do: "mkdir", path: "d" }),
  run(0, { do: "save", path: "a", size: 20 }),
  run(0, { do: "save", path: "d/a", size: 20 }),
  wait(6_000),
  ...look(1),
  // A name that was absent, content, a name that goes, one that comes, attributes.
  run(0, { do: "save", path: "b", size: 5 }),
  run(0, { do: "save", path: "a", size: 30 }),
  run(0, { do: "rename", path: "d/a", to: "d/b" }),
  wait(6_000),
  ...look(1),
  run(0, { do: "utimens", path: "d/b", seconds: 77 }),
  run(0, { do: "unlink", path: "a" }),
  wait(6_000),
  ...look(1),
];

/** Nobody hears anything any more, and then again. */
const CUT_OFF: readonly Step[] = [
  ...CHANGED,
  { do: "weather", mount: 1, isOffline: true, latencyMs: 0, faultShare: 0 },
  wait(45_000),
  run(0, { do: "save", path: "a", size: 40 }),
  wait(5_000),
  { do: "weather", mount: 1, isOffline: false, latencyMs: 0, faultShare: 0 },
  wait(10_000),
  ...look(1),
];

const without = (left: Partial<KernelNews>): Sabotage => ({
  kernelCache: (cache: KernelCache) => ({ ...cache, tell: (news, known) => cache.tell({ ...news, ...left }, known) }),
});

test.each([
  ["changed elsewhere", CHANGED],
  ["while nobody could tell", CUT_OFF],
])("what is kept is what there is: %s", async (_, steps) => {
  for (const seed of [1, 2, 3, 4]) await playHistory(steps, { mounts: 2, seed });
});

test.each<[string, readonly Step[], Sabotage, RegExp]>([
  ["names", CHANGED, without({ names: [] }), /was not told: .*is kept as/],
  ["attributes", CHANGED, without({ inodes: [] }), /was not told: attributes/],
  [
    "that a listing is another",
    CHANGED,
    { engine: ({ context }) => void Object.assign(context.kernel.listed, { delete: () => false }) },
    /was not told: folder/,
  ],
  [
    "that nothing is sure any more",
    CUT_OFF,
    { kernelCache: (cache) => ({ ...cache, everything() {} }) },
    /kept for long/,
  ],
])("the kernel is not told of %s: noticed", async (_, steps, sabotage, fault) => {
  await expect(playHistory(steps, { mounts: 2, seed: 1, sabotage })).rejects.toThrow(fault);
});
