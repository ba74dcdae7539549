/** A file is made shorter while others read it: the kernel shows zeros for what an answer lacks of the length it knows. */
import { expect, test } from "vitest";
import type { Caller, HandleId } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, pattern } from "../support/bytes-world.ts";

const SIZE = 100;
const OLD = pattern(SIZE);
const OTHER: Caller = { ...CALLER, pid: CALLER.pid + 1 };

interface Shared {
  readonly world: BytesWorld;
  readonly id: InodeId;
  readonly writer: HandleId;
  readonly reader: HandleId;
}

async function shared(turns = 0): Promise<Shared> {
  const world = await createBytesWorld({}, { turns: () => turns });
  const { inode, handle } = await world.create();
  await world.write(handle, 0, OLD);
  return { world, id: inode.id, writer: handle, reader: await world.open(world.inode(inode.id)) };
}

/** How many bytes a read came to, when it has. */
function reading({ world, reader }: Pick<Shared, "world" | "reader">, caller = OTHER) {
  const read_ = { length: undefined as number | undefined };
  void createFileSystem(world.context)
    .read(caller, reader, 0, SIZE)
    .then((bytes) => Object.assign(read_, { length: bytes.length }));
  return read_;
}

const CUTS: Record<string, (shared: Shared) => Promise<unknown>> = {
  "an open that empties it": ({ world, id }) => world.open(world.inode(id), { write: true, truncate: true }),
  ftruncate: ({ world, id, writer }) =>
    createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { size: 0, handle: writer }),
  truncate: ({ world, id }) =>
    createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { size: 0 }),
};

for (const [name, cut] of Object.entries(CUTS)) {
  test(`${name}: whoever reads meanwhile sees what was there before, or waits until the kernel knows`, async () => {
    let waited = 0;
    for (let lead = 0; lead < 30; lead += 1) {
      const all = await shared(2);
      const { world, reader } = all;
      // From here on its reads would pass us by.
      await world.read(reader, 0, 10);
      expect(world.fastPath.read(reader, 10, 0)).toHaveLength(10);
      const cutting = cut(all);
      for (let turn = 0; turn < lead; turn += 1) await undefined;
      const read_ = reading(all);
      expect([undefined, 10]).toContain(world.fastPath.read(reader, 10, 0)?.length);
      await cutting;
      expect(world.fastPath.read(reader, 10, 0)).toBeUndefined();
      await world.clock.advance(49);
      expect([undefined, SIZE]).toContain(read_.length);
      if (read_.length === undefined) waited += 1;
      await world.clock.advance(1);
      expect([0, SIZE]).toContain(read_.length);
    }
    expect(waited).toBeGreaterThan(0);
  });
}

const SIGNS: Record<string, (shared: Shared) => Promise<unknown>> = {
  writes: ({ world, writer }) => world.write(writer, 0, OLD.subarray(0, 5)),
  closes: ({ world, writer }) => createFileSystem(world.context).flush(CALLER, writer),
  reads: ({ world, reader }) => world.read(reader, 0, SIZE),
};

for (const [name, sign] of Object.entries(SIGNS)) {
  test(`nobody waits any more once the thread that made it shorter ${name}`, async () => {
    const all = await shared();
    const { world, id, writer, reader } = all;
    await createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { size: 3, handle: writer });
    const read_ = reading(all);
    await world.clock.settle();
    expect(read_.length).toBeUndefined();
    await sign(all);
    await world.clock.settle();
    expect(read_.length).toBe(name === "writes" ? 5 : 3);
    await world.read(reader, 0, 10);
    expect(world.fastPath.read(reader, 10, 0)).toBeDefined();
  });
}

test("who is told to end waits no longer", async () => {
  const { world, id, writer, reader } = await shared();
  const controller = new AbortController();
  await createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { size: 3, handle: writer });
  const failed = createFileSystem(world.context)
    .read({ ...OTHER, signal: controller.signal }, reader, 0, SIZE)
    .catch((error: unknown) => error);
  await world.clock.settle();
  controller.abort();
  expect(await failed).toMatchObject({ code: "EINTR" });
});

test("a file that is made longer keeps nobody waiting", async () => {
  const { world, id, writer, reader } = await shared();
  await createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { size: 3, handle: writer });
  await world.clock.advance(50);
  await createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { size: 7, handle: writer });
  const read_ = reading({ world, reader });
  await world.clock.settle();
  expect(read_.length).toBe(7);
});

test("a file that is cut again and again does not keep its reader for ever", async () => {
  const all = await shared();
  const { world, id, writer } = all;
  const cutTo = (size: number) =>
    createFileSystem(world.context).setattr(CALLER, world.inode(id).kernelNodeId, { size, handle: writer });
  await cutTo(90);
  const read_ = reading(all);
  for (let size = 89; size > 80; size -= 1) {
    await world.clock.settle();
    await cutTo(size);
  }
  await world.clock.settle();
  expect(read_.length).toBeGreaterThan(80);
});
