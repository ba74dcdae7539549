/** Reading what is not here yet: what is fetched, who waits for what, and what a failure leaves. */
import { expect, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import { FsError, type HandleId } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { minus } from "../../../src/lib/clocks.ts";
import { sleep } from "../../../src/lib/runtime.ts";
import { type BytesWorld, CALLER, createBytesWorld, pattern, withParts } from "../support/bytes-world.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

async function failure(work: Promise<unknown>): Promise<FsError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof FsError)) throw new Error(`expected an FsError, got ${String(error)}`);
  return error;
}

/** Lets timers fire until the work is done. */
async function during<T>(world: BytesWorld, work: Promise<T>): Promise<T> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  done.catch(() => {});
  for (let turn = 0; !isDone && turn < 1000; turn += 1) await world.clock.advance(100);
  return done;
}

/** A comparison by vitest takes a second a MiB. */
function same(actual: Uint8Array | undefined, expected: Uint8Array): void {
  expect(actual?.length).toBe(expected.length);
  expect(Buffer.compare(actual ?? new Uint8Array(), expected)).toBe(0);
}

function wholeInOne(world: BytesWorld): boolean {
  return world.gateway.calls.length === 1;
}

test("two opens at once share one cache file", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(1000));
  const [a, b] = await Promise.all([world.open(inode), world.open(inode)]);
  expect(world.context.cacheFiles.size).toBe(1);
  expect(world.files.openHandles()).toBe(1);
  same(await world.read(a, 0, 2000), pattern(1000));
  await Promise.all([world.close(a), world.close(b)]);
  expect(world.files.openHandles()).toBe(0);
});

test("an open while the last one is being closed gets a cache file of its own, and the rows stay right", async () => {
  const world = await createBytesWorld({}, { turns: () => 7 });
  const inode = world.addRemote(pattern(1000));
  const first = await world.open(inode, { write: true });
  await world.read(first, 0, 10);
  const closing = world.close(first);
  for (let turn = 0; turn < 12; turn += 1) await undefined;
  const second = await world.open(world.inode(inode.id), { write: true });
  await closing;
  await world.write(second, 0, Buffer.from("new"));
  await world.close(second);
  const successor = world.crash();
  expect(
    Buffer.from(await successor.readAll(inode))
      .subarray(0, 3)
      .toString(),
  ).toBe("new");
});

test("a superseded kernel node id takes no new open", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(10));
  world.context.metadata.inodes.replaceKernelNodeId(inode.id, {});
  expect((await failure(world.open(inode))).code).toBe("ESTALE");
});

test("a kernel node id superseded while its file is being opened takes no new open and leaves nothing open", async () => {
  const world = await createBytesWorld({}, { turns: () => 3 });
  const inode = world.addRemote(pattern(10));
  const opening = failure(world.open(inode, { write: true }));
  await undefined;
  world.context.metadata.inodes.replaceKernelNodeId(inode.id, {});
  expect((await opening).code).toBe("ESTALE");
  await world.clock.settle();
  expect(world.context.cacheFiles.size).toBe(0);
  expect(world.files.openHandles()).toBe(0);
});

test("a small file comes whole with its first byte", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(700 * KIB));
  const handle = await world.open(inode);
  await world.read(handle, 300 * KIB, 10);
  world.gateway.failures = Array(10).fill("offline");
  same(await world.read(handle, 0, MIB), pattern(700 * KIB));
  expect(wholeInOne(world)).toBe(true);
});

test("readers of one range share its download", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(900 * KIB));
  const handle = await world.open(inode);
  world.gateway.hold();
  const reads = [0, 100, 500 * KIB].map((offset) => world.read(handle, offset, 100));
  await world.clock.settle();
  expect(world.gateway.running).toBe(1);
  world.gateway.release();
  const [first] = await Promise.all(reads);
  same(first, pattern(900 * KIB).subarray(0, 100));
  expect(world.gateway.calls.length).toBe(1);
});

test("a reader waits for its own bytes, not for the end of the download", async () => {
  const world = await createBytesWorld();
  const content = pattern(4 * MIB);
  const inode = world.addRemote(content, { hash: null });
  const handle = await world.open(inode);
  world.gateway.breaks = [2 * MIB];
  world.gateway.ignoresRanges = true;
  // The body breaks off behind what the reader wants, and the next request is held.
  const reading = world.read(handle, MIB, 4096);
  const answer = await reading;
  same(answer, content.subarray(MIB, MIB + 4096));
  expect(world.context.cacheFiles.get(inode.kernelNodeId)?.ranges.downloads.size).toBeGreaterThan(0);
});

test("a sequential reader is read ahead of, with growing ranges and several in flight", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(64 * MIB), { hash: null });
  const handle = await world.open(inode);
  let mostAtOnce = 0;
  for (let offset = 0; offset < 40 * MIB; offset += 128 * KIB) {
    const reading = world.read(handle, offset, 128 * KIB);
    mostAtOnce = Math.max(mostAtOnce, world.context.cacheFiles.get(inode.kernelNodeId)?.ranges.downloads.size ?? 0);
    await reading;
  }
  const sizes = world.gateway.calls.map((call) => call.end - call.start);
  expect(sizes[0]).toBe(MIB);
  expect(Math.max(...sizes)).toBe(16 * MIB);
  expect(mostAtOnce).toBeGreaterThan(1);
  const sorted = [...world.gateway.calls].sort((a, b) => a.start - b.start);
  for (const [index, call] of sorted.entries()) expect(call.start).toBe(sorted[index - 1]?.end ?? 0);
});

test("reads here and there fetch little more than they ask for", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(64 * MIB), { hash: null });
  const handle = await world.open(inode);
  for (const offset of [50, 10, 30, 20]) await world.read(handle, offset * MIB + 5, 4096);
  await world.clock.settle();
  for (const call of world.gateway.calls) expect(call.end - call.start).toBeLessThanOrEqual(128 * KIB);
  expect(world.gateway.calls.length).toBe(4);
});

test("a gateway that ignores ranges is read once, and kept", async () => {
  const world = await createBytesWorld();
  const content = pattern(5 * MIB);
  const inode = world.addRemote(content);
  world.gateway.ignoresRanges = true;
  const handle = await world.open(inode);
  const [there, here] = await Promise.all([world.read(handle, 4 * MIB, 100), world.read(handle, 0, 100)]);
  same(there, content.subarray(4 * MIB, 4 * MIB + 100));
  same(here, content.subarray(0, 100));
  same(await world.readAll(inode), content);
  const calls = world.gateway.calls.length;
  expect(calls).toBeLessThanOrEqual(3);
  const other = world.addRemote(pattern(5 * MIB, 2));
  same(await world.readAll(other), pattern(5 * MIB, 2));
  expect(world.gateway.calls.length).toBe(calls + 1);
});

test("a gateway without ranges that has fewer bytes of a version than it said is not asked for them without end", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(3 * MIB));
  const { gateway } = world;
  for (const version of gateway.versions.keys()) gateway.versions.set(version, pattern(2 * MIB));
  gateway.ignoresRanges = true;
  let asked = 0;
  const get = gateway.versions.get.bind(gateway.versions);
  gateway.versions.get = (version) => {
    asked += 1;
    // Else nobody would ever have a turn again.
    if (asked > 20) gateway.hold();
    return get(version);
  };
  const handle = await world.open(inode);
  same(await world.read(handle, 0, 10), pattern(10));
  const end = new AbortController();
  const missing = failure(world.read(handle, 2 * MIB, 10, end.signal));
  await world.clock.advance(10_000);
  end.abort();
  expect((await missing).code).toBe("EIO");
  expect(asked).toBeLessThan(10);
  await world.close(handle);
});

test("what breaks off goes on where it stopped", async () => {
  const world = await createBytesWorld();
  const content = pattern(2 * MIB);
  const inode = world.addRemote(content);
  const handle = await world.open(inode);
  world.gateway.breaks = [300 * KIB, 200 * KIB];
  same(await during(world, world.read(handle, 0, MIB)), content.subarray(0, MIB));
  const demanded = world.gateway.calls.filter((call) => call.end === MIB);
  expect(demanded.length).toBeGreaterThan(1);
  expect(demanded.at(-1)?.start).toBeGreaterThan(0);
});

test.each(["server", "throttled", "offline"] as const)("a passing failure (%s) is not shown", async (code) => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(1000));
  const handle = await world.open(inode);
  world.gateway.failures = [code, code];
  same(await during(world, world.read(handle, 0, 1000)), pattern(1000));
});

test("a version that is gone is EIO with its cause, never the head's bytes or zeros", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(1000));
  world.gateway.versions.clear();
  const handle = await world.open(inode);
  const error = await failure(world.read(handle, 0, 1000));
  expect(error.code).toBe("EIO");
  expect(error.message).toContain("no version");
});

test.each([500 * KIB, 3 * MIB])(
  "an answer that ends early is an error and fills nothing with zeros (%i bytes)",
  async (size) => {
    const world = await createBytesWorld();
    const content = pattern(size);
    const inode = world.addRemote(content, { hash: null });
    const handle = await world.open(inode);
    world.gateway.shorts = [0, 0, 0];
    const first = await during(
      world,
      world.read(handle, 0, 400 * KIB).catch((error: FsError) => error.code),
    );
    expect(first).toBe("EIO");
    world.gateway.shorts = [100 * KIB];
    const again = await during(world, world.read(handle, 0, 400 * KIB));
    same(again, content.subarray(0, 400 * KIB));
  },
);

/** A large file whose beginning is here; the gateway is known to be away. */
async function goneOnTheWay() {
  const world = await createBytesWorld();
  const content = pattern(8 * MIB);
  const inode = world.addRemote(content, { hash: null });
  const handle = await world.open(inode);
  await world.read(handle, 0, 1000);
  await world.clock.settle();
  world.context.network.failed(new RemoteError("offline", "gone"));
  world.gateway.hold();
  return { world, content, handle };
}

test("known offline, what is here is served and what is missing is EIO within a second", async () => {
  const { world, content, handle } = await goneOnTheWay();
  same(await world.read(handle, 0, 1000), content.subarray(0, 1000));
  const start = world.clock.elapsed();
  const late = failure(world.read(handle, 6 * MIB, 1000)).then((error) => ({ error, at: world.clock.elapsed() }));
  await world.clock.advance(5000);
  const { error, at } = await late;
  expect(error.code).toBe("EIO");
  expect(minus(at, start)).toBeLessThanOrEqual(1000);
});

test("known offline, but back before the second is over: it is waited for like any other", async () => {
  const { world, content, handle } = await goneOnTheWay();
  const { network } = world.context;
  const bytes = world.read(handle, 6 * MIB, 1000);
  const answer = network.ask(new AbortController().signal, async (limit) => {
    await sleep(world.context.runtime, 3_000, limit);
    return limit.aborted ? "given up" : "answered";
  });
  await world.clock.advance(900);
  network.answered();
  await world.clock.advance(2_000);
  world.gateway.release();
  same(await during(world, bytes), content.subarray(6 * MIB, 6 * MIB + 1000));
  expect(await during(world, answer)).toBe("answered");
});

test("an interrupted reader stops waiting; the download goes on for others", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(1000));
  const handle = await world.open(inode);
  world.gateway.hold();
  const interrupt = new AbortController();
  const interrupted = failure(world.read(handle, 0, 100, interrupt.signal));
  const other = world.read(handle, 0, 100);
  await world.clock.settle();
  interrupt.abort();
  expect((await interrupted).code).toBe("EINTR");
  world.gateway.release();
  same(await other, pattern(1000).subarray(0, 100));
  expect(world.gateway.calls.length).toBe(1);
});

test("a failure of reading ahead is nobody's, and what it was for is fetched when wanted", async () => {
  const world = await createBytesWorld();
  const content = pattern(4 * MIB);
  const inode = world.addRemote(content, { hash: null });
  const handle = await world.open(inode);
  const reading = world.read(handle, 0, 128 * KIB);
  await reading;
  await world.clock.settle();
  world.gateway.failures = ["notFound"];
  await world.read(handle, 128 * KIB, 128 * KIB);
  await world.read(handle, 900 * KIB, 128 * KIB);
  await world.clock.settle();
  const all = await during(world, world.readAll(inode));
  expect(Buffer.compare(all, content)).toBe(0);
});

test.each([
  ["small", 1000],
  ["bigger", 3 * MIB],
])("a %s download with wrong bytes is EIO, then fetched again", async (_name, size) => {
  const world = await createBytesWorld();
  const content = pattern(size);
  const inode = world.addRemote(content);
  world.gateway.lies = 1;
  const handle = await world.open(inode);
  const codes: string[] = [];
  for (let offset = 0; offset < size; offset += 128 * KIB) {
    await world.read(handle, offset, 128 * KIB).catch((error: FsError) => codes.push(error.code));
  }
  expect(codes).toContain("EIO");
  expect(world.complaints.join()).toContain("not the version's");
  await world.close(handle);
  expect(Buffer.compare(await world.readAll(inode), content)).toBe(0);
});

test("pages of bytes that turned out wrong are not kept by the kernel", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(3 * MIB));
  world.gateway.lies = 1;
  await world.readAll(inode).catch(() => {});
  await world.clock.settle();
  const flags = { read: true, write: false, append: false, truncate: false, exclusive: false };
  const { open } = createFileSystem(world.context);
  expect((await open(CALLER, inode.kernelNodeId, flags)).keepCache).toBe(false);
  expect((await open(CALLER, inode.kernelNodeId, flags)).keepCache).toBe(true);
});

test("a file counts as whole only after it was checked: until then a crash makes the rest come again", async () => {
  const world = await createBytesWorld({}, { turns: () => 4 });
  const content = pattern(3 * MIB);
  const inode = world.addRemote(content);
  const handle = await world.open(inode);
  for (let offset = 0; offset < content.length; offset += MIB) await world.read(handle, offset, MIB);
  await world.clock.settle();
  expect(world.context.metadata.cacheFiles.get(inode.kernelNodeId)?.missing).toEqual([]);

  const unchecked = await createBytesWorld();
  const lied = unchecked.addRemote(content);
  unchecked.gateway.lies = 1;
  await unchecked.readAll(lied).catch(() => {});
  const successor = unchecked.crash();
  expect(successor.context.metadata.cacheFiles.get(lied.kernelNodeId)?.missing).not.toEqual([]);
  expect(Buffer.compare(await successor.readAll(lied), content)).toBe(0);
});

test("what is missing is data for lseek, and asks nobody", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(4 * MIB));
  const handle = await world.open(inode);
  const at = (kind: "data" | "hole", offset: number) =>
    createFileSystem(world.context).seek(CALLER, handle, kind, offset);
  expect(await at("data", 5000)).toBe(5000);
  expect(await at("hole", 5000)).toBe(4 * MIB);
  expect(await at("data", 4 * MIB)).toBeUndefined();
  expect(await at("hole", 4 * MIB)).toBeUndefined();
  expect(world.gateway.calls.length).toBe(0);
});

test("with a writer, who may have it mapped, nothing is a hole for lseek", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(4 * MIB));
  const reader = await world.open(inode);
  const writer = await world.open(inode, { write: true });
  await world.write(writer, 8 * MIB, pattern(10));
  const at = (kind: "data" | "hole", offset: number) =>
    createFileSystem(world.context).seek(CALLER, reader, kind, offset);
  expect(await at("data", 6 * MIB)).toBe(6 * MIB);
  expect(await at("hole", 0)).toBe(8 * MIB + 10);
  expect(await at("data", 8 * MIB + 10)).toBeUndefined();
  await world.close(writer);
  expect(await at("data", 6 * MIB)).toBe(8 * MIB);
  expect(await at("hole", 0)).toBe(4 * MIB);
});

test("closing gives up what is still being fetched", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(8 * MIB), { hash: null });
  const handle = await world.open(inode);
  await world.read(handle, 0, 1000);
  world.gateway.hold();
  const interrupt = new AbortController();
  const reading = failure(world.read(handle, 6 * MIB, 100, interrupt.signal));
  await world.clock.settle();
  interrupt.abort();
  await reading;
  await world.close(handle);
  await world.clock.settle();
  expect(world.gateway.running).toBe(0);
  expect(world.files.openHandles()).toBe(0);
});

test("what came in and is right is read, also where the rows cannot take it down", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const inode = world.addRemote(content);
  const { cacheFiles } = world.context.metadata;
  const { update } = cacheFiles;
  let refused = 0;
  Object.assign(cacheFiles, {
    update() {
      refused += 1;
      throw new FsError("ENOSPC", "the database takes no changes");
    },
  });
  expect(Buffer.compare(await world.readAll(inode), content)).toBe(0);
  expect(refused).toBeGreaterThan(0);
  Object.assign(cacheFiles, { update });
  expect(Buffer.compare(await world.readAll(inode), content)).toBe(0);
});

test("where only heads can be read, a download that could not be checked is checked before it has to be whole", async () => {
  const world = await createBytesWorld();
  const content = pattern(3 * MIB);
  const { id, kernelNodeId } = world.addRemote(content);
  const reader = await world.open(world.inode(id));
  // The hash that ran while it arrived, and that of the whole file.
  world.files.fail({ path: /live/, code: "EIO", on: ["hash"], times: 2 });
  for (let at = 0; at < content.length; at += MIB) await during(world, world.read(reader, at, MIB)).catch(() => {});
  const missing = () => world.context.metadata.cacheFiles.get(kernelNodeId)?.missing;
  expect(missing()).not.toEqual([]);
  const { client } = world.context;
  const headsOnly = withParts(world.context, {
    client: { ...client, features: { ...client.features, isFull: false } },
  });
  const flags = { read: false, write: true, append: false, truncate: false, exclusive: false };
  const writer = await during(world, createFileSystem(headsOnly).open(CALLER, kernelNodeId, flags));
  expect(missing()).toEqual([]);
  await world.close(writer.handle);
  await world.close(reader);
});

test("random reads of 4 KiB in a large file fetch at most sixteen times what they ask for", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(64 * MIB), { hash: null });
  const handle = await world.open(inode);
  const places = Array.from({ length: 40 }, (_, index) => (((index * 7919 + 4001) % 16_384) * 4096) as number);
  for (const offset of places) await world.read(handle, offset, 4096);
  const fetched = world.gateway.calls.reduce((sum, { start, end }) => sum + end - start, 0);
  expect(fetched).toBeLessThanOrEqual(16 * 4096 * places.length);
});

test("a file of 64 MiB read from its beginning takes eleven requests", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(64 * MIB), { hash: null });
  const handle = await world.open(inode);
  for (let offset = 0; offset < 64 * MIB; offset += 128 * KIB) await world.read(handle, offset, 128 * KIB);
  expect(world.gateway.calls.length).toBe(11);
});

/** Bytes that were requested of the gateway. */
function requested({ gateway }: BytesWorld): number {
  return gateway.calls.reduce((sum, { start, end }) => sum + end - start, 0);
}

async function readRange(world: BytesWorld, handle: HandleId, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 128 * KIB) await world.read(handle, at, Math.min(128 * KIB, to - at));
}

test("a player that seeks fetches what it plays and about as much ahead", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(128 * MIB), { hash: null });
  const handle = await world.open(inode);
  const places = [100, 20, 60, 40, 80];
  for (const place of places) {
    await readRange(world, handle, place * MIB, (place + 2) * MIB);
    await world.clock.settle();
  }
  expect(requested(world)).toBeLessThanOrEqual(2.25 * 2 * MIB * places.length);
  expect(world.gateway.calls.length).toBeLessThanOrEqual(5 * places.length);
});

test("behind a seek, a program that reads on has as much read ahead as any other", async () => {
  const world = await createBytesWorld();
  const inode = world.addRemote(pattern(128 * MIB), { hash: null });
  const handle = await world.open(inode);
  await readRange(world, handle, 64 * MIB, 88 * MIB);
  await world.clock.settle();
  expect(requested(world)).toBeGreaterThanOrEqual(32 * MIB);
});

test("two that read the same file at once fetch each byte once", async () => {
  const world = await createBytesWorld({}, { turns: () => 3 });
  const content = pattern(24 * MIB);
  const inode = world.addRemote(content);
  const [a, b] = [await world.open(inode), await world.open(inode)];
  await Promise.all([readRange(world, a, 0, content.length), readRange(world, b, 0, content.length)]);
  expect(requested(world)).toBe(content.length);
});

/** How often a file was hashed as a whole, and what became of hashes that run while it arrives. */
function countHashes(world: BytesWorld) {
  const counts = { whole: 0, begun: 0, finished: 0, cancelled: 0 };
  const { hash, beginHash } = world.files;
  Object.assign(world.files, {
    hash: (...args: Parameters<typeof hash>) => {
      counts.whole += 1;
      return hash(...args);
    },
    beginHash(path: string) {
      const running = beginHash(path);
      counts.begun += 1;
      return {
        ...running,
        finish: (signal?: AbortSignal) => {
          counts.finished += 1;
          return running.finish(signal);
        },
        cancel() {
          counts.cancelled += 1;
          running.cancel();
        },
      };
    },
  });
  return counts;
}

test("what is read from its beginning is hashed while it arrives, and nothing of it is read again for that", async () => {
  const world = await createBytesWorld();
  const counts = countHashes(world);
  const content = pattern(24 * MIB);
  const inode = world.addRemote(content);
  same(await world.readAll(inode), content);
  await world.clock.settle();
  expect(counts).toEqual({ whole: 0, begun: 1, finished: 1, cancelled: 0 });
  expect(world.context.metadata.cacheFiles.get(inode.kernelNodeId)?.missing).toEqual([]);
});

test("a file whose running hash is lost is hashed as a whole", async () => {
  const world = await createBytesWorld();
  const counts = countHashes(world);
  const content = pattern(3 * MIB);
  const inode = world.addRemote(content);
  world.files.fail({ path: /live/, code: "EMFILE", on: ["hash"] });
  same(await world.readAll(inode), content);
  await world.clock.settle();
  expect(counts).toEqual({ whole: 1, begun: 1, finished: 1, cancelled: 0 });
  expect(world.context.metadata.cacheFiles.get(inode.kernelNodeId)?.missing).toEqual([]);
});

test("what is read from its end on is hashed as a whole, once", async () => {
  const world = await createBytesWorld();
  const counts = countHashes(world);
  const content = pattern(80 * MIB);
  const inode = world.addRemote(content);
  const handle = await world.open(inode);
  await readRange(world, handle, 4 * MIB, content.length);
  await world.clock.settle();
  expect(counts).toEqual({ whole: 0, begun: 0, finished: 0, cancelled: 0 });
  await readRange(world, handle, 0, 4 * MIB);
  await world.clock.settle();
  expect(counts.whole).toBe(1);
  expect(counts).toMatchObject({ finished: 0, cancelled: counts.begun });
  expect(world.context.metadata.cacheFiles.get(inode.kernelNodeId)?.missing).toEqual([]);
});

test.each(["closed", "written to"])("a file that is %s before all of it is here is hashed no further", async (what) => {
  const world = await createBytesWorld();
  const counts = countHashes(world);
  const content = pattern(24 * MIB);
  const inode = world.addRemote(content);
  const handle = await world.open(inode, { write: true });
  await readRange(world, handle, 0, MIB);
  expect(counts).toMatchObject({ begun: 1, cancelled: 0 });
  if (what === "written to") {
    await world.write(handle, 2 * MIB, Buffer.from("other bytes"));
    await readRange(world, handle, MIB, content.length);
    expect(counts.cancelled).toBe(1);
  }
  await world.close(handle);
  await world.clock.settle();
  expect(counts).toMatchObject({ whole: 0, begun: 1, finished: 0, cancelled: 1 });
  expect(world.files.openHandles()).toBe(0);
});
