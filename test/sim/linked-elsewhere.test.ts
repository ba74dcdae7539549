/** A file gets one more name on one mount while on another one, which has not heard of that, the name it has becomes another file's. */
import { expect, test } from "vitest";
import type { Mount } from "./support/mount.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

async function begin() {
  const it = await beginTwo();
  const { world, alpha, beta, calls, labelOf, drain } = it;
  const shown = async (mount: Mount) => {
    const all: Record<string, string> = {};
    for (const name of await world.run(calls(mount).list(""))) all[name] = await labelOf(mount, name);
    return all;
  };
  return {
    ...it,
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
