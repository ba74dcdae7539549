/** Small bodies are taken apart in memory, larger ones as streams: what comes of them is the same, whatever was sent. */
import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Part } from "../../src/gateway/exchange.ts";
import { readParts } from "../../src/gateway/multipart.ts";
import { ProblemError } from "../../src/gateway/problems.ts";
import { readSmallParts } from "../../src/gateway/small-multipart.ts";

const BOUNDARY = "b";

async function outcome(parts: AsyncIterable<Part>): Promise<unknown> {
  const found: unknown[] = [];
  try {
    for await (const { name, contentType, filename, data } of parts) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of data) chunks.push(chunk);
      found.push({ name, contentType, filename, content: Buffer.concat(chunks).toString("latin1") });
    }
    return found;
  } catch (error) {
    return error instanceof ProblemError ? [error.status, error.details.field] : error;
  }
}

const both = (body: Buffer) =>
  Promise.all([
    outcome(readSmallParts(Readable.from([body], { objectMode: false }), BOUNDARY)),
    outcome(readParts(Readable.from([body], { objectMode: false }), BOUNDARY)),
  ]);

/** Pieces that a body is made of, the right ones and those that nearly are. */
const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("--b\r\n", "\r\n--b\r\n", "\r\n--b--", "\r\n--b--\r\n") },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      'Content-Disposition: form-data; name="file"; filename="x"\r\n\r\n',
      'content-disposition: form-data; name="metadata"\r\nContent-Type: application/json; charset=utf-8\r\n\r\n',
      "Content-Disposition: form-data; name=file\r\n\r\n",
      'Content-Disposition: attachment; name="file"\r\n\r\n',
      'Content-Disposition: form-data; name="f"\r\nContent-Transfer-Encoding: base64\r\n\r\n',
      'Content-Disposition: form-data;\r\n name="folded"\r\n\r\n',
      'Content-Disposition: form-data; name="\u00e9"\r\n\r\n',
      "\r\n",
    ),
  },
  { weight: 3, arbitrary: fc.constantFrom("x", "\r\n", "--b", "\r\n--bc", "--", "\r", "\n", "\0", "{}", "\r\n--b ") },
);

test("bodies of right and nearly right pieces: the same parts, or the same refusal", async () => {
  const seed = Number(process.env.GATEWAY_SEED ?? 1);
  const well = fc
    .tuple(fc.array(fc.tuple(piece, piece, piece), { maxLength: 3 }))
    .map(([parts]) => `--b\r\n${parts.flat().join("")}\r\n--b--\r\n`);
  const loose = fc.array(piece, { maxLength: 10 }).map((pieces) => pieces.join(""));
  await fc.assert(
    fc.asyncProperty(fc.oneof(well, loose), async (text) => {
      const [small, large] = await both(Buffer.from(text, "latin1"));
      expect(small).toEqual(large);
    }),
    { seed, numRuns: 500 },
  );
});

test("what clients send is taken apart", async () => {
  const form = new FormData();
  form.set("metadata", JSON.stringify({ branch: "main" }));
  form.set("file", new Blob(["\r\n--bcontent\r\n"], { type: "text/x-test" }), "näme.txt");
  const response = new Response(form);
  const boundary = /boundary=(.+)$/.exec(response.headers.get("content-type") ?? "")?.[1] ?? "";
  const body = Buffer.from(await response.arrayBuffer());
  const read = (parts: typeof readParts) => outcome(parts(Readable.from([body], { objectMode: false }), boundary));
  const small = await read(readSmallParts);
  expect(small).toEqual(await read(readParts));
  expect(small).toMatchObject([{ name: "metadata" }, { name: "file", content: "\r\n--bcontent\r\n" }]);
});

test("a body that breaks off is refused", async () => {
  const stream = new Readable({ read() {} });
  const work = outcome(readSmallParts(stream, BOUNDARY));
  stream.push("--b\r\n");
  stream.destroy();
  expect(await work).toEqual([400, "file"]);
});
