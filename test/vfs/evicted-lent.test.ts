/** Where only heads can be read: content that is being evicted, and a program that gives it another node meanwhile. */
import { expect, test } from "vitest";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { link } from "../../src/vfs/create.ts";
import { forgetLive } from "../../src/vfs/evict.ts";
import { CALLER, createBytesWorld } from "../support/bytes-world.ts";

test("a file linked while it is evicted is brought here again first", async () => {
  const world = await createBytesWorld();
  const { context, gateway, files } = world;
  const { metadata } = context;
  const features = { ...context.client.features, versions: false };
  Object.assign(context, { client: { getContent: gateway.client.getContent, features } });
  const { id, lineage } = world.addRemote(Buffer.from("only there"), { name: "a" });
  await world.readAll(world.inode(id));
  expect(metadata.lives.get(lineage)?.missing).toBe("[]");
  metadata.inodes.update(ROOT_INODE, { listed: 1 });
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const { runtime } = context;
  Object.assign(context, {
    runtime: { ...runtime, files: { ...runtime.files, remove: (path: string) => held.then(() => files.remove(path)) } },
  });
  const evicting = forgetLive(context, { lineage });
  for (let turns = 0; turns < 100; turns += 1) await undefined;
  const linking = link(context, CALLER, lineage, world.inode(ROOT_INODE).lineage, "b");
  for (let turns = 0; turns < 100; turns += 1) await undefined;
  goOn();
  await Promise.all([evicting, linking]);
  expect(metadata.entries.links(id)).toBe(2);
  expect(metadata.lives.get(lineage)?.missing).toBe("[]");
});
