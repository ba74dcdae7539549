/** Somebody saves a file elsewhere with the bytes it had: a new version, which here is the content that was there before. */
import { expect, test } from "vitest";
import type { Feature } from "../../src/contract/features.ts";
import { inodeId, kernelNodeId } from "../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import type { Context } from "../../src/vfs/context/context.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { readFile } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

const CALLER = { uid: 0, gid: 0, pid: 1, umask: 0o22, signal: new AbortController().signal };
const READING = { read: true, write: false, append: false, truncate: false, exclusive: false };
const HEARD_MS = 5_000;
const BYTES = Buffer.from("the same bytes, twice");

const inodeOf = ({ context }: { readonly context: Context }, name: string) =>
  context.metadata.entries.find(ROOT_INODE, name)?.inode ?? inodeId(0);

/** Known here and open, none of it read, when it is saved once more. */
async function savedAgain(lacks: readonly Feature[]) {
  const world = await createWorld({ seed: 1, mounts: ["alpha"], lacks });
  const [mount] = world.mounts;
  if (mount?.process === undefined) throw new Error("no mount");
  const { kernel, engine } = mount.process;
  const source = sourceOf(BYTES);
  const node = await world.run(world.outside.upload(world.workspace.root, "a", source));
  await world.clock.advance(HEARD_MS);
  await world.run(kernel.list(""));
  const lineage = engine.context.metadata.inodes.get(inodeOf(engine, "a"))?.lineage ?? kernelNodeId(0);
  const { handle } = await world.run(engine.fileSystem.open(CALLER, lineage, READING));
  await world.run(world.outside.writeContent(node.id, source));
  await world.clock.advance(HEARD_MS);
  const live = engine.context.lives.get(lineage);
  return { world, kernel, engine, handle, live };
}

for (const lacks of [[], ["versions", "references"]] as const) {
  const where = lacks.length === 0 ? "" : ", where only heads can be read";
  test(`it is read by who has it open${where}`, async () => {
    const { world, engine, handle, live } = await savedAgain(lacks);
    expect(Buffer.from(await world.run(engine.fileSystem.read(CALLER, handle, 0, 100)))).toEqual(BYTES);
    expect(live?.isChecked).toBe(true);
    await world.run(engine.fileSystem.release(handle));
  });

  test(`it is read by who opens it later${where}`, async () => {
    const { world, kernel, engine, handle } = await savedAgain(lacks);
    await world.run(engine.fileSystem.release(handle));
    expect(await world.run(readFile(kernel, "a"))).toEqual(BYTES);
    world.check();
  });
}

test("made here and there with the same bytes, the local copy may go when room is needed", async () => {
  const world = await createWorld({ seed: 1, mounts: ["alpha"] });
  const [mount] = world.mounts;
  if (mount?.process === undefined) throw new Error("no mount");
  const { kernel, engine } = mount.process;
  await world.run(kernel.list(""));
  mount.weather.isOffline = true;
  await world.run(runProgram(kernel, { do: "save", path: "a", size: 40 }, "same"));
  await world.run(world.outside.upload(world.workspace.root, "a", sourceOf(bytesOf("same", 40))));
  mount.weather.isOffline = false;
  await world.clock.advance(60_000);
  expect(await world.run(kernel.list(""))).toEqual(["a"]);
  const { inodes, lives } = engine.context.metadata;
  const inode = inodes.get(inodeOf(engine, "a"));
  expect(inode?.content).toBe("clean");
  expect(lives.isEvictable(inode?.lineage ?? kernelNodeId(0))).toBe(true);
  world.check();
});
