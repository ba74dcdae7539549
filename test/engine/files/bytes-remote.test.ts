/** `durability remote`: close and fsync end when the gateway has the content, or says why it has not. */
import { expect, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import { FsError, type HandleId } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { minus } from "../../../src/lib/clocks.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf } from "../support/bytes-world.ts";

const TEXT = Buffer.from("written here");

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "no error",
    (error: unknown) => (error instanceof FsError ? error.code : `no FsError: ${String(error)}`),
  );
}

async function writing() {
  const world = await createBytesWorld({ durability: "remote" });
  const { inode, handle } = await world.create();
  await world.write(handle, 0, TEXT);
  return { world, id: inode.id, handle };
}

function rowOf(world: BytesWorld, id: InodeId) {
  const { metadata } = world.context;
  const [entry] = metadata.entries.ofInode(id);
  const row = entry === undefined ? undefined : metadata.nodes.ofEntry(entry.id);
  if (row === undefined) throw new Error("no node row");
  return row;
}

/** As an acknowledgement does. */
function acknowledge(world: BytesWorld, id: InodeId, hash: string): void {
  const base = {
    parent: "root",
    name: "a",
    head: "v1",
    hash,
    size: TEXT.length,
    attributes: {},
    revision: 1,
    position: 1,
    modifiedAt: "2026-01-01T00:00:00.000Z",
  };
  world.context.metadata.nodes.update(rowOf(world, id).id, { nodeId: "n1", base });
  world.context.activity.progressed();
}

test.each([
  [
    "close",
    (context: BytesWorld["context"], caller: typeof CALLER, handle: HandleId) =>
      createFileSystem(context).flush(caller, handle),
  ],
  [
    "fsync",
    (context: BytesWorld["context"], caller: typeof CALLER, handle: HandleId) =>
      createFileSystem(context).fsync(caller, handle, false),
  ],
] as const)(
  "%s takes a snapshot of the open file, asks for it to be sent now, and waits for the answer",
  async (_name, call) => {
    const { world, id, handle } = await writing();
    let isDone = false;
    const waiting = call(world.context, CALLER, handle).then(() => {
      isDone = true;
    });
    await world.clock.advance(1000);
    expect(isDone).toBe(false);
    expect(world.inode(id).hash).toBe(hashOf(TEXT));
    expect(rowOf(world, id).due).toBeLessThanOrEqual(world.clock.wallClock());
    acknowledge(world, id, hashOf(Buffer.from("older")));
    await world.clock.advance(1000);
    expect(isDone).toBe(false);
    acknowledge(world, id, hashOf(TEXT));
    await world.clock.advance(1000);
    expect(isDone).toBe(true);
    await waiting;
  },
);

test.each([
  ["the workspace's quota is exceeded", "EDQUOT"],
  ["403 forbidden", "EACCES"],
  ["something else", "EIO"],
])("a refusal (%s) is %s", async (reason, code) => {
  const { world, id, handle } = await writing();
  const waiting = codeOf(createFileSystem(world.context).flush(CALLER, handle));
  await world.clock.advance(500);
  world.context.metadata.nodes.update(rowOf(world, id).id, { parked: reason });
  world.context.activity.progressed();
  await world.clock.advance(500);
  expect(await waiting).toBe(code);
});

test("known offline it is EIO within a second or so", async () => {
  const { world, handle } = await writing();
  world.context.network.failed(new RemoteError("offline", "gone"));
  const start = world.clock.elapsed();
  const waiting = codeOf(createFileSystem(world.context).flush(CALLER, handle)).then((code) => ({
    code,
    at: world.clock.elapsed(),
  }));
  await world.clock.advance(5000);
  const { code, at } = await waiting;
  expect(code).toBe("EIO");
  expect(minus(at, start)).toBeLessThanOrEqual(1500);
});

test("interrupted, it ends", async () => {
  const { world, handle } = await writing();
  const interrupt = new AbortController();
  const waiting = codeOf(createFileSystem(world.context).flush({ ...CALLER, signal: interrupt.signal }, handle));
  await world.clock.advance(500);
  interrupt.abort();
  await world.clock.advance(500);
  expect(await waiting).toBe("EINTR");
});
