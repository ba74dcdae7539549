/**
 * Many names change at once elsewhere, in chains and rings: whoever looks meanwhile sees the tree
 * before or the tree after, never a gap, a name twice, or a conflict.
 */
import { expect, test } from "vitest";
import { SEED } from "../support/seed.ts";
import type { Calls } from "./calls.ts";
import { runProgram } from "./programs.ts";
import { createWorld } from "./world.ts";

const STEP_MS = 25;
const LIMIT_MS = 60_000;

type Rename = readonly [from: string, to: string];

const CASES: readonly { what: string; folders: readonly string[]; renames: readonly Rename[] }[] = [
  {
    what: "a ring of two",
    folders: ["a", "b"],
    renames: [
      ["a", "t"],
      ["b", "a"],
      ["t", "b"],
    ],
  },
  {
    what: "a ring of four",
    folders: ["a", "b", "c", "d"],
    renames: [
      ["d", "t"],
      ["c", "d"],
      ["b", "c"],
      ["a", "b"],
      ["t", "a"],
    ],
  },
  {
    what: "a chain",
    folders: ["a", "b", "c", "d"],
    renames: [
      ["d", "e"],
      ["c", "d"],
      ["b", "c"],
      ["a", "b"],
    ],
  },
  {
    what: "a folder and one in it change places",
    folders: ["a", "a/b"],
    renames: [
      ["a/b", "t"],
      ["a", "t/b"],
      ["t", "a"],
    ],
  },
];

/** Every path with what tells one folder from another: the mark it was made with. */
async function marked(calls: Calls, path = ""): Promise<string[]> {
  const shown: string[] = [];
  for (const name of await calls.list(path)) {
    const child = path === "" ? name : `${path}/${name}`;
    shown.push(`${child}: ${await calls.getxattr(child, "user.tag")}`, ...(await marked(calls, child)));
  }
  return shown;
}

test.each(CASES)("$what of renames", async ({ folders, renames }) => {
  const world = await createWorld({ seed: SEED, mounts: ["alpha", "beta"] });
  const [alpha, beta] = world.mounts;
  const [here, there] = [alpha?.process, beta?.process];
  if (beta === undefined || here === undefined || there === undefined) throw new Error("two mounts");
  const settle = async () => {
    const limit = new AbortController();
    expect(await world.run(here.engine.drain({ settle: true, signal: limit.signal }))).toMatchObject({ drained: true });
  };
  for (const path of folders) {
    await world.run(here.kernel.mkdir(path));
    await world.run(runProgram(here.kernel, { do: "setxattr", path }, path));
  }
  await settle();
  await world.clock.advance(5_000);
  const before = await world.run(marked(there.kernel));
  expect(before).toEqual(await world.run(marked(here.kernel)));

  beta.weather.isOffline = true;
  for (const [from, to] of renames) await world.run(here.kernel.rename(from, to));
  await settle();
  const after = await world.run(marked(here.kernel));
  expect(after).not.toEqual(before);

  beta.weather.isOffline = false;
  const seen = new Set<string>();
  for (let waited = 0; !seen.has(after.join("\n")); waited += STEP_MS) {
    if (waited > LIMIT_MS) throw new Error(`never seen: ${after.join(", ")}; but ${[...seen].join(" | ")}`);
    await world.clock.advance(STEP_MS);
    there.kernel.dropCaches();
    seen.add((await world.run(marked(there.kernel))).join("\n"));
  }
  await world.clock.advance(15_000);
  there.kernel.dropCaches();
  seen.add((await world.run(marked(there.kernel))).join("\n"));
  world.check();
  expect([...seen]).toEqual([before.join("\n"), after.join("\n")]);
});
