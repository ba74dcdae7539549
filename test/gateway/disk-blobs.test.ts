/** Blobs on disk: what is read is what was written, whole and in ranges, however slowly it is taken. */
import { readdir, readlink } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openDiskBlobs } from "../../src/gateway/disk-blobs.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SIZE = 2_300_000;
/** No two stretches are the same. */
const CONTENT = Buffer.from(Uint32Array.from({ length: SIZE / 4 }, (_, index) => index * 2_654_435_761).buffer);

async function* pieces(content: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

test.each([
  ["whole", 0, SIZE],
  ["a range over several reads", 300_001, 2_000_003],
  ["the last byte", SIZE - 1, SIZE],
  ["nothing", 5, 5],
] as const)("%s comes back as it was written, and a chunk holds until the next is asked for", async (_, start, end) => {
  const blobs = await openDiskBlobs(await temporaryFolder());
  const blob = "11111111-0000-4000-8000-000000000000";
  await blobs.write(blob, pieces(CONTENT, 70_000));
  let at = start;
  for await (const chunk of blobs.read(blob, start, end)) {
    const early = Buffer.from(chunk);
    // What is read ahead meanwhile is in other memory.
    for (let turn = 0; turn < 5; turn += 1) await readdir(path.dirname(import.meta.filename));
    expect(early.equals(CONTENT.subarray(at, at + chunk.length))).toBe(true);
    expect(Buffer.from(chunk).equals(early)).toBe(true);
    at += chunk.length;
  }
  expect(at).toBe(end);
});

test("a reader that stops early, and one of a blob that ends too soon, leave nothing open", async () => {
  const blobs = await openDiskBlobs(await temporaryFolder());
  const blob = "22222222-0000-4000-8000-000000000000";
  await blobs.write(blob, pieces(CONTENT, 70_000));
  const open = async () => {
    const numbers = await readdir("/proc/self/fd");
    const names = await Promise.all(numbers.map((number) => readlink(`/proc/self/fd/${number}`).catch(() => "")));
    return names.filter((name) => name.endsWith(blob)).length;
  };
  for await (const chunk of blobs.read(blob, 0, SIZE)) {
    expect(chunk.length).toBeGreaterThan(0);
    break;
  }
  let read = 0;
  const all = async () => {
    for await (const chunk of blobs.read(blob, 0, SIZE + 10)) read += chunk.length;
  };
  await expect(all()).rejects.toThrow(`ends at ${SIZE}, expected ${SIZE + 10} bytes`);
  expect(read).toBe(SIZE);
  expect(await open()).toBe(0);
});
