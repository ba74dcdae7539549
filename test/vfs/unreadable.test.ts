/** What went wrong with a content is remembered for as long as it says something. */
import { expect, test } from "vitest";
import { removeInode } from "../../src/vfs/nameless.ts";
import { retryNow } from "../../src/vfs/retry.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

async function failing(count: number) {
  const world = await createBytesWorld();
  const { bytes, network, metadata } = world.context;
  const inodes: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const { inode, handle } = await world.create();
    await world.close(handle);
    metadata.inodes.update(inode.id, { originNode: `n${index}`, originVersion: `v${index}` });
    bytes.unreadable.set(inode.id, { tries: 3, why: "the disk" });
    network.cannotRefer(`v${index}`);
    inodes.push(inode.id);
  }
  const failures = () => inodes.map((id, index) => [bytes.unreadable.has(id), !network.mayRefer(`v${index}`)]);
  return { world, inodes, failures };
}

test("a retry forgets it, of what is to be tried again", async () => {
  const { world, inodes, failures } = await failing(2);
  const retry = async (paths?: string[]) => {
    const [{ retried }] = await Promise.all([retryNow(world.context, paths), world.clock.advance(1_000)]);
    return retried;
  };
  expect(await retry([`/made-${inodes[0]}`])).toBe(1);
  expect(failures()).toEqual([
    [false, false],
    [true, true],
  ]);
  expect(await retry()).toBe(2);
  expect(failures()[1]).toEqual([false, false]);
});

test("with its last name and the last who has it open it is forgotten", async () => {
  const { world, inodes, failures } = await failing(2);
  const { metadata } = world.context;
  const [id = 0] = inodes;
  for (const entry of metadata.entries.ofInode(id)) metadata.entries.remove(entry.id);
  removeInode(world.context, world.inode(id));
  expect(failures()).toEqual([
    [false, false],
    [true, true],
  ]);
});
