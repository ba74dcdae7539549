import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { frameMultipart } from "../../src/client/multipart.ts";
import type { ContentSource, UploadBody } from "../../src/contract/http.ts";
import { parseMultipart } from "./support/multipart-reader.ts";
import { collect, failureOf } from "./support/server.ts";

function source(chunks: readonly Uint8Array[], size?: number): ContentSource {
  return {
    size: size ?? chunks.reduce((sum, chunk) => sum + chunk.length, 0),
    async *read() {
      yield* chunks;
    },
  };
}

function uploadOf(content: ContentSource, contentType?: string): UploadBody {
  return { kind: "upload", metadata: { idempotencyKey: "ä" }, contentType, content };
}

test("the body is framed byte by byte as RFC 7578 says", async () => {
  const framed = frameMultipart(uploadOf(source([Buffer.from("hel"), Buffer.from("lo")]), "text/plain"), "XX");
  expect(framed.contentType).toBe("multipart/form-data; boundary=XX");
  const bytes = await collect(framed.read());
  expect(bytes.toString()).toBe(
    [
      "--XX",
      'Content-Disposition: form-data; name="metadata"',
      "Content-Type: application/json",
      "",
      '{"idempotencyKey":"ä"}',
      "--XX",
      'Content-Disposition: form-data; name="file"; filename="file"',
      "Content-Type: text/plain",
      "",
      "hello",
      "--XX--",
      "",
    ].join("\r\n"),
  );
  expect(framed.size).toBe(bytes.length);
});

test.each([
  ["nothing", Buffer.alloc(0)],
  ["line ends and dashes", Buffer.from("\r\n--\r\n--wsfs-\r\n--wsfs--\r\n")],
  ["300,000 random bytes", randomBytes(300_000)],
])("another parser finds both parts again: %s", async (_, content) => {
  const framed = frameMultipart(uploadOf(source([content.subarray(0, 7), Buffer.alloc(0), content.subarray(7)])));
  const bytes = await collect(framed.read());
  expect(bytes.length).toBe(framed.size);
  const parts = await parseMultipart(bytes, framed.contentType);
  expect(parts.map(({ name, type }) => [name, type])).toEqual([
    ["metadata", "application/json"],
    ["file", "application/octet-stream"],
  ]);
  expect(JSON.parse(String(parts[0]?.bytes))).toEqual({ idempotencyKey: "ä" });
  expect(parts[1]?.bytes.equals(content)).toBe(true);
});

test("content that holds an earlier body does not end the part: boundaries never repeat", async () => {
  const inner = frameMultipart(uploadOf(source([Buffer.from("x")])));
  const content = await collect(inner.read());
  const framed = frameMultipart(uploadOf(source([content])));
  const parts = await parseMultipart(await collect(framed.read()), framed.contentType);
  expect(parts[1]?.bytes.equals(content)).toBe(true);
});

test.each([
  ["fewer", 6, "5 bytes, expected 6"],
  ["more", 4, "more than 4 bytes, expected 4"],
])("content with %s bytes than it said never gets its end framed", async (_, size, message) => {
  const framed = frameMultipart(uploadOf(source([Buffer.from("hello")], size)), "XX");
  const error = await failureOf(collect(framed.read()));
  expect(error.code).toBe("aborted");
  expect(error.message).toContain(message);
});

test("content that cannot be read fails with the reason", async () => {
  const broken: ContentSource = {
    size: 5,
    // biome-ignore lint/correctness/useYield: it fails before its first chunk.
    async *read() {
      throw new Error("EIO: the disk");
    },
  };
  const error = await failureOf(collect(frameMultipart(uploadOf(broken)).read()));
  expect(error).toMatchObject({ code: "aborted", details: { cause: expect.any(Error) } });
  expect(error.message).toContain("EIO: the disk");
});

test("whoever stops reading the body closes the content", async () => {
  let isClosed = false;
  const content: ContentSource = {
    size: 10,
    async *read() {
      try {
        yield Buffer.from("hello");
        yield Buffer.from("world");
      } finally {
        isClosed = true;
      }
    },
  };
  let count = 0;
  for await (const _ of frameMultipart(uploadOf(content)).read()) {
    count += 1;
    if (count === 2) break;
  }
  expect(isClosed).toBe(true);
});

test("a content type cannot smuggle a header in", () => {
  const body = uploadOf(source([]), "text/plain\r\nX: y");
  expect(() => frameMultipart(body)).toThrow("contentType: expected visible ASCII");
});
