/**
 * Random reads, writes, truncates, fallocates, fetch failures, opens, closes and crashes on files that
 * are partly here, some of them past everybody, against plain byte arrays: what was acknowledged is there, what was not written is
 * the origin's, and a snapshot has the hash of exactly that.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { FsError, type HandleId } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import type { InodeId } from "../../../src/metadata/ids.ts";
import { SEED } from "../../support/seed.ts";
import { seededRandom } from "../../support/virtual-clock.ts";
import { type BytesWorld, CALLER, createBytesWorld, hashOf, pattern } from "../support/bytes-world.ts";

/** So small that a few steps reach every corner; chunks and pages are smaller still. */
const SIZE = 3 * 1024 * 1024;
const MAX = SIZE + 512 * 1024;
const ORIGIN = pattern(SIZE);
const ORIGIN_HASH = hashOf(ORIGIN);

type Step =
  | { do: "open"; write: boolean; truncate: boolean }
  | { do: "close"; which: number }
  | { do: "read"; which: number; offset: number; size: number; wait: boolean }
  | { do: "write"; which: number; offset: number; size: number; seed: number; wait: boolean }
  | { do: "truncate"; size: number; wait: boolean }
  | { do: "punch"; which: number; offset: number; size: number }
  | { do: "fail"; how: "failure" | "break" | "short" }
  | { do: "ignoreRanges" }
  | { do: "advance"; milliseconds: number }
  | { do: "snapshot" }
  | { do: "crash"; turns: number };

const offset = fc.oneof(
  fc.nat(MAX),
  fc.nat(48).map((page) => page * 65_536),
);
const size = fc.oneof(fc.nat(200), fc.nat(300_000));
const which = fc.nat(3);
const wait = fc.boolean();
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("open" as const), write: wait, truncate: fc.constant(false) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("open" as const), write: wait, truncate: fc.constant(true) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("close" as const), which }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("read" as const), which, offset, size, wait }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("write" as const), which, offset, size, seed: fc.nat(200), wait }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("truncate" as const), size: fc.nat(MAX), wait }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("punch" as const), which, offset, size }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("fail" as const), how: fc.constantFrom("failure", "break", "short") }),
  } as { weight: number; arbitrary: fc.Arbitrary<Step> },
  { weight: 1, arbitrary: fc.constant({ do: "ignoreRanges" as const }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("advance" as const), milliseconds: fc.nat(40_000) }) },
  { weight: 2, arbitrary: fc.constant({ do: "snapshot" as const }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("crash" as const), turns: fc.nat(60) }) },
);

interface Open {
  readonly handle: HandleId;
  readonly write: boolean;
}

/** Where a byte may be one of two: a change was under way when the process died. */
class Model {
  bytes: Uint8Array;
  /** What it would be with the changes that were not acknowledged; tried when the first does not fit. */
  uncertain: Uint8Array[] = [];

  constructor(bytes: Uint8Array) {
    this.bytes = bytes.slice();
  }

  write(at: number, data: Uint8Array): void {
    if (at + data.length > this.bytes.length) this.truncate(at + data.length);
    this.bytes.set(data, at);
  }

  truncate(to: number): void {
    const next = new Uint8Array(to);
    next.set(this.bytes.subarray(0, to));
    this.bytes = next;
  }
}

async function run(seed: number, steps: readonly Step[]): Promise<void> {
  const origin = ORIGIN;
  const random = seededRandom(seed);
  let world = await createBytesWorld({}, { turns: () => Math.floor(random() ** 3 * 40) });
  const { id } = world.addRemote(origin);
  const model = new Model(origin);
  let open: Open[] = [];
  /** Begun and not awaited. Of changes there is one at a time, for the model knows no order of two. */
  let pending: Promise<void>[] = [];
  let changing: Promise<void> | undefined;
  let changes = 0;

  const pick = (which: number, write: boolean) => {
    const fitting = open.filter((each) => !write || each.write);
    return fitting[which % Math.max(1, fitting.length)]?.handle;
  };
  const settle = async () => {
    await settled(Promise.all(pending));
    pending = [];
    changing = undefined;
  };
  const settled = async (all: Promise<unknown>) => {
    // Retries wait for the clock.
    for (let turn = 0, isDone = false; !isDone; turn += 1) {
      if (turn > 1000) throw new Error("something never ends");
      await Promise.race([
        all.then(() => {
          isDone = true;
        }),
        world.clock.advance(500),
      ]);
    }
  };
  const change = (work: Promise<void>) => {
    changes += 1;
    const life = world;
    changing = work.then(() => {
      // A dead process acknowledges nothing.
      if (world !== life) return;
      model.uncertain = [];
      changing = undefined;
    });
    pending.push(changing);
  };
  const tolerate = async (work: Promise<unknown>): Promise<boolean> => {
    try {
      await work;
      return true;
    } catch (error) {
      if (error instanceof FsError && (error.code === "EIO" || error.code === "EINTR")) return false;
      throw error;
    }
  };

  for (const each of steps) {
    switch (each.do) {
      case "open": {
        await settle();
        const write = each.write || each.truncate;
        const handle = await world.open(world.inode(id), { write, truncate: each.truncate });
        if (each.truncate) model.truncate(0);
        open.push({ handle, write });
        break;
      }
      case "close": {
        await settle();
        const [gone] = open.splice(each.which % Math.max(1, open.length), 1);
        if (gone !== undefined) await world.close(gone.handle);
        break;
      }
      case "read": {
        const handle = pick(each.which, false);
        if (handle === undefined) break;
        // What is written meanwhile it may see or not.
        const isAlone = changing === undefined;
        const before = changes;
        const expected = model.bytes.slice(each.offset, each.offset + each.size);
        // By itself, where it may.
        const moved = random() < 0.5 ? world.fastPath.read(handle, each.size, each.offset) : undefined;
        if (moved !== undefined && isAlone) expect(Buffer.compare(moved, expected), "bytes moved").toBe(0);
        const reading = world.read(handle, each.offset, each.size).then(
          (bytes) => {
            if (isAlone && before === changes) expect(Buffer.compare(bytes, expected), "bytes read").toBe(0);
          },
          (error: unknown) => {
            if (!(error instanceof FsError) || error.code !== "EIO") throw error;
          },
        );
        pending.push(reading);
        if (each.wait) await settle();
        break;
      }
      case "write": {
        const handle = pick(each.which, true);
        if (handle === undefined || each.size === 0) break;
        if (changing !== undefined) await settled(changing);
        const data = pattern(Math.min(each.size, MAX - each.offset), each.seed);
        if (data.length === 0) break;
        if (random() < 0.5 && world.fastPath.write(handle, data, each.offset)) {
          changes += 1;
          model.write(each.offset, data);
          break;
        }
        const before = model.bytes.slice();
        model.write(each.offset, data);
        model.uncertain = [before];
        change(world.write(handle, each.offset, data).then(() => {}));
        if (each.wait) await settle();
        break;
      }
      case "truncate": {
        if (changing !== undefined) await settled(changing);
        const before = model.bytes.slice();
        model.truncate(each.size);
        model.uncertain = [before];
        change(world.truncate(id, each.size));
        if (each.wait) await settle();
        break;
      }
      case "punch": {
        await settle();
        const handle = pick(each.which, true);
        if (handle === undefined || each.size === 0) break;
        await createFileSystem(world.context).allocate(CALLER, handle, 3, each.offset, each.size);
        model.bytes.fill(0, each.offset, each.offset + each.size);
        break;
      }
      case "fail":
        if (each.how === "failure") world.gateway.failures.push("server", "malformed");
        if (each.how === "break") world.gateway.breaks.push(70_000);
        if (each.how === "short") world.gateway.shorts.push(70_000);
        break;
      case "ignoreRanges":
        world.gateway.ignoresRanges = true;
        break;
      case "advance":
        await settle();
        await world.clock.advance(each.milliseconds);
        break;
      case "snapshot": {
        await settle();
        let result = "";
        const taking = tolerate(
          world.context.snapshots.take(id, CALLER.signal).then((answer) => {
            result = answer;
          }),
        );
        pending.push(taking.then(() => {}));
        await settle();
        if (result === "taken") await checkSnapshot(world, id, model.bytes);
        break;
      }
      case "crash":
        // Between any two steps of what was begun: it may or may not be there.
        for (let turn = 0; turn < each.turns; turn += 1) await undefined;
        world = world.crash();
        for (const late of pending) late.catch(() => {});
        pending = [];
        changing = undefined;
        open = [];
        await world.recover();
        await checkAfterCrash(world, id, model);
        break;
    }
  }
  await settle();
  for (const each of open) await world.close(each.handle);
  await checkWhole(world, id, model.bytes);
  await world.clock.advance(60_000);
  expect(world.context.cacheFiles.size, "files still open").toBe(0);
  expect(world.files.openHandles(), "handles still open").toBe(0);
}

async function checkSnapshot(world: BytesWorld, id: InodeId, bytes: Uint8Array): Promise<void> {
  const inode = world.inode(id);
  expect(inode.hash).toBe(hashOf(bytes));
  if (bytes.length === 0) return;
  const snapshot = world.context.metadata.snapshots.newestOf(id);
  if (snapshot === undefined) throw new Error("no snapshot");
  expect(snapshot.changes).toBe(inode.changes);
  const parts: Uint8Array[] = [];
  for await (const part of world.context.snapshotFiles.source(snapshot).read()) parts.push(part);
  expect(hashOf(Buffer.concat(parts))).toBe(snapshot.hash);
}

async function readWhole(world: BytesWorld, id: InodeId): Promise<Uint8Array> {
  world.gateway.failures = [];
  world.gateway.breaks = [];
  world.gateway.shorts = [];
  // Copied: of a Buffer, `slice` would be a view that changes with it, and `fill` refuses to end past it.
  const bytes = new Uint8Array(await world.readAll(world.inode(id)));
  // What counts as the gateway's version is that version, or it would never be sent.
  if (world.inode(id).content === "clean") expect(hashOf(bytes), "clean content").toBe(ORIGIN_HASH);
  return bytes;
}

async function checkWhole(world: BytesWorld, id: InodeId, bytes: Uint8Array): Promise<void> {
  const now = await readWhole(world, id);
  expect(now.length).toBe(bytes.length);
  const at = now.findIndex((byte, index) => byte !== bytes[index]);
  expect(at, `differs from ${at}: ${now[at]} instead of ${bytes[at]}`).toBe(-1);
  expect(world.inode(id).size).toBe(bytes.length);
}

async function checkAfterCrash(world: BytesWorld, id: InodeId, model: Model): Promise<void> {
  const now = await readWhole(world, id);
  if (model.uncertain.length === 0) {
    expect(Buffer.compare(now, model.bytes), "bytes after a crash").toBe(0);
    return;
  }
  // Not acknowledged: each byte is what it was or what it was to be.
  const [before] = model.uncertain;
  expect([model.bytes.length, before?.length]).toContain(now.length);
  for (let i = 0; i < now.length; i += 1) {
    if (now[i] !== model.bytes[i] && now[i] !== (before?.[i] ?? 0)) throw new Error(`byte ${i} is neither old nor new`);
  }
  model.bytes = now;
  model.uncertain = [];
}

const RUNS = Number(process.env.WSFS_PROPERTY_RUNS ?? 60);

test("bytes of programs and of the origin are never mixed up, lost or invented", {
  timeout: 60_000 + RUNS * 1000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.array(step, { minLength: 5, maxLength: 40 }), (seed, steps) => run(seed, steps)),
    { seed: SEED, numRuns: RUNS },
  );
});
