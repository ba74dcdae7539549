/** Files of a folder that are opened one after the other: the next ones are fetched before they are asked for. */
import { expect, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { type BytesWorld, createBytesWorld, pattern } from "../support/bytes-world.ts";

const FILES = 40;
const BYTES = 4096;

async function worldOf(count = FILES, bytes = BYTES) {
  const world = await createBytesWorld();
  const files = Array.from({ length: count }, (_, index) => world.addRemote(pattern(bytes, index)));
  return { world, files };
}

/** Resolves when nothing is under way that nobody waits for, unless it waits for the gateway. */
async function quiet(world: BytesWorld): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await world.clock.advance(0);
}

async function readInTurn(world: BytesWorld, files: readonly Inode[]): Promise<void> {
  for (const file of files) {
    expect((await world.readAll(file)).length).toBe(file.size);
    await quiet(world);
  }
}

const asked = (world: BytesWorld) => world.gateway.calls.map(({ nodeId }) => nodeId);
const namesOf = (files: readonly Inode[]) => files.map(({ originNode }) => originNode);

test("read in order, the next ones are here already, and each is asked for once", async () => {
  const { world, files } = await worldOf();
  await readInTurn(world, files.slice(0, 1));
  expect(asked(world)).toEqual(namesOf(files.slice(0, 1)));
  await readInTurn(world, files.slice(1, 2));
  expect(asked(world)).toEqual(namesOf(files.slice(0, 6)));
  // What was fetched ahead is read without the gateway, …
  world.gateway.hold();
  expect((await world.readAll(files[2] as Inode)).length).toBe(BYTES);
  await quiet(world);
  // … and more is asked for meanwhile, but not without end.
  expect(world.gateway.running).toBe(5);
  expect(world.context.filePrefetch.underWay).toBe(5);
  world.gateway.release();
  await readInTurn(world, files.slice(3));
  expect(asked(world).sort()).toEqual(namesOf(files).sort());
  expect(world.context.cacheFiles.size).toBe(0);
  expect(world.context.filePrefetch.underWay).toBe(0);
  expect(world.complaints).toEqual([]);
});

test("some left out, as by a name that is looked for, they are read in order still", async () => {
  const { world, files } = await worldOf();
  await readInTurn(
    world,
    files.filter((_, index) => index % 3 === 0),
  );
  expect(new Set(asked(world)).size).toBe(asked(world).length);
  expect(asked(world).length).toBeGreaterThan(FILES / 2);
});

test("read in another order, nothing is fetched that nobody asked for", async () => {
  const { world, files } = await worldOf();
  await readInTurn(world, files.toReversed());
  expect(asked(world)).toEqual(namesOf(files.toReversed()));
});

test("what is large, written here, or here already is not fetched, nor anything while offline or without room", async () => {
  const { world, files } = await worldOf(4);
  const large = world.addRemote(pattern(1024 * 1024 + 1));
  const { handle } = await world.create();
  await world.write(handle, 0, pattern(10));
  await world.close(handle);
  await readInTurn(world, files);
  expect(asked(world)).toEqual(namesOf(files));
  expect(asked(world)).not.toContain(large.originNode);

  for (const hinder of [
    ({ context }: BytesWorld) => context.network.failed(new RemoteError("offline", "gone")),
    ({ context }: BytesWorld) => Object.assign(context.settings, { cacheLimit: 1024 }),
    // Others are being fetched, of whichever folders.
    ({ context }: BytesWorld) => Object.assign(context.filePrefetch, { underWay: 20 }),
  ]) {
    const other = await worldOf();
    hinder(other.world);
    const [first, second] = other.files as [Inode, Inode];
    await other.world.open(first);
    await other.world.open(second);
    await quiet(other.world);
    expect(asked(other.world)).toEqual([]);
  }
});

test("one that could not be fetched ahead is fetched when it is read", async () => {
  const { world, files } = await worldOf(8);
  await readInTurn(world, files.slice(0, 1));
  world.gateway.lies = 1;
  world.gateway.shorts = [10];
  await readInTurn(world, files.slice(1, 2)).catch(() => {});
  for (const file of files)
    expect(Buffer.compare(await world.readAll(file), pattern(BYTES, files.indexOf(file)))).toBe(0);
});

test("the mount ends while files are fetched ahead", async () => {
  const { world, files } = await worldOf(8);
  await readInTurn(world, files.slice(0, 1));
  const handle = await world.open(files[1] as Inode);
  world.gateway.hold();
  await quiet(world);
  expect(world.gateway.running).toBe(4);
  await world.close(handle);
  await world.context.cacheFiles.stop();
  expect(world.context.cacheFiles.size).toBe(0);
  expect(world.files.openHandles()).toBe(0);
});
