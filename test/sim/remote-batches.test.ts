/**
 * Many names change at once elsewhere, in chains and rings: whoever looks meanwhile sees the tree
 * before or the tree after, never a gap, a name twice, or a conflict.
 */
import { expect, test } from "vitest";
import type { InodeId } from "../../src/metadata/ids.ts";
import { SEED } from "../support/seed.ts";
import type { Process } from "./support/mount.ts";
import { runProgram } from "./support/programs.ts";
import { TAG, treeOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

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

/** Every path with what tells one folder from another: the mark it was made with. From the rows, as they are now. */
function marked({ database, engine }: Process): string {
  const entries = database.prepare("SELECT parent, name, inode FROM entry WHERE parent <> inode").all() as {
    readonly parent: number;
    readonly name: string;
    readonly inode: InodeId;
  }[];
  const pathOf = (inode: number): string => {
    const entry = entries.find((one) => one.inode === inode);
    return entry === undefined ? "" : `${pathOf(entry.parent)}/${entry.name}`;
  };
  const markOf = (inode: InodeId) => {
    const mark = engine.context.metadata.inodes.get(inode)?.attributes.xattrs?.[TAG] ?? "";
    return Buffer.from(mark, "base64").toString();
  };
  return entries
    .map(({ inode }) => `${pathOf(inode)} was ${markOf(inode)}`)
    .sort()
    .join(", ");
}

/** What the rows show after each transaction. */
function watch(process: Process): Set<string> {
  const seen = new Set<string>();
  const { metadata } = process.engine.context;
  const { transaction } = metadata;
  let depth = 0;
  Object.assign(metadata, {
    transaction<T>(change: () => T): T {
      depth += 1;
      try {
        return transaction(change);
      } finally {
        depth -= 1;
        if (depth === 0) seen.add(marked(process));
      }
    },
  });
  return seen;
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
  await world.run(treeOf(there.kernel, { withContent: false }));
  const before = marked(there);
  expect(before).toBe(marked(here));

  beta.weather.isOffline = true;
  for (const [from, to] of renames) await world.run(here.kernel.rename(from, to));
  await settle();
  const after = marked(here);
  expect(after).not.toBe(before);

  const seen = watch(there);
  beta.weather.isOffline = false;
  await world.clock.advance(30_000);
  world.check();
  expect([...seen].filter((one) => one !== before)).toEqual([after]);
});
