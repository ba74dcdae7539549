/** A change by a program: the kernel is told of it only for kernel node ids by which it did not ask. */
import { expect, test } from "vitest";
import type { KernelNodeId } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { inodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import { CALLER, createBytesWorld } from "../support/bytes-world.ts";

const TEXT = Buffer.from("some text");
const ROOT = inodeId(1);

async function begin() {
  const world = await createBytesWorld();
  const { metadata } = world.context;
  metadata.inodes.update(ROOT, { listed: 1 });
  const { id, kernelNodeId: old } = world.addRemote(TEXT);
  const told: number[] = [];
  metadata.changed.onTell(({ inodes }) => void told.push(...inodes));
  /** Somebody elsewhere wrote it anew, while a program has the old bytes open. */
  const replace = () => {
    const { kernelNodeId } = metadata.inodes.replaceKernelNodeId(id, { size: 4, hash: null });
    told.length = 0;
    return kernelNodeId;
  };
  return { context: world.context, id, old, told, replace };
}

test.each<
  [string, (context: Awaited<ReturnType<typeof begin>>["context"], kernelNodeId: KernelNodeId) => Promise<unknown>]
>([
  ["mode", (context, kernelNodeId) => createFileSystem(context).setattr(CALLER, kernelNodeId, { mode: 0o600 })],
  [
    "extended attribute",
    (context, kernelNodeId) =>
      createFileSystem(context).setxattr(CALLER, kernelNodeId, "user.a", Buffer.from("x"), {
        create: false,
        replace: false,
      }),
  ],
  ["number of names", (context, id) => createFileSystem(context).link(CALLER, id, kernelNodeId(1), "second")],
])("%s: the kernel is told once the file has two kernel node ids, by whichever it is changed", async (_, change) => {
  for (const which of ["only", "left", "current"]) {
    const { context, id, old, told, replace } = await begin();
    const current = which === "only" ? old : replace();
    await change(context, which === "left" ? old : current);
    expect(told.includes(id)).toBe(which !== "only");
  }
});
