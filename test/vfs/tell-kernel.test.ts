/** Which names the kernel is told of: those it knew, those it was told to be absent, and after a daemon's death any. */
import { expect, test } from "vitest";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { LIVE_MS } from "../../src/vfs/context/freshness.ts";
import { absentUnknown, expireEverything, noteAbsent, tellKernel } from "../../src/vfs/context/tell-kernel.ts";
import { createToldKernel } from "../../src/vfs/context/told-kernel.ts";
import type { KernelCache } from "../../src/vfs/kernel-cache.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

async function begin() {
  const { context: base, clock } = await createBytesWorld();
  const told: string[] = [];
  const cache: KernelCache = {
    expiresNames: true,
    tell({ names }) {
      for (const { name, isGone, wasThere } of names) {
        told.push(`${isGone() ? "gone" : wasThere ? "changed" : "came"} ${name}`);
      }
    },
    everything: () => void told.push("everything"),
  };
  const context = { ...base, kernel: createToldKernel(cache) };
  context.metadata.changed.onTell((changed) => tellKernel(context, changed));
  const { entries, inodes } = context.metadata;
  const make = (name: string) => {
    const { id } = inodes.create({
      kind: "folder",
      attributes: {},
      size: 0,
      hash: null,
      originNode: null,
      originVersion: null,
      content: "clean",
      atime: "0",
      ctime: "0",
    });
    return context.metadata.transaction(() => entries.create(ROOT_INODE, name, id));
  };
  const said = () => told.splice(0);
  return { context, clock, make, said };
}

test("a name that came is told where it was told to be absent, once", async () => {
  const { context, make, said } = await begin();
  expect(noteAbsent(context, ROOT_INODE, "a")).toBe(true);
  make("a");
  make("b");
  expect(said()).toEqual(["came a"]);
});

test("when nothing is sure any more, each absent name is named", async () => {
  const { context, said } = await begin();
  noteAbsent(context, ROOT_INODE, "a");
  noteAbsent(context, ROOT_INODE, "b");
  expireEverything(context);
  expect(said()).toEqual(["came a", "came b", "everything"]);
  expireEverything(context);
  expect(said()).toEqual(["everything"]);
});

test("what a daemon before told to be absent nobody knows: each name that comes is told, as long as it may be remembered", async () => {
  const { context, clock, make, said } = await begin();
  absentUnknown(context);
  make("a");
  expect(said()).toEqual(["came a"]);
  await clock.advance(LIVE_MS);
  make("b");
  expect(said()).toEqual([]);
});

test("no more absent names are let be remembered than are remembered here", async () => {
  const { context, clock } = await begin();
  for (let i = 0; i < 50_000; i += 1) noteAbsent(context, ROOT_INODE, `${i}`);
  expect(noteAbsent(context, ROOT_INODE, "one more")).toBe(false);
  expect(noteAbsent(context, ROOT_INODE, "7")).toBe(true);
  await clock.advance(LIVE_MS + 1);
  expect(noteAbsent(context, ROOT_INODE, "one more")).toBe(true);
  expect(context.kernel.absent.size).toBe(1);
});
