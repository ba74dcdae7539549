/** Which type a content gets: the uploader's own where it is one, else what its first bytes say. */
import { expect, test } from "vitest";
import { mimeTypeOf, SNIFF_BYTES } from "../../src/gateway/sniff.ts";

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489", "hex");
const TEXT = Buffer.from("plain words\n");
const LONG = "x".repeat(127);

test.each([
  ["text/x-own", "text/x-own"],
  ["Text/X-Own", "Text/X-Own"],
  ["text/html; charset=utf-8", "text/html; charset=utf-8"],
  ['text/html;charset="utf-8"; a=b', 'text/html;charset="utf-8"; a=b'],
  ["text/html \t; charset=utf-8", "text/html \t; charset=utf-8"],
  ["  text/html  ", "text/html"],
  ["application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"],
  ["application/ld+json", "application/ld+json"],
  [`${LONG}/${LONG}`, `${LONG}/${LONG}`],
  [`a/b;${"x".repeat(255)}`, `a/b;${"x".repeat(255)}`],
])("%j is kept as it was sent", async (sent, kept) => {
  expect(await mimeTypeOf(sent, PNG)).toBe(kept);
});

test.each([
  undefined,
  "",
  "application/octet-stream",
  "Application/Octet-Stream; x=y",
  "text",
  "text/",
  "/html",
  "text/html/more",
  "text /html",
  "text/html charset=utf-8",
  "text/html, text/plain",
  "text/ht\u00e4ml",
  "text/html; a=\u00e4",
  "text/html\r\nSet-Cookie: x=y",
  "text/html; a=b\r\nSet-Cookie: x=y",
  "text/html; a=b\0",
  `${LONG}x/a`,
  `a/b;${"x".repeat(256)}`,
])("%j says nothing: the bytes are looked at", async (sent) => {
  expect([await mimeTypeOf(sent, PNG), await mimeTypeOf(sent, TEXT)]).toEqual(["image/png", "text/plain"]);
});

test("what is neither known nor text has no type of its own; text may be cut in the middle of a character", async () => {
  const sniffed = (bytes: Uint8Array) => mimeTypeOf(undefined, bytes);
  const cutText = Buffer.from(`a${"\u{1f600}".repeat(SNIFF_BYTES)}`).subarray(0, SNIFF_BYTES);
  expect(await sniffed(cutText)).toBe("text/plain");
  expect(await sniffed(Buffer.from([0x80, 0x81, 0x82]))).toBe("application/octet-stream");
  expect(await sniffed(Buffer.from("text\0"))).toBe("application/octet-stream");
  expect(await sniffed(Buffer.alloc(0))).toBe("text/plain");
});
