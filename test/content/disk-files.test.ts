import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDiskFiles } from "../../src/content/disk-files.ts";
import { createHashWorkers } from "../../src/content/hash-workers.ts";
import { elapsedTime } from "../../src/lib/clocks.ts";
import { createDiskUnderTest } from "../support/disk-under-test.ts";
import { describeFiles, type FilesUnderTest, pattern, writeAll } from "../support/files-cases.ts";
import { systemCalls } from "../support/system-calls.ts";

describeFiles("files on the disk", createDiskUnderTest);

let under: FilesUnderTest;
let path: string;

beforeEach(async () => {
  under = await createDiskUnderTest();
  path = join(under.root, "a", "file");
  await under.files.makeFolder(join(under.root, "a"));
});
afterEach(() => under.end());

/** Descriptors of this process that are open on the file. */
function descriptorsOn(file: string): string[] {
  return fs.readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      return false;
    }
  });
}

test("files and folders are for their owner only", async () => {
  await writeAll(under.files, path, pattern(1));
  await under.files.clone(path, `${path}2`);
  expect(fs.statSync(join(under.root, "a")).mode & 0o777).toBe(0o700);
  expect(fs.statSync(path).mode & 0o777).toBe(0o600);
  expect(fs.statSync(`${path}2`).mode & 0o777).toBe(0o600);
});

test("what is not in memory, or only a part, is waited for without holding up the thread", async () => {
  const content = pattern(100);
  await writeAll(under.files, path, content);
  const asked: number[] = [];
  /** As a disk of which the first ten bytes of each read are in memory, but nothing from byte 50 on. */
  const readNow = (fd: number, buffer: Uint8Array, position: number) => {
    asked.push(position);
    return position >= 50 ? undefined : fs.readSync(fd, buffer, 0, Math.min(10, buffer.length), position);
  };
  const hashWorkers = createHashWorkers();
  const files = createDiskFiles({
    systemCalls: { ...systemCalls, readNow },
    hashWorkers,
    elapsed: () => elapsedTime(0),
  });
  const file = await files.open(path, "r");
  const buffer = Buffer.alloc(200);
  expect(await file.read(buffer, 5, 195, 0)).toBe(100);
  await file.close();
  expect(buffer.subarray(5, 105).equals(content)).toBe(true);
  expect(asked).toEqual([0, 10, 20, 30, 40, 50]);
});

test("a child process does not inherit an open file", async () => {
  const file = await under.files.open(path, "wx+");
  const [fd] = descriptorsOn(path);
  const seen = spawnSync("readlink", [`/proc/self/fd/${fd}`], { encoding: "utf8" }).stdout.trim();
  await file.close();
  expect(seen).not.toBe(path);
});

test("no descriptor is left open, whatever fails", async () => {
  await writeAll(under.files, path, pattern(3 << 20));
  const controller = new AbortController();
  const hashing = under.files.hash(path, controller.signal);
  controller.abort();
  await expect(hashing).rejects.toMatchObject({ name: "AbortError" });
  await expect(under.files.clone(path, path)).rejects.toMatchObject({ code: "EEXIST" });
  await expect(under.files.hash(under.root)).rejects.toMatchObject({ code: "EISDIR", path: under.root });
  await under.files.hash(path);
  // The thread that was told to stop closes its file when it notices.
  await expect.poll(() => descriptorsOn(path)).toEqual([]);
  expect(descriptorsOn(under.root)).toEqual([]);
});

test("an error names the file also when the call went by descriptor", async () => {
  const file = await under.files.open(path, "wx+");
  await expect(file.truncate(Number.MAX_SAFE_INTEGER)).rejects.toMatchObject({ code: "EFBIG", path });
  await expect(file.allocate(0, 0, 0)).rejects.toMatchObject({ code: "EINVAL", path });
  await file.close();
});

test("a full disk is told as such, and other bytes stay", async () => {
  // /dev/full answers ENOSPC to every write.
  const file = await under.files.open("/dev/full", "r+");
  await expect(file.write(pattern(10), 0)).rejects.toMatchObject({ code: "ENOSPC", path: "/dev/full" });
  await file.close();
});

test("what is written now is there when the call returns; what cannot be is refused, and nothing once closed", async () => {
  const file = await under.files.open(path, "w+");
  const reader = await under.files.open(path, "r");
  try {
    expect(file.writeNow?.(pattern(300_000), 5)).toBe(true);
    expect(fs.readFileSync(path).subarray(5)).toEqual(Buffer.from(pattern(300_000)));
    expect(reader.writeNow?.(pattern(1), 0)).toBe(false);
  } finally {
    await file.close();
    await reader.close();
  }
  expect(file.writeNow?.(pattern(1), 0)).toBe(false);
});
