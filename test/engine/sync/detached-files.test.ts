/** What the rows and the list of changed files say of a file that is open for writing, and has lost its name elsewhere. */
import { expect, test } from "vitest";
import type { Written } from "../../../src/content/dirty-log.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

const TEXT = Buffer.from("some text");
const NEWS = Buffer.from("news");

async function begin() {
  const world = await createBytesWorld();
  const { context } = world;
  const lines: Partial<Written>[] = [];
  Object.assign(context, { dirtyLog: { ...context.dirtyLog, add: (line: Written) => void lines.push(line) } });
  const inode = world.addRemote(TEXT, { name: "a" });
  const handle = await world.open(inode, { write: true });
  context.observer.deletion("a", 2, null);
  const forgotten = () => {
    context.orphans.forgotten([{ kernelNodeId: inode.kernelNodeId }]);
    context.orphans.dropForgotten();
    return context.metadata.inodes.get(inode.id) === undefined;
  };
  const names = () => context.metadata.entries.ofInode(inode.id).map(({ name }) => name);
  return { world, context, inode, handle, lines, forgotten, names };
}

test("closed and forgotten before what was written has a name: it stays until it has, and after that", async () => {
  const { world, context, inode, handle, forgotten, names } = await begin();
  await world.write(handle, 0, NEWS);
  expect(context.detachedFiles.all()).toEqual([{ path: "/a", inode: inode.id, isRemoved: true, isWritten: true }]);
  await world.close(handle);
  expect(forgotten()).toBe(false);
  expect(names()).toEqual([]);
  context.detachedFiles.resolve();
  expect(names()).toEqual(["a"]);
  expect(context.detachedFiles.all()).toEqual([]);
  expect(Buffer.from(await world.readAll(inode)).toString()).toBe("news text");
});

test("closed and forgotten without a change it goes, with its row", async () => {
  const { world, context, handle, forgotten } = await begin();
  expect(context.detachedFiles.all()).toMatchObject([{ isWritten: false }]);
  await world.close(handle);
  expect(forgotten()).toBe(true);
  context.detachedFiles.resolve();
  expect(context.metadata.detachedFiles.all()).toEqual([]);
});

test("the list of changed files says where it was, and then what it is called", async () => {
  const { world, context, inode, handle, lines } = await begin();
  await world.write(handle, 0, NEWS);
  expect(lines.at(-1)).toMatchObject({ kernelNodeId: inode.kernelNodeId, path: ["a"] });
  const other = world.addRemote(TEXT, { name: "another" });
  const [entry] = context.metadata.entries.ofInode(other.id);
  if (entry !== undefined) context.metadata.entries.move(entry.id, entry.parent, "a");
  await world.close(handle);
  context.detachedFiles.resolve();
  expect(lines.at(-1)).toMatchObject({
    kernelNodeId: inode.kernelNodeId,
    path: [expect.stringMatching(/^a \(conflict, here, /)],
  });
});
