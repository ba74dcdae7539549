import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type FetchOptions, fetchInto } from "../../src/content/fetch.ts";
import { ContentMismatch } from "../../src/content/mismatch.ts";
import type { OpenFile } from "../../src/lib/files.ts";
import { pattern, readAll } from "../support/files-cases.ts";
import { createMemoryUnderTest } from "../support/memory-under-test.ts";

const SUBJECT = "version 7 of /a";

async function setUp() {
  const { files } = await createMemoryUnderTest();
  const file = await files.open("/state/x", "wx+");
  const ranges: [number, number][] = [];
  const onProgress = (start: number, end: number) => void ranges.push([start, end]);
  return { files, file, ranges, onProgress };
}

/** A body that says whether it was given back. */
function bodyOf(chunks: readonly Uint8Array[], failure?: Error) {
  const state = { returned: false };
  async function* body() {
    try {
      yield* chunks;
      if (failure !== undefined) throw failure;
    } finally {
      state.returned = true;
    }
  }
  return { body: body(), state };
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

test("any cut of the bytes arrives at its place, with progress for each", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 50 })), fc.nat(10_000), async (chunks, offset) => {
      const { files, file, ranges, onProgress } = await setUp();
      const bytes = Buffer.concat(chunks);
      await fetchInto(file, bodyOf(chunks).body, {
        subject: SUBJECT,
        offset,
        length: bytes.length,
        hash: sha256(bytes),
        onProgress,
      });
      const expected = bytes.length === 0 ? bytes : Buffer.concat([Buffer.alloc(offset), bytes]);
      expect(await readAll(files, "/state/x")).toEqual(expected);
      let end = offset;
      for (const range of ranges) {
        expect(range[0]).toBe(end);
        end = range[1];
      }
      expect(end).toBe(offset + bytes.length);
    }),
    { numRuns: 100 },
  );
});

async function failing(chunks: readonly Uint8Array[], options: Partial<FetchOptions>, failure?: Error) {
  const set = await setUp();
  const { body, state } = bodyOf(chunks, failure);
  const error = await fetchInto(set.file, body, {
    subject: SUBJECT,
    offset: 0,
    length: 20,
    onProgress: set.onProgress,
    ...options,
  }).catch((error: unknown) => error);
  expect(state.returned).toBe(true);
  return { ...set, error };
}

test("too few bytes are an error; what came is written and reported", async () => {
  const { error, ranges, files } = await failing([pattern(10)], {});
  expect(error).toBeInstanceOf(ContentMismatch);
  expect(error).toMatchObject({ what: "size", expected: 20, actual: 10 });
  expect(String(error)).toContain(`${SUBJECT}: expected 20 bytes, got 10`);
  expect(ranges).toEqual([[0, 10]]);
  expect(await readAll(files, "/state/x")).toEqual(pattern(10));
});

test("not one byte too many is written", async () => {
  const { error, file, ranges } = await failing([pattern(10), pattern(11), pattern(5)], {});
  expect(error).toMatchObject({ what: "size", expected: 20, actual: 21 });
  expect((await file.stat()).size).toBe(10);
  expect(ranges).toEqual([[0, 10]]);
});

test("other bytes of the right size are an error by their hash", async () => {
  const hash = sha256(pattern(20, 2));
  const { error } = await failing([pattern(20)], { hash });
  expect(error).toBeInstanceOf(ContentMismatch);
  expect(error).toMatchObject({ what: "hash", expected: hash, actual: sha256(pattern(20)) });
});

test("a body that breaks off rejects with its own error, after its last write", async () => {
  const { error, ranges } = await failing([pattern(10)], {}, new Error("connection lost"));
  expect(error).toMatchObject({ message: "connection lost" });
  expect(ranges).toEqual([[0, 10]]);
});

test("a full disk ends it, and the bytes that did not get through are not reported", async () => {
  const { files } = await createMemoryUnderTest(8192);
  const file = await files.open("/state/x", "wx+");
  const ranges: [number, number][] = [];
  const { body, state } = bodyOf([pattern(4096), pattern(4096), pattern(4096), pattern(4096)]);
  const fetching = fetchInto(file, body, {
    subject: SUBJECT,
    offset: 0,
    length: 16_384,
    onProgress: (start, end) => void ranges.push([start, end]),
  });
  await expect(fetching).rejects.toMatchObject({ code: "ENOSPC" });
  expect(state.returned).toBe(true);
  expect(ranges).toEqual([
    [0, 4096],
    [4096, 8192],
  ]);
});

test("an abort ends it with the signal's reason", async () => {
  const controller = new AbortController();
  const { error, file } = await failing([pattern(5), pattern(5), pattern(5), pattern(5)], {
    signal: controller.signal,
    onProgress: () => controller.abort(new Error("no longer wanted")),
  });
  expect(error).toMatchObject({ message: "no longer wanted" });
  expect((await file.stat()).size).toBeLessThan(20);
});

/** A file whose writes end when told. */
async function slowFile() {
  const { file } = await setUp();
  const underWay: (() => void)[] = [];
  const slow: OpenFile = {
    ...file,
    async write(buffer, position) {
      await new Promise<void>((resolve) => underWay.push(resolve));
      await file.write(buffer, position);
    },
  };
  return { slow, underWay };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("one chunk arrives while another is written, and no more", async () => {
  const { slow, underWay } = await slowFile();
  let arrived = 0;
  async function* body() {
    for (; arrived < 4; arrived++) yield pattern(5, arrived);
  }
  const fetching = fetchInto(slow, body(), { subject: SUBJECT, offset: 0, length: 20 });
  for (let written = 0; written < 4; written++) {
    await expect.poll(() => underWay.length).toBe(written + 1);
    await turn();
    expect(underWay.length).toBe(written + 1);
    expect(arrived).toBeLessThanOrEqual(written + 2);
    underWay[written]?.();
  }
  await fetching;
});

test("after a failure it rejects only when nothing is being written any more", async () => {
  const { slow, underWay } = await slowFile();
  const { body } = bodyOf([pattern(5)], new Error("connection lost"));
  let settled = false;
  const fetching = fetchInto(slow, body, { subject: SUBJECT, offset: 0, length: 20 }).finally(() => {
    settled = true;
  });
  const rejected = expect(fetching).rejects.toThrow("connection lost");
  await expect.poll(() => underWay.length).toBe(1);
  await turn();
  expect(settled).toBe(false);
  underWay[0]?.();
  await rejected;
});
