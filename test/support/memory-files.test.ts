import { expect, test } from "vitest";
import type { Time } from "../../src/lib/time.ts";
import { createMemoryUnderTest } from "../content/support/memory-under-test.ts";
import { describeFiles, pattern, readAll, writeAll } from "./files-cases.ts";
import { createMemoryFiles } from "./memory-files.ts";

describeFiles("files in memory", () => createMemoryUnderTest());

const now = (): Time => ({ seconds: 1, nanoseconds: 0 });

test("a failure is met once by the path and operation it names, and has no effect", async () => {
  const files = createMemoryFiles({ now });
  const file = await files.open("/a", "wx+");
  files.fail({ path: /^\/a$/, code: "ENOSPC", on: ["write"] });
  await writeAll(files, "/b", pattern(10));
  await expect(file.write(pattern(10), 0)).rejects.toMatchObject({ code: "ENOSPC", path: "/a" });
  expect((await file.stat()).size).toBe(0);
  await file.write(pattern(10), 0);
  expect((await file.stat()).size).toBe(10);
});

test("a lasting failure lasts until it is ended", async () => {
  const files = createMemoryFiles({ now });
  const end = files.fail({ path: /./g, code: "EIO", times: Number.POSITIVE_INFINITY });
  for (let i = 0; i < 3; i++) await expect(files.makeFolder("/x")).rejects.toMatchObject({ code: "EIO" });
  await expect(files.space("/x")).rejects.toMatchObject({ code: "EIO" });
  end();
  await files.makeFolder("/x");
});

test("a failure without a known errno is refused", () => {
  expect(() => createMemoryFiles({ now }).fail({ path: /./, code: "EWRONG" })).toThrow("EWRONG");
});

test("bytes lost by a failed sync are not said to be safe by the next", async () => {
  const files = createMemoryFiles({ now });
  const file = await files.open("/a", "wx+");
  files.fail({ path: /a/, code: "EIO", on: ["sync"] });
  await expect(file.sync()).rejects.toMatchObject({ code: "EIO" });
  await expect(file.sync()).rejects.toMatchObject({ code: "EIO" });
  await (await files.open("/a", "r+")).sync();
});

test("a full disk refuses what would grow, and space comes back with the last handle", async () => {
  const files = createMemoryFiles({ now, capacity: 8192 });
  const file = await files.open("/a", "wx+");
  await file.write(pattern(8192), 0);
  const other = await files.open("/b", "wx+");
  await expect(other.write(pattern(1), 0)).rejects.toMatchObject({ code: "ENOSPC" });
  await expect(files.clone("/a", "/c")).rejects.toMatchObject({ code: "ENOSPC" });
  expect(await files.list("/")).toEqual(["a", "b"]);
  await file.write(pattern(10, 2), 100);
  await files.remove("/a");
  await expect(other.write(pattern(1), 0)).rejects.toMatchObject({ code: "ENOSPC" });
  await file.close();
  await other.write(pattern(1), 0);
  expect(await files.space("/")).toEqual({ total: 8192, free: 4096, available: 4096 });
});

test("a killed process changes nothing any more; its successor has all that was written", async () => {
  const files = createMemoryFiles({ now });
  await files.makeFolder("/f");
  const file = await files.open("/f/a", "wx+");
  await file.write(pattern(100), 0);
  const underWay = file.write(pattern(100, 2), 0);
  const image = files.image();
  files.kill();
  await expect(underWay).rejects.toMatchObject({ code: "EBADF" });
  await expect(file.stat()).rejects.toMatchObject({ code: "EBADF" });
  await expect(files.remove("/f/a")).rejects.toMatchObject({ code: "EBADF" });

  const next = createMemoryFiles({ now, image });
  expect(await readAll(next, "/f/a")).toEqual(pattern(100));
  expect(next.openHandles()).toBe(0);
  expect((await next.space("/")).free).toBe(2 ** 40 - 4096);
});

test("restore brings a moment back, any number of times, and ends the handles open until then", async () => {
  const files = createMemoryFiles({ now });
  await writeAll(files, "/a", pattern(10));
  const image = files.image();
  for (let round = 0; round < 2; round++) {
    const file = await files.open("/a", "r+");
    await file.write(pattern(10, 7), 0);
    await writeAll(files, "/b", pattern(1));
    const underWay = files.remove("/a");
    files.restore(image);
    await expect(underWay).rejects.toMatchObject({ code: "EBADF" });
    await expect(file.read(Buffer.alloc(1), 0, 1, 0)).rejects.toMatchObject({ code: "EBADF" });
    await expect(file.close()).rejects.toMatchObject({ code: "EBADF" });
    expect(await files.list("/")).toEqual(["a"]);
    expect(await readAll(files, "/a")).toEqual(pattern(10));
    expect(files.openHandles()).toBe(0);
  }
});

test("a folder is renamed with what is in it, but not into itself or over something", async () => {
  const files = createMemoryFiles({ now });
  await files.makeFolder("/a/b");
  await files.makeFolder("/full/x");
  await writeAll(files, "/a/b/c", pattern(1));
  await expect(files.rename("/a", "/a/b/d")).rejects.toMatchObject({ code: "EINVAL" });
  await expect(files.rename("/a", "/full")).rejects.toMatchObject({ code: "ENOTEMPTY" });
  await files.rename("/a", "/z");
  expect(await readAll(files, "/z/b/c")).toEqual(pattern(1));
});

test("what the kernel writes by itself sets the times, unless it is nothing", async () => {
  let seconds = 1;
  const files = createMemoryFiles({ now: () => ({ seconds, nanoseconds: 0 }) });
  const file = await files.open("/a", "wx+");
  const passed = files.passed(file.descriptor ?? -1);
  seconds = 2;
  passed.write(Buffer.alloc(0), 0);
  expect((await file.stat()).mtime.seconds).toBe(1);
  passed.write(Buffer.alloc(1), 0);
  expect((await file.stat()).mtime.seconds).toBe(2);
});
