import { expect, test } from "vitest";
import { ContentMismatch } from "../../src/content/mismatch.ts";
import { createFileSource } from "../../src/content/source.ts";
import type { Files } from "../../src/lib/files.ts";
import { createDiskUnderTest } from "../support/disk-under-test.ts";
import { pattern, writeAll } from "../support/files-cases.ts";
import { createMemoryUnderTest } from "./support/memory-under-test.ts";

const MIB = 1 << 20;

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

async function setUp(bytes: Buffer) {
  const { files } = await createMemoryUnderTest();
  await writeAll(files, "/state/x", bytes);
  return files;
}

/** The files, with something done around each read. */
function withReads(files: Files, around: (read: () => Promise<number>) => Promise<number>): Files {
  return {
    ...files,
    async open(path, mode) {
      const file = await files.open(path, mode);
      return { ...file, read: (...args) => around(() => file.read(...args)) };
    },
  };
}

test.each([0, 1, MIB / 2, MIB / 2 + 1, 3 * MIB + 5])("%d bytes come in order", async (size) => {
  const files = await setUp(pattern(size));
  const source = createFileSource(files, "/state/x", size);
  expect(source.size).toBe(size);
  expect((await collect(source.read())).equals(pattern(size))).toBe(true);
  expect(files.openHandles()).toBe(0);
});

test("several readers at once, on the real disk, each from the start", async () => {
  const { files, root, end } = await createDiskUnderTest();
  try {
    const bytes = pattern(3 * MIB + 5);
    await writeAll(files, `${root}/x`, bytes);
    const source = createFileSource(files, `${root}/x`, bytes.length);
    const all = await Promise.all([collect(source.read()), collect(source.read()), collect(source.read())]);
    for (const each of all) expect(each.equals(bytes)).toBe(true);
  } finally {
    await end();
  }
});

test("chunks are large, keep their bytes, and just one is read ahead", async () => {
  const bytes = pattern(4 * MIB);
  const files = await setUp(bytes);
  let reads = 0;
  const counting = withReads(files, (read) => {
    reads++;
    return read();
  });
  const kept: Uint8Array[] = [];
  for await (const chunk of createFileSource(counting, "/state/x", bytes.length).read()) {
    kept.push(chunk);
    expect(chunk.length).toBeGreaterThanOrEqual(MIB / 4);
    expect(chunk.length).toBeLessThanOrEqual(MIB);
    expect(reads).toBe(Math.min(kept.length + 1, 8));
  }
  expect(Buffer.concat(kept).equals(bytes)).toBe(true);
});

test("a file that is longer is read to the size that was said", async () => {
  const files = await setUp(pattern(MIB));
  expect(await collect(createFileSource(files, "/state/x", 1000).read())).toEqual(pattern(MIB).subarray(0, 1000));
});

test("a file that got shorter meanwhile is an error that says so", async () => {
  const files = await setUp(pattern(2 * MIB));
  const source = createFileSource(files, "/state/x", 2 * MIB);
  const chunks = source.read()[Symbol.asyncIterator]();
  await chunks.next();
  const file = await files.open("/state/x", "r+");
  await file.truncate(MIB + 7);
  await file.close();
  const rest = (async () => {
    while (!(await chunks.next()).done);
  })();
  await expect(rest).rejects.toThrow(ContentMismatch);
  await expect(collect(source.read())).rejects.toThrow(`/state/x: expected ${2 * MIB} bytes, got ${MIB + 7}`);
  expect(files.openHandles()).toBe(0);
});

test("a missing file is one even when it was to be empty", async () => {
  const { files } = await createMemoryUnderTest();
  await expect(collect(createFileSource(files, "/state/x", 0).read())).rejects.toMatchObject({ code: "ENOENT" });
});

test("a reader that stops early leaves no handle and no unhandled failure", async () => {
  const files = await setUp(pattern(3 * MIB));
  let reads = 0;
  const failingAhead = withReads(files, (read) => {
    // The second chunk, which nobody will ask for.
    if (++reads === 2) files.fail({ path: /x/, code: "EIO", on: ["read"] });
    return read();
  });
  for await (const _ of createFileSource(failingAhead, "/state/x", 3 * MIB).read()) break;
  expect(reads).toBe(2);
  expect(files.openHandles()).toBe(0);
});

test("a failing disk is told", async () => {
  const files = await setUp(pattern(3 * MIB));
  files.fail({ path: /x/, code: "EIO", on: ["read"] });
  await expect(collect(createFileSource(files, "/state/x", 3 * MIB).read())).rejects.toMatchObject({ code: "EIO" });
  expect(files.openHandles()).toBe(0);
});
