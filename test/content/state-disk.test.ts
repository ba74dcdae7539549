import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createReserve } from "../../src/content/reserve.ts";
import { createStateDisk, removeNow } from "../../src/content/state-disk.ts";
import { lockStateFolder, type StateLock } from "../../src/content/state-lock.ts";
import * as systemCalls from "../../src/content/system-calls.ts";
import { systemError } from "../../src/lib/system-error.ts";
import { createMemoryUnderTest } from "./support/memory-under-test.ts";

let folder: string;
let lock: StateLock;
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "wsfs-test-"));
  fs.mkdirSync(join(folder, "s"));
  lock = lockStateFolder(systemCalls, join(folder, "s", "lock"));
  fs.writeFileSync(join(folder, "s", "db"), "rows");
});
afterEach(() => {
  lock.release();
  fs.rmSync(folder, { recursive: true });
});

async function stateDisk() {
  const { files } = await createMemoryUnderTest();
  const reserve = createReserve(files, "/state/reserve", 0);
  return createStateDisk({ lock, lockPath: join(folder, "s", "lock"), database: join(folder, "s", "db"), reserve });
}

test("says what is free, and leaves the lock alone", async () => {
  const disk = await stateDisk();
  const { problem, total, available } = disk.look();
  expect([problem, total > 0, available <= total]).toEqual([undefined, true, true]);
  expect(() => lockStateFolder(systemCalls, join(folder, "s", "lock"))).toThrow(`in use by process ${process.pid}`);
});

test.each([
  ["the folder is removed", (path: string) => fs.rmSync(path, { recursive: true })],
  ["the folder is moved away", (path: string) => fs.renameSync(path, `${path}2`)],
  ["only the database is removed", (path: string) => fs.rmSync(join(path, "db"))],
  [
    "another folder takes its place",
    (path: string) => {
      fs.renameSync(path, `${path}2`);
      fs.mkdirSync(path);
      for (const name of ["lock", "db"]) fs.writeFileSync(join(path, name), "");
    },
  ],
])("is gone once %s", async (_, take) => {
  const disk = await stateDisk();
  expect(disk.isThere()).toBe(true);
  take(join(folder, "s"));
  expect(disk.isThere()).toBe(false);
  expect(disk.look().problem).toBe("gone");
});

test("a file is removed at once, and one that is not there is none", () => {
  expect(removeNow(join(folder, "s", "db"))).toBe(true);
  expect(removeNow(join(folder, "s", "db"))).toBe(false);
});

test("is looked at also where no file can be opened any more", async () => {
  const disk = await stateDisk();
  const open = vi.spyOn(fs, "openSync").mockImplementation(() => {
    throw systemError("EMFILE", "open");
  });
  const { problem } = disk.look();
  expect(open).toHaveBeenCalled();
  open.mockRestore();
  expect(problem).toBeUndefined();
});
