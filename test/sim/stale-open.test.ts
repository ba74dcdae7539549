/**
 * A program looks a name up and opens what it found; in between the name goes, or becomes another
 * file's, because of what somebody did elsewhere. What it then writes must be in the file of that name.
 */
import { expect, test } from "vitest";
import { inodeId, kernelNodeId } from "../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import type { FileSystem, Lineage } from "../../src/vfs/filesystem.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { hashOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

const CALLER = { uid: 0, gid: 0, pid: 1, umask: 0o22, signal: new AbortController().signal };
const FOR_WRITING = { read: true, write: true, append: false, truncate: false, exclusive: false };
const HEARD_MS = 5_000;

async function begin() {
  const world = await createWorld({ seed: 1, mounts: ["alpha"] });
  const [mount] = world.mounts;
  if (mount?.process === undefined) throw new Error("no mount");
  const { kernel, engine } = mount.process;
  await world.run(runProgram(kernel, { do: "save", path: "a", size: 40 }, "a"));
  await world.clock.advance(HEARD_MS);
  const { items } = await world.run(world.outside.listFolder(world.workspace.root));
  const node = items.find(({ name }) => name === "a");
  if (node === undefined) throw new Error("a is not there");
  const { metadata } = engine.context;
  const lineageOf = (name: string): Lineage => {
    const inode = metadata.entries.find(ROOT_INODE, name)?.inode;
    return (inode === undefined ? undefined : metadata.inodes.get(inode)?.lineage) ?? kernelNodeId(0);
  };
  const fileSystem: FileSystem = engine.fileSystem;
  return { world, node, metadata, fileSystem, lineageOf };
}

test("removed elsewhere: the name is looked up again, and what is in no file goes when it is forgotten", async () => {
  const { world, node, metadata, fileSystem, lineageOf } = await begin();
  const found = lineageOf("a");
  const reader = await world.run(fileSystem.open(CALLER, found, { ...FOR_WRITING, write: false }));
  await world.run(world.outside.deleteNode(node.id));
  await world.clock.advance(HEARD_MS);
  expect(metadata.entries.find(ROOT_INODE, "a")).toBeUndefined();
  await expect(world.run(fileSystem.open(CALLER, found, FOR_WRITING))).rejects.toMatchObject({ code: "ESTALE" });
  // Who has it open reads on.
  expect((await world.run(fileSystem.read(CALLER, reader.handle, 0, 40))).length).toBe(40);
  await world.run(fileSystem.release(reader.handle));
  const inode = metadata.inodes.ofLineage(found)?.id ?? inodeId(0);
  fileSystem.forget([{ lineage: found, count: 1 }]);
  await world.clock.advance(1_000);
  expect(metadata.inodes.get(inode)).toBeUndefined();
  world.check();
});

test("linked elsewhere: it is the file it was, under both names", async () => {
  const { world, node, fileSystem, lineageOf } = await begin();
  const found = lineageOf("a");
  const link = { group: "g", hash: node.contentHash ?? "" };
  const content = { copyOf: node.id, ...(node.head === null ? {} : { version: node.head }) };
  await world.run(
    world.outside.copyNode(world.workspace.root, "b", content, { attributes: { ...node.attributes, link } }),
  );
  await world.clock.advance(HEARD_MS);
  await world.run(world.outside.patchNode(node.id, { attributes: { link } }));
  await world.clock.advance(HEARD_MS);
  expect([lineageOf("a"), lineageOf("b")]).toEqual([found, found]);
  const { handle } = await world.run(fileSystem.open(CALLER, found, FOR_WRITING));
  await world.run(fileSystem.write(CALLER, handle, 0, Buffer.from("both"), { killPrivileges: false }));
  await world.run(fileSystem.release(handle));
  const other = await world.run(fileSystem.open(CALLER, lineageOf("b"), { ...FOR_WRITING, write: false }));
  expect(Buffer.from(await world.run(fileSystem.read(CALLER, other.handle, 0, 4))).toString()).toBe("both");
  await world.run(fileSystem.release(other.handle));
  world.check();
});
test("linked elsewhere to another file: the name is looked up again", async () => {
  const { world, node, fileSystem, lineageOf } = await begin();
  const found = lineageOf("a");
  const bytes = bytesOf("another", 40);
  const link = { group: "g", hash: hashOf(bytes) };
  await world.run(world.outside.upload(world.workspace.root, "b", sourceOf(bytes), { attributes: { link } }));
  await world.clock.advance(HEARD_MS);
  await world.run(world.outside.writeContent(node.id, sourceOf(bytes), { attributes: { link } }));
  await world.clock.advance(HEARD_MS);
  expect(lineageOf("a")).toBe(lineageOf("b"));
  await expect(world.run(fileSystem.open(CALLER, found, FOR_WRITING))).rejects.toMatchObject({ code: "ESTALE" });
  world.check();
});
