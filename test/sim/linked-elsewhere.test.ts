/** A file gets one more name on one mount while on another one, which has not heard of that, the name it has becomes another file's. */
import { expect, test } from "vitest";
import { SEED } from "../support/seed.ts";
import type { Mount } from "./mount.ts";
import { type Program, runProgram } from "./programs.ts";
import { readFile } from "./tree.ts";
import { createWorld } from "./world.ts";

/** Nothing that waits to see whether somebody else does it waits longer. */
const TURNS_MS = 150_000;

async function begin() {
  const world = await createWorld({ seed: SEED, mounts: ["alpha", "beta"] });
  const [alpha, beta] = world.mounts;
  if (alpha === undefined || beta === undefined) throw new Error("two mounts");
  const calls = ({ process }: Mount) => {
    if (process === undefined) throw new Error("down");
    return process.kernel;
  };
  const run = (mount: Mount, what: Program, label = "") => world.run(runProgram(calls(mount), what, label));
  const drain = async (mount: Mount) => {
    const drained = mount.process?.engine.drain({ settle: true, signal: new AbortController().signal });
    expect(await world.run(drained ?? Promise.reject(new Error("down")))).toEqual({ drained: true, left: [] });
  };
  const shown = async (mount: Mount) => {
    const all: Record<string, string> = {};
    for (const name of await world.run(calls(mount).list(""))) {
      const text = (await world.run(readFile(calls(mount), name))).toString("latin1");
      all[name] = text.slice(0, text.indexOf(";"));
    }
    return all;
  };

  return {
    world,
    alpha,
    beta,
    run,
    drain,
    shown,
    async ends() {
      await world.clock.advance(20_000);
      for (const mount of world.mounts) await drain(mount);
      await world.clock.advance(TURNS_MS);
      world.check();
      return [await shown(alpha), await shown(beta)];
    },
  };
}

/** What both show in the end; `saved`: which of the two is written first. */
async function renamedOver(saved: readonly string[]): Promise<Record<string, string>[]> {
  const { world, alpha, beta, run, drain, shown, ends } = await begin();
  for (const path of saved) {
    await run(alpha, { do: "save", path, size: 40 }, `of ${path}`);
    await world.clock.advance(5_000);
  }
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  await shown(beta);
  beta.weather.isOffline = true;
  await run(beta, { do: "rename", path: "f", to: "a" });
  await run(alpha, { do: "link", path: "a", to: "b" });
  await drain(alpha);
  beta.weather.isOffline = false;
  return ends();
}

test.each([
  { saved: ["f", "a"], which: "older" },
  { saved: ["a", "f"], which: "newer" },
])("a $which file that takes the name is kept, and the new name has what it was linked to", async ({ saved }) => {
  const both = { a: "of f", b: "of a" };
  expect(await renamedOver(saved)).toEqual([both, both]);
});

test("written by a new name that has no node yet, the others removed, and one of those saved elsewhere: two files", async () => {
  const { world, alpha, beta, run, drain, shown, ends } = await begin();
  await run(alpha, { do: "save", path: "a", size: 40 }, "old");
  await run(alpha, { do: "link", path: "a", to: "b" });
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  await shown(beta);
  alpha.weather.isOffline = true;
  await run(alpha, { do: "link", path: "a", to: "c" });
  await run(alpha, { do: "overwrite", path: "c", at: 0, size: 40 }, "alpha");
  for (const path of ["a", "b"]) await run(alpha, { do: "unlink", path });
  await world.clock.advance(5_000);
  await run(beta, { do: "overwrite", path: "a", at: 0, size: 40 }, "beta");
  await drain(beta);
  alpha.weather.isOffline = false;
  // What was saved by one of the names that are removed here lives on under it.
  const both = { a: "beta", c: "alpha" };
  expect(await ends()).toEqual([both, both]);
});
