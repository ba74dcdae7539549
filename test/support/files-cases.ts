/** What any `Files` must do; run on the real disk and on the files in memory. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Files, OpenFile, OpenMode } from "../../src/lib/files.ts";
import { compareTimes, type Time } from "../../src/lib/time.ts";

export interface FilesUnderTest {
  readonly files: Files;
  /** An empty folder. */
  readonly root: string;
  /** Lets the clock behind the times go on. */
  tick(): Promise<void>;
  end(): Promise<void>;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const KEEP_SIZE = 1;
const PUNCH_HOLE = 2;
const ZERO_RANGE = 16;

/** Bytes of which no two stretches of a page are equal. */
export function pattern(length: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let state = seed;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes.writeUInt32LE(state, i);
  }
  for (; i < length; i++) bytes[i] = i & 255;
  return bytes;
}

export async function readAll(files: Files, path: string): Promise<Buffer> {
  const file = await files.open(path, "r");
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(size);
    expect(await file.read(buffer, 0, size, 0)).toBe(size);
    return buffer;
  } finally {
    await file.close();
  }
}

export async function writeAll(files: Files, path: string, bytes: Uint8Array): Promise<void> {
  const file = await files.open(path, "w+");
  try {
    await file.truncate(0);
    await file.write(bytes, 0);
  } finally {
    await file.close();
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export function describeFiles(name: string, create: () => Promise<FilesUnderTest>): void {
  describe(name, () => {
    let under: FilesUnderTest;
    let files: Files;
    let path: string;
    const opened: OpenFile[] = [];

    beforeEach(async () => {
      under = await create();
      files = under.files;
      path = join(under.root, "file");
    });

    afterEach(async () => {
      await Promise.all(opened.splice(0).map((file) => file.close()));
      await under.end();
    });

    async function open(mode: OpenMode, at = path): Promise<OpenFile> {
      const file = await files.open(at, mode);
      opened.push(file);
      return file;
    }

    describe("open", () => {
      test.each(["r", "r+"] as const)("%s needs the file", async (mode) => {
        await expect(files.open(path, mode)).rejects.toMatchObject({ code: "ENOENT", path });
      });

      test("w+ makes a file and never empties one", async () => {
        await (await open("w+")).write(pattern(10), 0);
        expect((await (await open("w+")).stat()).size).toBe(10);
      });

      test("wx+ refuses one that is there", async () => {
        await open("wx+");
        await expect(files.open(path, "wx+")).rejects.toMatchObject({ code: "EEXIST" });
      });

      test("a folder is not opened for writing", async () => {
        await files.makeFolder(path);
        await expect(files.open(path, "r+")).rejects.toMatchObject({ code: "EISDIR" });
      });

      test("a file below a file cannot be", async () => {
        await open("wx+");
        await expect(files.open(join(path, "below"), "w+")).rejects.toMatchObject({ code: "ENOTDIR" });
      });

      test("what was opened to be read is not written", async () => {
        await writeAll(files, path, pattern(10));
        const file = await open("r");
        await expect(file.write(pattern(1), 0)).rejects.toMatchObject({ code: "EBADF" });
        await expect(file.truncate(0)).rejects.toMatchObject({ code: "EINVAL" });
        expect((await file.stat()).size).toBe(10);
      });
    });

    describe("reading and writing", () => {
      test("bytes come back, at their position in the buffer and in the file", async () => {
        const file = await open("wx+");
        const bytes = pattern(3 * 4096 + 17);
        await file.write(bytes, 5000);
        const buffer = Buffer.alloc(100, 7);
        expect(await file.read(buffer, 10, 50, 9000)).toBe(50);
        expect(buffer.subarray(10, 60)).toEqual(bytes.subarray(4000, 4050));
        expect(buffer.subarray(0, 10)).toEqual(Buffer.alloc(10, 7));
        expect(buffer.subarray(60)).toEqual(Buffer.alloc(40, 7));
      });

      test("a read ends where the file ends", async () => {
        const file = await open("wx+");
        await file.write(pattern(100), 0);
        const buffer = Buffer.alloc(64);
        expect(await file.read(buffer, 0, 64, 80)).toBe(20);
        expect(buffer.subarray(0, 20)).toEqual(pattern(100).subarray(80));
        expect(await file.read(buffer, 0, 64, 100)).toBe(0);
        expect(await file.read(buffer, 0, 64, 5000)).toBe(0);
        expect(await file.read(buffer, 0, 0, 0)).toBe(0);
      });

      test("an empty write changes nothing", async () => {
        const file = await open("wx+");
        await file.write(new Uint8Array(0), 1000);
        expect((await file.stat()).size).toBe(0);
      });

      test("what lies between two writes is zeros", async () => {
        const file = await open("wx+");
        await file.write(pattern(10), 0);
        await file.write(pattern(10, 2), 100_000);
        const bytes = await readAll(files, path);
        expect(bytes).toEqual(Buffer.concat([pattern(10), Buffer.alloc(99_990), pattern(10, 2)]));
      });

      test("many writers and readers at different positions at once", async () => {
        const file = await open("wx+");
        const bytes = pattern(2 * MIB);
        const step = 10_007;
        const starts = Array.from({ length: Math.ceil(bytes.length / step) }, (_, i) => i * step);
        // Those that begin while others are still written only have to settle.
        const early: Promise<unknown>[] = [];
        await Promise.all(
          starts.toReversed().map((start) => {
            early.push(file.read(Buffer.alloc(step), 0, step, start));
            return file.write(bytes.subarray(start, start + step), start);
          }),
        );
        await Promise.all(early);
        const back = Buffer.alloc(bytes.length);
        const reader = await open("r");
        await Promise.all(
          starts.map(async (start) => {
            const length = Math.min(step, bytes.length - start);
            expect(await reader.read(back, start, length, start)).toBe(length);
          }),
        );
        expect(back.equals(bytes)).toBe(true);
      });

      test("two handles see one file", async () => {
        const writer = await open("wx+");
        const reader = await open("r");
        await writer.write(pattern(20), 0);
        const buffer = Buffer.alloc(20);
        expect(await reader.read(buffer, 0, 20, 0)).toBe(20);
        expect(buffer).toEqual(pattern(20));
      });

      test("truncate cuts, and what grows back is zeros", async () => {
        const file = await open("wx+");
        await file.write(pattern(10_000), 0);
        await file.truncate(5001);
        await file.truncate(20_000);
        const bytes = await readAll(files, path);
        expect(bytes).toEqual(Buffer.concat([pattern(10_000).subarray(0, 5001), Buffer.alloc(14_999)]));
      });

      test.each([-1, 0.5, Number.NaN])("position and size %d are refused", async (offset) => {
        const file = await open("wx+");
        await file.write(pattern(100), 0);
        await expect(file.read(Buffer.alloc(1), 0, 1, offset)).rejects.toMatchObject({ code: "EINVAL" });
        await expect(file.write(pattern(1), offset)).rejects.toMatchObject({ code: "EINVAL" });
        await expect(file.truncate(offset)).rejects.toMatchObject({ code: "EINVAL" });
        expect(await readAll(files, path)).toEqual(pattern(100));
      });

      test("sync resolves", async () => {
        const file = await open("wx+");
        await file.write(pattern(10), 0);
        await file.sync();
        expect(await readAll(files, path)).toEqual(pattern(10));
      });
    });

    describe("close", () => {
      test("waits for the calls under way, and none gets through after it", async () => {
        const file = await files.open(path, "wx+");
        const writing = file.write(pattern(MIB), 0);
        const closing = file.close();
        await expect(file.write(pattern(1), 0)).rejects.toMatchObject({ code: "EBADF" });
        await expect(file.read(Buffer.alloc(1), 0, 1, 0)).rejects.toMatchObject({ code: "EBADF" });
        await expect(file.stat()).rejects.toMatchObject({ code: "EBADF" });
        await expect(file.sync()).rejects.toMatchObject({ code: "EBADF" });
        await Promise.all([writing, closing]);
        await file.close();
        expect((await readAll(files, path)).equals(pattern(MIB))).toBe(true);
      });

      test("waits between the parts of a call, too", async () => {
        await writeAll(files, path, pattern(10));
        for (let round = 0; round < 20; round++) {
          const file = await files.open(path, "r");
          const reading = file.read(Buffer.alloc(4096), 0, 4096, 0);
          await Promise.all([file.close(), expect(reading).resolves.toBe(10)]);
        }
      });

      test("a handle that is closed does not reach the file opened next", async () => {
        const first = await files.open(path, "wx+");
        await first.close();
        const second = await open("wx+", join(under.root, "second"));
        await expect(first.write(pattern(10), 0)).rejects.toMatchObject({ code: "EBADF" });
        expect((await second.stat()).size).toBe(0);
      });
    });

    describe("times", () => {
      test.each<[number, number]>([
        [1_700_000_000, 123_456_789],
        [0, 1],
        [-5, 999_999_999],
        [4_000_000_000, 0],
      ])("%d s and %d ns are kept", async (seconds, nanoseconds) => {
        const time: Time = { seconds, nanoseconds };
        const file = await open("wx+");
        await file.setTimes(time);
        expect((await file.stat()).mtime).toEqual(time);
        expect((await files.stat(path)).mtime).toEqual(time);
      });

      test("a write moves mtime and ctime on, setTimes only ctime", async () => {
        const file = await open("wx+");
        const made = await file.stat();
        await under.tick();
        await file.write(pattern(1), 0);
        const written = await file.stat();
        expect(compareTimes(written.mtime, made.mtime)).toBeGreaterThan(0);
        expect(written.ctime).toEqual(written.mtime);
        await under.tick();
        await file.setTimes(made.mtime);
        const set = await file.stat();
        expect(set.mtime).toEqual(made.mtime);
        expect(compareTimes(set.ctime, written.ctime)).toBeGreaterThan(0);
      });

      test("the current time is between the stamps of what was changed before and after, seen or not", async () => {
        const file = await open("wx+");
        for (let turn = 0; turn < 2_000; turn += 1) {
          const order = [files.currentTime()];
          await file.write(pattern(1), 0);
          if (turn % 3 > 0) order.push((await file.stat()).mtime);
          order.push(files.currentTime());
          await file.write(pattern(1), 0);
          order.push((await file.stat()).mtime);
          expect([turn, order]).toEqual([turn, order.toSorted(compareTimes)]);
        }
      });

      test("reading moves nothing", async () => {
        const file = await open("wx+");
        await file.write(pattern(10), 0);
        const before = await file.stat();
        await under.tick();
        await file.read(Buffer.alloc(10), 0, 10, 0);
        expect(await file.stat()).toEqual(before);
      });
    });

    describe("sparse files", () => {
      /** 1 MiB: data at 256 KiB and at 512 KiB, 64 KiB each. */
      async function sparse(): Promise<OpenFile> {
        const file = await open("wx+");
        await file.truncate(MIB);
        await file.write(pattern(64 * KIB), 256 * KIB);
        await file.write(pattern(64 * KIB, 2), 512 * KIB);
        return file;
      }

      test("seek finds data and holes", async () => {
        const file = await sparse();
        expect(await file.seek("data", 0)).toBe(256 * KIB);
        expect(await file.seek("data", 256 * KIB + 5)).toBe(256 * KIB + 5);
        expect(await file.seek("hole", 0)).toBe(0);
        expect(await file.seek("hole", 256 * KIB)).toBe(320 * KIB);
        expect(await file.seek("data", 320 * KIB)).toBe(512 * KIB);
        expect(await file.seek("data", 576 * KIB)).toBeUndefined();
        expect(await file.seek("hole", MIB)).toBeUndefined();
      });

      test("a hole ends every file", async () => {
        const file = await open("wx+");
        await file.write(pattern(5000), 0);
        expect(await file.seek("hole", 0)).toBe(5000);
      });

      test("holes take no space", async () => {
        const file = await sparse();
        await file.sync();
        const { size, allocated } = await file.stat();
        expect(size).toBe(MIB);
        expect(allocated).toBeGreaterThanOrEqual(128 * KIB);
        expect(allocated).toBeLessThan(MIB);
      });

      test("a punched hole reads as zeros and frees its pages", async () => {
        const file = await open("wx+");
        await file.write(pattern(256 * KIB), 0);
        await file.sync();
        const before = await file.stat();
        await file.allocate(KEEP_SIZE | PUNCH_HOLE, 64 * KIB - 10, 128 * KIB + 20);
        expect(await file.seek("hole", 0)).toBe(64 * KIB);
        expect(await file.seek("data", 64 * KIB)).toBe(192 * KIB);
        const after = await file.stat();
        expect(after.size).toBe(before.size);
        expect(after.allocated).toBeLessThanOrEqual(before.allocated - 128 * KIB);
        const expected = pattern(256 * KIB).fill(0, 64 * KIB - 10, 192 * KIB + 10);
        expect((await readAll(files, path)).equals(expected)).toBe(true);
      });

      test("a zeroed range reads as zeros, and makes the file longer unless told not to", async () => {
        const file = await open("wx+");
        await file.write(pattern(10_000), 0);
        await file.allocate(ZERO_RANGE | KEEP_SIZE, 9_000, 5_000);
        expect((await file.stat()).size).toBe(10_000);
        await file.allocate(ZERO_RANGE, 100, 19_900);
        const expected = Buffer.concat([pattern(10_000).subarray(0, 100), Buffer.alloc(19_900)]);
        expect((await readAll(files, path)).equals(expected)).toBe(true);
      });

      test("allocated space is there, with or without the size", async () => {
        const file = await open("wx+");
        await file.allocate(KEEP_SIZE, 0, 256 * KIB);
        expect(await file.stat()).toMatchObject({ size: 0 });
        expect((await file.stat()).allocated).toBeGreaterThanOrEqual(256 * KIB);
        await file.allocate(0, 0, 256 * KIB);
        expect((await readAll(files, path)).equals(Buffer.alloc(256 * KIB))).toBe(true);
      });

      test("allocating nothing is an error", async () => {
        const file = await open("wx+");
        await expect(file.allocate(0, 0, 0)).rejects.toMatchObject({ code: "EINVAL" });
      });

      test("a clone has the same bytes and holes, and is independent", async () => {
        const file = await sparse();
        const bytes = await readAll(files, path);
        const to = join(under.root, "clone");
        await files.clone(path, to);
        await file.write(Buffer.alloc(10, 9), 256 * KIB);
        expect((await readAll(files, to)).equals(bytes)).toBe(true);
        const clone = await open("r", to);
        expect(await clone.seek("data", 0)).toBe(256 * KIB);
        expect(await clone.seek("hole", 256 * KIB)).toBe(320 * KIB);
        expect((await clone.stat()).size).toBe(MIB);
      });
    });

    test("a clone replaces nothing and leaves nothing behind", async () => {
      const to = join(under.root, "clone");
      await expect(files.clone(path, to)).rejects.toMatchObject({ code: "ENOENT" });
      expect(await files.list(under.root)).toEqual([]);
      await writeAll(files, path, pattern(10));
      await writeAll(files, to, pattern(10, 2));
      await expect(files.clone(path, to)).rejects.toMatchObject({ code: "EEXIST" });
      expect(await readAll(files, to)).toEqual(pattern(10, 2));
    });

    describe("names", () => {
      test("rename moves, and replaces what is there", async () => {
        const to = join(under.root, "to");
        await writeAll(files, path, pattern(10));
        await writeAll(files, to, pattern(20));
        const old = await open("r", to);
        await files.rename(path, to);
        expect(await files.list(under.root)).toEqual(["to"]);
        expect(await readAll(files, to)).toEqual(pattern(10));
        expect((await old.stat()).size).toBe(20);
        await expect(files.rename(path, to)).rejects.toMatchObject({ code: "ENOENT" });
      });

      test("a removed file stays readable by whoever has it open", async () => {
        await writeAll(files, path, pattern(10));
        const file = await open("r");
        await files.remove(path);
        await expect(files.stat(path)).rejects.toMatchObject({ code: "ENOENT" });
        expect(await file.read(Buffer.alloc(10), 0, 10, 0)).toBe(10);
      });

      test("removing what is not there is fine, removing a folder is not", async () => {
        await files.remove(path);
        await files.remove(join(path, "below", "nothing"));
        await files.makeFolder(path);
        await expect(files.remove(path)).rejects.toMatchObject({ code: "EISDIR" });
      });

      test("makeFolder makes the folders above too, and again does nothing", async () => {
        const deep = join(path, "a", "b");
        await files.makeFolder(deep);
        await files.makeFolder(deep);
        await files.syncFolder(deep);
        await writeAll(files, join(deep, "x"), pattern(1));
        expect(await files.list(deep)).toEqual(["x"]);
        expect(await files.list(path)).toEqual(["a"]);
      });

      test("makeFolder does not replace a file", async () => {
        await writeAll(files, path, pattern(1));
        await expect(files.makeFolder(path)).rejects.toMatchObject({ code: "EEXIST" });
        await expect(files.makeFolder(join(path, "below"))).rejects.toMatchObject({ code: "ENOTDIR" });
      });

      test("only folders are listed and synced as such", async () => {
        await expect(files.list(path)).rejects.toMatchObject({ code: "ENOENT" });
        await expect(files.syncFolder(path)).rejects.toMatchObject({ code: "ENOENT" });
        await writeAll(files, path, pattern(1));
        await expect(files.list(path)).rejects.toMatchObject({ code: "ENOTDIR" });
        await expect(files.syncFolder(path)).rejects.toMatchObject({ code: "ENOTDIR" });
      });
    });

    describe("hash", () => {
      test.each([0, 1, MIB, MIB + 1, 20 * MIB])("of %d bytes", async (size) => {
        const bytes = pattern(size);
        await writeAll(files, path, bytes);
        expect(await files.hash(path)).toEqual({ hash: sha256(bytes), size });
      });

      test("of many files at once", async () => {
        const sizes = [10, 2 * MIB, 20, 3 * MIB, MIB + 1, 0, 2 * MIB];
        const expected = await Promise.all(
          sizes.map(async (size, i) => {
            await writeAll(files, `${path}${i}`, pattern(size, i));
            return { hash: sha256(pattern(size, i)), size };
          }),
        );
        expect(await Promise.all(sizes.map((_, i) => files.hash(`${path}${i}`)))).toEqual(expected);
      });

      test("of nothing", async () => {
        await expect(files.hash(path)).rejects.toMatchObject({ code: "ENOENT", path });
      });

      test.each([10, 20 * MIB])("of %d bytes, aborted before and meanwhile", async (size) => {
        await writeAll(files, path, pattern(size));
        const before = AbortSignal.abort(new Error("before"));
        await expect(files.hash(path, before)).rejects.toThrow("before");
        const controller = new AbortController();
        const hashing = files.hash(path, controller.signal);
        controller.abort(new Error("meanwhile"));
        await expect(hashing).rejects.toThrow("meanwhile");
        expect(await files.hash(path)).toEqual({ hash: sha256(pattern(size)), size });
      });
    });

    describe("a running hash", () => {
      test.each([0, 10, 20 * MIB])("of %d bytes that arrive in pieces", async (size) => {
        const bytes = pattern(size);
        await writeAll(files, path, new Uint8Array(0));
        const running = files.beginHash(path);
        const file = await files.open(path, "r+");
        for (let at = 0; at < size; at += 3 * MIB) {
          const piece = bytes.subarray(at, at + 3 * MIB);
          await file.write(piece, at);
          running.reach(at + piece.length);
        }
        await file.close();
        expect(await running.finish()).toEqual({ hash: sha256(bytes), size });
      });

      test("of nothing", async () => {
        await expect(files.beginHash(path).finish()).rejects.toMatchObject({ code: "ENOENT", path });
        await writeAll(files, path, pattern(10));
        files.beginHash(path).cancel();
        const aborted = AbortSignal.abort(new Error("before"));
        await expect(files.beginHash(path).finish(aborted)).rejects.toThrow("before");
      });
    });

    test("space is counted in bytes", async () => {
      const { total, free, available } = await files.space(under.root);
      expect(total).toBeGreaterThan(MIB);
      expect(free).toBeGreaterThan(0);
      expect(free).toBeLessThanOrEqual(total);
      expect(available).toBeLessThanOrEqual(free);
    });
  });
}
