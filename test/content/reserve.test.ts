import { expect, test } from "vitest";
import { createReserve } from "../../src/content/reserve.ts";
import { createDiskUnderTest } from "../support/disk-under-test.ts";
import { pattern, writeAll } from "../support/files-cases.ts";
import { createMemoryUnderTest } from "./support/memory-under-test.ts";

const SIZE = 64 << 10;
const PATH = "/state/reserve";

test("is really allocated, on the real disk", async () => {
  const { files, root, end } = await createDiskUnderTest();
  try {
    const reserve = createReserve(files, `${root}/reserve`, SIZE);
    expect(await reserve.restore()).toBe(true);
    expect((await files.stat(`${root}/reserve`)).allocated).toBeGreaterThanOrEqual(SIZE);
    expect(await reserve.giveUp()).toBe(true);
    expect(await files.list(root)).toEqual([]);
  } finally {
    await end();
  }
});

test("is written where the disk cannot allocate", async () => {
  const { files } = await createMemoryUnderTest();
  files.fail({ path: /reserve/, code: "ENOTSUP", on: ["allocate"] });
  expect(await createReserve(files, PATH, SIZE + 100).restore()).toBe(true);
  expect(await files.stat(PATH)).toMatchObject({ size: SIZE + 100 });
  expect((await files.stat(PATH)).allocated).toBeGreaterThanOrEqual(SIZE + 100);
});

test("given up, it lets a full disk take writes again; it comes back when there is room for both", async () => {
  const { files } = await createMemoryUnderTest(4 * SIZE);
  const reserve = createReserve(files, PATH, SIZE);
  expect(await reserve.restore()).toBe(true);
  expect(reserve.reservedBytes()).toBe(SIZE);
  await writeAll(files, "/state/big", pattern(3 * SIZE));
  await expect(writeAll(files, "/state/row", pattern(10))).rejects.toMatchObject({ code: "ENOSPC" });

  expect(await reserve.giveUp()).toBe(true);
  expect(reserve.reservedBytes()).toBe(0);
  await writeAll(files, "/state/row", pattern(10));
  expect(await reserve.restore()).toBe(false);
  expect(await reserve.giveUp()).toBe(false);

  await files.remove("/state/big");
  expect(await reserve.restore()).toBe(true);
  expect(reserve.reservedBytes()).toBe(SIZE);
  expect(files.openHandles()).toBe(0);
});

test("is not taken again while that would all but fill the disk", async () => {
  const { files } = await createMemoryUnderTest(4 * SIZE);
  const reserve = createReserve(files, PATH, SIZE);
  await writeAll(files, "/state/big", pattern(2 * SIZE + 1));
  expect(await reserve.restore()).toBe(false);
  await writeAll(files, "/state/big", pattern(2 * SIZE));
  expect(await reserve.restore()).toBe(true);
});

test("a predecessor's is taken over; a part of one is built anew", async () => {
  const { files } = await createMemoryUnderTest(3 * SIZE);
  await writeAll(files, PATH, pattern(SIZE));
  const { mtime } = await files.stat(PATH);
  expect(await createReserve(files, PATH, SIZE).restore()).toBe(true);
  expect((await files.stat(PATH)).mtime).toEqual(mtime);
  await writeAll(files, PATH, pattern(SIZE / 2));
  expect(await createReserve(files, PATH, SIZE).restore()).toBe(true);
  expect((await files.stat(PATH)).allocated).toBe(SIZE);
});

test("a predecessor's can be given up without having been looked at", async () => {
  const { files } = await createMemoryUnderTest();
  await writeAll(files, PATH, pattern(SIZE));
  expect(await createReserve(files, PATH, SIZE).giveUp()).toBe(true);
  expect(await files.list("/state")).toEqual([]);
});

test.each(["ENOSPC", "EDQUOT"])("%s while it is built leaves nothing behind and is no error", async (code) => {
  const { files } = await createMemoryUnderTest();
  files.fail({ path: /reserve/, code, on: ["allocate"] });
  const reserve = createReserve(files, PATH, SIZE);
  expect(await reserve.restore()).toBe(false);
  expect(reserve.reservedBytes()).toBe(0);
  expect(await files.list("/state")).toEqual([]);
});

test("a failing disk is told, and leaves nothing behind", async () => {
  const { files } = await createMemoryUnderTest();
  files.fail({ path: /reserve/, code: "EIO", on: ["sync"] });
  const reserve = createReserve(files, PATH, SIZE);
  await expect(reserve.restore()).rejects.toMatchObject({ code: "EIO" });
  expect(await files.list("/state")).toEqual([]);
  expect(await reserve.restore()).toBe(true);
});

test("calls that overlap are carried out in their order", async () => {
  const { files } = await createMemoryUnderTest();
  const reserve = createReserve(files, PATH, SIZE);
  expect(await Promise.all([reserve.restore(), reserve.restore(), reserve.giveUp(), reserve.restore()])).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(reserve.reservedBytes()).toBe(SIZE);
});

test("of size 0 keeps nothing back", async () => {
  const { files } = await createMemoryUnderTest();
  expect(await createReserve(files, PATH, 0).restore()).toBe(true);
  expect(await files.list("/state")).toEqual([]);
});
