/**
 * Power loss when the rows on the disk are older than those a program was answered by: what they say
 * is whole must be whole, whatever was done since then.
 */
import { expect, test } from "vitest";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { entryId, type InodeId, inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type BytesWorld, CALLER, createBytesWorld } from "../support/bytes-world.ts";

const HEAD = Buffer.from("the head");

/** What the root shows, by name; names of what was kept beside are shortened. */
async function shown(world: BytesWorld): Promise<Record<string, string>> {
  const { entries, inodes } = world.context.metadata;
  const found: Record<string, string> = {};
  for (const { name, inode: id } of entries.list(inodeId(1), 0, 100)) {
    const inode = id === 1 ? undefined : inodes.get(id);
    if (inode !== undefined) {
      found[name.replace(/, .*\)/, ")")] = Buffer.from(await world.readAll(inode)).toString();
    }
  }
  return found;
}

async function save(world: BytesWorld, inode: InodeId, text: string, isSynced: boolean): Promise<void> {
  const handle = await world.open(world.inode(inode), { write: true, truncate: true });
  await world.write(handle, 0, Buffer.from(text));
  if (isSynced) await createFileSystem(world.context).fsync(CALLER, handle, false);
  await world.close(handle);
}

test("written to after a save that changed nothing, content does not count as whole", async () => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(HEAD, { name: "a" });
  // On the disk from here on: dirty and whole, grown from the head.
  await save(world, id, HEAD.toString(), true);
  expect(await world.context.snapshots.take(id, CALLER.signal)).toBe("clean");
  const handle = await world.open(world.inode(id), { write: true });
  await world.write(handle, 0, Buffer.from("torn"));
  const next = await world.powerLoss();
  expect(await shown(next)).toEqual({ a: "tornhead" });
  expect(await next.context.snapshots.take(id, CALLER.signal)).toBe("quarantined");
});

test("of two files a program syncs, none goes back to the gateway's version alone", async () => {
  for (const isSynced of [true, false]) {
    const world = await createBytesWorld();
    const { id } = world.addRemote(HEAD, { name: "a" });
    await save(world, id, "first", isSynced);
    await world.context.snapshots.take(id, CALLER.signal);
    // It has arrived; the next change begins with clean content.
    const [entry] = world.context.metadata.entries.ofInode(id);
    const row = world.context.metadata.nodes.ofEntry(entry?.id ?? entryId(0));
    if (row?.base == null) throw new Error("no base");
    const { hash } = world.inode(id);
    world.context.metadata.nodes.update(row.id, { base: { ...row.base, head: "next", hash, size: 5 } });
    world.context.metadata.inodes.update(id, { content: "clean", originVersion: "next" });
    world.gateway.versions.set("next", Buffer.from("first"));
    const handle = await world.open(world.inode(id), { write: true });
    await world.context.syncRows();
    await world.write(handle, 0, Buffer.from("th"));
    if (!isSynced) await world.context.syncRows();
    const next = await world.powerLoss();
    expect(await shown(next)).toEqual(isSynced ? { a: "thrst" } : { a: "first", "a (recovered)": "thrst" });
  }
});

test("what a program was told is safe is replaced by a rename only once the new content is", async () => {
  const world = await createBytesWorld();
  const { id } = world.addRemote(HEAD, { name: "a" });
  await save(world, id, "saved", true);
  const { inode, handle } = await world.create();
  await world.write(handle, 0, Buffer.from("newer"));
  await world.close(handle);
  const root = world.inode(ROOT_INODE).kernelNodeId;
  const [temporary] = world.context.metadata.entries.ofInode(inode.id);
  const move = () => {
    const from = { parent: root, name: temporary?.name ?? "" };
    return createFileSystem(world.context).rename(
      CALLER,
      from,
      { parent: root, name: "a" },
      { noReplace: false, exchange: false },
    );
  };
  world.files.fail({ path: /live/, code: "EIO", on: ["sync"] });
  await expect(move()).rejects.toThrow("the local disk failed");
  expect(await shown(world)).toMatchObject({ a: "saved" });
  await move();
  await world.context.syncRows();
  expect(await shown(await world.powerLoss())).toEqual({ a: "newer" });
});
