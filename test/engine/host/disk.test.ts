/** What is known of the disk of the state dir, and what a failed commit makes of it. */
import { expect, test } from "vitest";
import type { DiskLook } from "../../../src/content/state-disk.ts";
import { createDisk } from "../../../src/engine/host/index.ts";
import { SILENT } from "../../../src/lib/log.ts";

const reserve = {
  size: 0,
  room: 0,
  reservedBytes: () => 0,
  restore: async () => true,
  giveUp: async () => false,
  giveUpNow: () => false,
};

test("a disk that cannot even be looked at is no reason to go down, and commits say that nothing works", () => {
  let look = (): DiskLook => ({ problem: undefined, total: 100, available: 50 });
  const stateDisk = { reserve, isThere: () => true, look: () => look() };
  const disk = createDisk({ stateDisk, limits: undefined, folder: "state", log: SILENT, onChange() {} });
  disk.look();
  look = () => {
    throw Object.assign(new Error("i/o error"), { code: "EIO" });
  };
  disk.look();
  expect([disk.trouble, disk.available, disk.hasRows]).toEqual([undefined, 50, true]);
  const told = disk.commitFailed(Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" }));
  expect([told?.code, disk.hasRows]).toEqual(["EIO", false]);
});

test.each([
  ["it is not there", () => false],
  [
    "nobody may look",
    () => {
      throw Object.assign(new Error("no"), { code: "EACCES" });
    },
  ],
])("a look for the folder is a look at the disk only where %s", (_, fails) => {
  let isThere = () => true;
  const looks: string[] = [];
  const look = (): DiskLook => {
    looks.push("look");
    return { problem: "gone", total: 100, available: 50 };
  };
  const stateDisk = { reserve, isThere: () => isThere(), look };
  const disk = createDisk({ stateDisk, limits: undefined, folder: "state", log: SILENT, onChange() {} });
  disk.lookForFolder();
  expect([looks, disk.trouble]).toEqual([[], undefined]);
  isThere = fails;
  disk.lookForFolder();
  expect([looks, disk.trouble]).toEqual([["look"], "gone"]);
});
