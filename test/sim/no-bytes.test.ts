/** What has no bytes (a symlink, an empty file) gets another node where the gateway takes no version by reference. */
import { expect, test } from "vitest";
import type { Feature } from "../../src/contract/features.ts";
import { begin, there } from "./support/one-world.ts";

const LACKS: readonly { what: string; lacks: readonly Feature[] }[] = [
  { what: "references", lacks: ["references"] },
  { what: "versions and references", lacks: ["versions", "references"] },
  { what: "hashes and references", lacks: ["hashes", "references"] },
];

test.each(LACKS)("without $what: it is moved over a file, and linked where that can be", async ({ lacks }) => {
  const it = await begin(true, {}, { lacks });
  const { run } = it.world;
  for (const name of ["a", "b"]) await it.save(name);
  await run(it.calls().symlink("target", "link"));
  await run(it.calls().close(await run(it.calls().open("empty", { write: true, create: true }))));
  await it.drain();
  // They are versions the gateway has by now.
  await it.again("remount");
  const isLinked = lacks.length === 1;
  if (isLinked) await run(it.calls().link("link", "same"));
  await it.rename("link", "a");
  await it.rename("empty", "b");
  const names = isLinked ? ["a", "b", "same"] : ["a", "b"];
  await it.ends(names);
  const tree = await there(it.world);
  expect(names.map((name) => tree.get(name)?.kind)).toEqual(["symlink", "file", "symlink"].slice(0, names.length));
  expect(await run(it.calls().readlink("a"))).toBe("target");
  expect(await it.content("b")).toBe("");
});
