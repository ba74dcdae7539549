/** What another mount makes and removes leaves nothing behind in one that looked once, or whose kernel forgot all. */
import { expect, test } from "vitest";
import { ROUND_MS } from "../../src/vfs/files/ask-kernel.ts";
import type { Mount } from "./support/mount.ts";
import { readFile } from "./support/tree.ts";
import { beginTwo } from "./support/two-world.ts";

const NAMES = ["a", "b", "c", "d"];

async function begin() {
  const two = await beginTwo();
  const { world, alpha, beta, run, calls } = two;
  const rowsOf = ({ process }: Mount) => {
    if (process === undefined) throw new Error("it is down");
    const { metadata, lives } = process.engine.context;
    const { inodes } = metadata;
    const nameless = inodes.nameless(0, inodes.newestNameless(), 1_000).length;
    const superseded = inodes.superseded(0, inodes.newestSuperseded(), 1_000).length;
    return { nameless, superseded, files: metadata.lives.among(0, 1_000_000).length, open: lives.size };
  };
  const save = async (name: string, label: string) => {
    await run(alpha, { do: "save", path: `in/${name}`, size: 40 }, label);
  };
  await world.run(calls(alpha).mkdir("in"));
  await two.drain(alpha);
  await world.clock.advance(15_000);
  expect(await world.run(calls(beta).list("in"))).toEqual([]);
  return { ...two, rowsOf, save, heard: () => world.clock.advance(15_000) };
}

test("looked into once, a folder in which files come and go leaves no rows", async () => {
  const { world, alpha, beta, calls, rowsOf, save, drain, heard } = await begin();
  for (let round = 0; round < 3; round += 1) {
    for (const name of NAMES) await save(name, `${name}${round}`);
    await drain(alpha);
    await heard();
    for (const name of NAMES) await world.run(calls(alpha).unlink(`in/${name}`));
    await drain(alpha);
    await heard();
  }
  expect(rowsOf(beta).nameless).toBeGreaterThan(0);
  await world.clock.advance(2 * ROUND_MS + 5_000);
  expect(rowsOf(beta)).toEqual({ nameless: 0, superseded: 0, files: 0, open: 0 });
  world.check();
});

test("versions that were read and forgotten leave no files; the one that is shown, and one that is held, stay", async () => {
  const { world, alpha, beta, calls, rowsOf, save, drain, heard, labelOf } = await begin();
  const held: number[] = [];
  for (let version = 0; version < 4; version += 1) {
    await save("a", `version${version}`);
    await drain(alpha);
    await heard();
    expect(await labelOf(beta, "in/a")).toBe(`version${version}`);
    if (version === 1) held.push(await world.run(calls(beta).open("in/a", {})));
    calls(beta).dropCaches();
  }
  expect(rowsOf(beta)).toMatchObject({ superseded: 3, files: 4 });
  await world.clock.advance(2 * ROUND_MS + 5_000);
  expect(rowsOf(beta)).toEqual({ nameless: 0, superseded: 1, files: 2, open: 1 });
  for (const fd of held) {
    expect((await world.run(calls(beta).read(fd, 0, 40))).toString()).toMatch(/^version1;/);
    await world.run(calls(beta).close(fd));
  }
  expect((await world.run(readFile(calls(beta), "in/a"))).toString()).toMatch(/^version3;/);
  world.check();
});
