/** Blobs on disk: what is read is what was written, whole and in ranges, however slowly it is taken. */
import { readdir, readlink, truncate } from "node:fs/promises";
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

test("a reader takes 256 KiB of memory, however large the blob is", async () => {
  const blobs = await openDiskBlobs(await temporaryFolder());
  const blob = "33333333-0000-4000-8000-000000000000";
  await blobs.write(blob, pieces(CONTENT, 70_000));
  const memory = new Set<ArrayBufferLike>();
  for await (const chunk of blobs.read(blob, 0, SIZE)) memory.add(chunk.buffer);
  expect([...memory].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBe(256 * 1024);
});

test("readers that stop early, of a blob that is too short, and of one that is cut meanwhile, leave nothing open", async () => {
  const folder = await temporaryFolder();
  const blobs = await openDiskBlobs(folder);
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
  await expect(all()).rejects.toThrow(`has ${SIZE} bytes, expected at least ${SIZE + 10}`);
  expect(read).toBe(0);
  const cutting = async () => {
    for await (const chunk of blobs.read(blob, 0, SIZE)) {
      read += chunk.length;
      await truncate(path.join(folder, blob.slice(0, 2), blob), SIZE - 1000);
    }
  };
  await expect(cutting()).rejects.toThrow(`ends at ${SIZE - 1000}, expected ${SIZE} bytes`);
  expect(read).toBe(SIZE - 1000);
  expect(await open()).toBe(0);
});
