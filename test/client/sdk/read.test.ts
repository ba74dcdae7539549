/** Content that goes on where it broke: exact bytes, of one version, and an end to patience. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SEED } from "../../support/seed.ts";
import { breakingContent } from "../support/breaking-content.ts";
import { json, scripted } from "../support/scripted-transport.ts";
import { collect, failureOf } from "../support/server.ts";

const bytesOf = (length: number) => new Uint8Array(length).map((_, index) => (index * 7 + (index >> 8)) & 0xff);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

test("wherever answers break, the reader gets the bytes asked for, each once", async () => {
  const cases = fc.record({
    size: fc.integer({ min: 0, max: 5000 }),
    chunk: fc.integer({ min: 1, max: 2000 }),
    breaks: fc.array(fc.option(fc.integer({ min: 0, max: 3000 }), { nil: undefined }), { maxLength: 4 }),
    ignoresRanges: fc.boolean(),
    range: fc.option(fc.tuple(fc.integer({ min: 0, max: 4999 }), fc.integer({ min: 1, max: 5000 })), {
      nil: undefined,
    }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ size, chunk, breaks, ignoresRanges, range: asked }) => {
      const content = bytesOf(size);
      const range = asked === undefined ? undefined : { start: asked[0], end: asked[0] + asked[1] };
      if (range !== undefined && range.start >= size) return;
      const script = breakingContent(content, { breaks, chunk, ignoresRanges });
      const { gateway, run, requests } = scripted([script.step], { retries: { tries: 6 } });
      const got = await run(gateway.files.read("n1", { range, contentHash: sha256(content) }));
      expect(got).toMatchObject({ version: "v1", size, mimeType: "text/plain" });
      const bytes = await run(collect(got.bytes));
      expect(bytes.equals(content.subarray(range?.start ?? 0, range?.end ?? size))).toBe(true);
      for (const request of requests.slice(1)) {
        expect(request.query.version).toBe("v1");
        expect(request.headers["if-range"]).toBe('"v1"');
      }
    }),
    { seed: SEED, numRuns: 300 },
  );
});

test("what came is not asked for again", async () => {
  const content = bytesOf(5000);
  const script = breakingContent(content, { breaks: [1500, 0, 2000] });
  const { gateway, run } = scripted([script.step]);
  const got = await run(gateway.files.read("n1"));
  expect((await run(got.buffer())).equals(content)).toBe(true);
  expect(script.starts).toEqual([0, 1500, 1500, 3500]);
});

test("tries are counted from the last byte that came", async () => {
  const content = bytesOf(20);
  // Each answer brings one byte: twenty breaks, and never two without one.
  const moving = breakingContent(content, { breaks: new Array(19).fill(1), chunk: 1 });
  const first = scripted([moving.step], { retries: { tries: 2 } });
  const got = await first.run(first.gateway.files.read("n1"));
  expect((await first.run(got.buffer())).equals(content)).toBe(true);

  const stuck = breakingContent(content, { breaks: [5, 0, 0, 0, 0], chunk: 1 });
  const second = scripted([stuck.step], { retries: { tries: 3 } });
  const broken = await second.run(second.gateway.files.read("n1"));
  expect(await second.run(failureOf(broken.buffer()))).toMatchObject({ code: "offline" });
  expect(stuck.starts).toEqual([0, 5, 5]);
});

test("without retries the first break is the reader's", async () => {
  const script = breakingContent(bytesOf(5000), { breaks: [1500] });
  const { gateway, run } = scripted([script.step]);
  const got = await run(gateway.files.read("n1", { retries: false }));
  expect(await run(failureOf(got.buffer()))).toMatchObject({ code: "offline" });
  expect(script.starts).toEqual([0]);
});

test("bytes of another version never follow those of the first", async () => {
  const version = (request: number) => (request === 0 ? "v1" : "v2");
  const script = breakingContent(bytesOf(5000), { breaks: [1500], version });
  const { gateway, run } = scripted([script.step]);
  const got = await run(gateway.files.read("n1"));
  const error = await run(failureOf(got.buffer()));
  expect(error).toMatchObject({ code: "malformed", message: expect.stringContaining("asked for version v1, got v2") });
});

test("content with another hash fails at its end; a part of it is not judged", async () => {
  const content = bytesOf(5000);
  const script = breakingContent(content, { breaks: [] });
  const { gateway, run } = scripted([script.step]);
  const contentHash = sha256(bytesOf(4999));
  const whole = await run(gateway.files.read("n1", { contentHash }));
  expect(await run(failureOf(whole.buffer()))).toMatchObject({
    code: "malformed",
    message: expect.stringMatching(/SHA-256/),
  });
  const part = await run(gateway.files.read("n1", { contentHash, range: { start: 0, end: 10 } }));
  expect((await run(part.buffer())).length).toBe(10);
});

test("content given up closes its answer, read or not", async () => {
  const script = breakingContent(bytesOf(5000), { breaks: [] });
  const { gateway, run } = scripted([script.step]);
  const unread = await run(gateway.files.read("n1"));
  await unread.cancel();
  expect((await run(unread.buffer())).length).toBe(0);
  const left = await run(gateway.files.read("n1"));
  for await (const _ of left.bytes) break;
  expect(script.returned()).toBe(1);
  // A generator that never ran has nothing to return from; the count above is that of the second.
  expect(script.starts).toEqual([0, 0]);
});

test("an abort between two tries ends the reading", async () => {
  const script = breakingContent(bytesOf(5000), { breaks: [1500] });
  const { gateway, run, clock } = scripted([script.step]);
  const controller = new AbortController();
  const got = await run(gateway.files.read("n1", { signal: controller.signal }));
  const failure = failureOf(got.buffer());
  while (clock.nextTimer() === undefined) await clock.settle();
  controller.abort();
  expect(await failure).toMatchObject({ code: "aborted" });
  expect(clock.nextTimer()).toBeUndefined();
});

test("text that is no UTF-8 is refused, not mended", async () => {
  const script = breakingContent(Uint8Array.of(0x61, 0xff), { breaks: [] });
  const { gateway, run } = scripted([script.step]);
  const got = await run(gateway.files.read("n1"));
  await expect(run(got.text())).rejects.toThrow(TypeError);
});

test("a refusal of content is the error it stands for", async () => {
  const { gateway, run, requests } = scripted([json(404, { title: "gone" })]);
  expect(await run(failureOf(gateway.files.read("n1")))).toMatchObject({ code: "notFound", status: 404 });
  expect(requests).toHaveLength(1);
});
