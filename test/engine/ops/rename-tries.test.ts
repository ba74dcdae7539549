/** A rename whose source gets a newer version each time it was brought here: given up with a word, and nothing has changed. */
import { expect, test } from "vitest";
import type { FsError } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { CALLER, createBytesWorld } from "../support/bytes-world.ts";

test.each([
  { times: 9, says: "done" },
  { times: 10, says: "EBUSY" },
])("a newer version $times times: $says", async ({ times, says }) => {
  const world = await createBytesWorld();
  const { context, gateway } = world;
  const { metadata } = context;
  const features = { ...context.client.features, isFull: false };
  Object.assign(context, { client: { getContent: gateway.client.getContent, features } });
  const a = world.addRemote(Buffer.from("first"), { name: "a" });
  const b = world.addRemote(Buffer.from("other"), { name: "b" });
  metadata.inodes.update(ROOT_INODE, { listed: 1 });
  let left = times;
  context.runtime.step = (label) => {
    // Between knowing and doing.
    if (label !== "release: recorded" || left === 0) return;
    left -= 1;
    const version = `version ${left}`;
    gateway.versions.set(version, Buffer.from(`newer ${left}`));
    metadata.inodes.replaceKernelNodeId(a.id, { size: 7, hash: null, originVersion: version });
  };
  const place = (name: string) => ({ parent: world.inode(ROOT_INODE).kernelNodeId, name });
  const flags = { noReplace: false, exchange: false };
  const renamed = createFileSystem(context)
    .rename(CALLER, place("a"), place("b"), flags)
    .then(
      () => "done",
      (error: FsError) => error.code,
    );
  expect(await renamed).toBe(says);
  const inodes = ["a", "b"].map((name) => metadata.entries.find(ROOT_INODE, name)?.inode);
  expect(inodes).toEqual(says === "done" ? [undefined, a.id] : [a.id, b.id]);
  expect(left).toBe(0);
});
