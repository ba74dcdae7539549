/** A whole folder removed elsewhere between two looks, where no journal tells and a folder that is gone lists nothing. */
import { expect, test } from "vitest";
import { FEATURE_NAMES, type Feature } from "../../src/contract/features.ts";
import type { Engine } from "../../src/vfs/engine.ts";
import { treeOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

/** Twice the settle time, and some looks. */
const GONE_MS = 11 * 60_000;
const NOTHING = { size: 0, async *read() {} };

const LESSER: readonly { name: string; lacks: readonly Feature[] }[] = [
  { name: "the journal", lacks: ["journal"] },
  { name: "anything", lacks: FEATURE_NAMES },
];

/** The list of a folder that is not there is a 404, not an empty one. */
function refuseGone({ context: { client } }: Engine): void {
  const { listFolder, getNode } = client;
  Object.assign(client, {
    async listFolder(...args: Parameters<typeof listFolder>) {
      await getNode(args[0]);
      return listFolder(...args);
    },
  });
}

test.each(LESSER)("without $name: a folder removed elsewhere with all that was in it goes", async ({ lacks }) => {
  const settings = { pollMs: 5_000 };
  const world = await createWorld({ seed: 1, mounts: ["alpha"], lacks, settings, sabotage: { engine: refuseGone } });
  const { outside, workspace } = world;
  const tree = async () => {
    const calls = world.mounts[0]?.process?.kernel;
    if (calls === undefined) throw new Error("the mount is down");
    return [...(await world.run(treeOf(calls, { withContent: false }))).keys()];
  };
  const d = await world.run(outside.createFolder(workspace.root, "d"));
  const e = await world.run(outside.createFolder(d.id, "e"));
  const f = await world.run(outside.upload(e.id, "f", NOTHING));
  // The root may have been listed before they were made.
  await world.clock.advance(4 * settings.pollMs);
  expect(await tree()).toEqual(["d", "d/e", "d/e/f"]);
  for (const node of [f, e, d]) await world.run(outside.deleteNode(node.id));
  await world.clock.advance(GONE_MS);
  expect(await tree()).toEqual([]);
  world.check();
});
