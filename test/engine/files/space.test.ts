/** Looking at the disk now and then, what is done about it, and its end. */
import { expect, test } from "vitest";
import { createReserve } from "../../../src/content/reserve.ts";
import type { StateDisk } from "../../../src/content/state-disk.ts";
import type { FsError } from "../../../src/engine/api/index.ts";
import { createSpace } from "../../../src/engine/files/space.ts";
import { createDisk } from "../../../src/engine/host/index.ts";
import { createBytesWorld, pattern } from "../support/bytes-world.ts";

const KIB = 1024;
const RESERVE = 64 * KIB;

test("stopped while it looks at the disk, nobody looks again", async () => {
  const { context, clock } = await createBytesWorld();
  let looks = 0;
  let end = () => {};
  Object.assign(context.disk, {
    look() {
      looks += 1;
    },
    restore: () =>
      new Promise<void>((resolve) => {
        end = resolve;
      }),
  });
  context.space.start();
  await clock.advance(60_000);
  expect(looks).toBe(1);
  end();
  await clock.advance(60_000);
  expect(looks).toBe(2);
  context.space.stop();
  end();
  await clock.advance(60_000);
  expect(looks).toBe(2);
});

test("a full disk is waited for where a name was just removed, whose bytes are on their way out", async () => {
  const { context, clock } = await createBytesWorld();
  let isFull = true;
  Object.assign(context.disk, { look() {}, restore: async () => {}, requireChangeable() {} });
  Object.defineProperty(context.disk, "trouble", { get: () => (isFull ? "full" : undefined) });
  const said = () =>
    context.space.require().then(
      () => "room",
      (error: FsError) => error.code,
    );
  expect(await said()).toBe("ENOSPC");

  context.fileState.nameRemoved(clock.elapsed());
  const waiting = said();
  await clock.advance(300);
  isFull = false;
  await clock.advance(100);
  expect(await waiting).toBe("room");

  isFull = true;
  const inVain = said();
  await clock.advance(2_000);
  expect(await inVain).toBe("ENOSPC");
});

test.each([0, 100])(
  "a full disk is so no longer than there is anything cached (left free by it: %i KiB)",
  async (keepFree) => {
    const world = await createBytesWorld({}, { capacity: 1024 * KIB });
    const { context, files, clock } = world;
    let available = 0;
    const measure = async () => {
      available = (await files.space("/state")).available;
    };
    const stateDisk: StateDisk = {
      reserve: createReserve(files, "/state/reserve", RESERVE, files.removeNow),
      isThere: () => true,
      look: () => ({ problem: undefined, total: 1024 * KIB, available }),
    };
    const limits = { keepFree: keepFree * KIB };
    const disk = createDisk({ stateDisk, limits, folder: "/state", log: context.log, onChange() {} });
    Object.assign(context, { disk });
    const space = createSpace(() => context);
    await measure();
    await disk.restore();
    for (let index = 0; index < 40; index += 1) await world.readAll(world.addRemote(pattern(15 * KIB, index)));
    await clock.advance(10_000);
    await measure();
    // Somebody else takes the rest, and the rows what was kept back.
    const other = await files.open("/other", "w+");
    await other.allocate(0, 0, available - 4 * KIB);
    await other.close();
    disk.commitFailed(new Error("full"));
    const rows = await files.open("/rows", "w+");
    await rows.allocate(0, 0, RESERVE / 2);
    await rows.close();
    await measure();
    disk.look();
    expect(disk.trouble).toBe("full");

    // Each look knows what the last one set free.
    for (let look = 0; look < 2; look += 1) {
      await space.look();
      await measure();
    }
    disk.look();
    expect([disk.trouble, disk.reserve, disk.lacking]).toEqual([undefined, RESERVE, 0]);
    expect(context.metadata.cacheFiles.totalBytes()).toBeGreaterThan(0);
    await context.space.require();
  },
);

test("while what is kept back is being taken again, nothing more is lacking for it", async () => {
  const { context, files } = await createBytesWorld({}, { capacity: 1024 * KIB });
  let available = 3 * RESERVE;
  const slow = {
    ...files,
    async open(...parameters: Parameters<typeof files.open>) {
      const file = await files.open(...parameters);
      return {
        ...file,
        /** What was allocated is gone from the disk, and not safe yet. */
        async sync() {
          available -= RESERVE;
          disk.look();
          lacking.push(disk.lacking);
          await file.sync();
        },
      };
    },
  };
  const lacking: number[] = [];
  const stateDisk: StateDisk = {
    reserve: createReserve(slow, "/state/reserve", RESERVE, files.removeNow),
    isThere: () => true,
    look: () => ({ problem: undefined, total: 1024 * KIB, available }),
  };
  const disk = createDisk({ stateDisk, limits: { keepFree: 0 }, folder: "/state", log: context.log, onChange() {} });
  disk.look();
  expect(disk.trouble).toBe("full");
  available = 2 * RESERVE;
  disk.look();
  expect(disk.lacking).toBe(0);
  await disk.restore();
  expect([disk.trouble, lacking]).toEqual([undefined, [0]]);
});

test("refused what is kept back though the disk has room, as by a user's quota, the cache goes bit by bit until it is taken", async () => {
  const world = await createBytesWorld({}, { capacity: 4096 * KIB });
  const { context, files, clock } = world;
  for (let index = 0; index < 20; index += 1) await world.readAll(world.addRemote(pattern(64 * KIB, index)));
  await clock.advance(10_000);
  const stateDisk: StateDisk = {
    reserve: createReserve(files, "/state/reserve", RESERVE, files.removeNow),
    isThere: () => true,
    look: () => ({ problem: undefined, total: 4096 * KIB, available: 2048 * KIB }),
  };
  const disk = createDisk({ stateDisk, limits: { keepFree: 0 }, folder: "/state", log: context.log, onChange() {} });
  Object.assign(context, { disk });
  const space = createSpace(() => context);
  const cached = () => context.metadata.cacheFiles.totalBytes() / KIB;
  const before = cached();
  files.fail({ path: /reserve/, code: "EDQUOT", on: ["allocate"], times: 3 });
  const seen: [string | undefined, number][] = [];
  for (let look = 0; look < 5; look += 1) {
    await space.look();
    seen.push([disk.trouble, before - cached()]);
  }
  expect(seen).toEqual([
    ["full", 0],
    ["full", 128],
    ["full", 256],
    [undefined, 384],
    [undefined, 384],
  ]);
});
