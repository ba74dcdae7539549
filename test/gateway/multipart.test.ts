/**
 * Multipart bodies, whole and in pieces of any size: against what was written into them, against the grammar of the
 * standard, and against Node's own parser.
 */
import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Part } from "../../src/gateway/exchange.ts";
import { multipartBoundary, readParts } from "../../src/gateway/multipart.ts";
import { ProblemError } from "../../src/gateway/problems.ts";

const BOUNDARY = "b";
const REFUSED = "refused";
const options = { seed: Number(process.env.GATEWAY_SEED ?? 1), numRuns: 700 };

async function outcome(parts: AsyncIterable<Part>, readsBytes: boolean): Promise<unknown> {
  const found: unknown[] = [];
  try {
    for await (const { name, contentType, filename, data, bytes } of parts) {
      const chunks: Uint8Array[] = [];
      if (readsBytes && bytes !== undefined) chunks.push(bytes);
      else for await (const chunk of data) chunks.push(chunk);
      found.push({ name, contentType, filename, content: Buffer.concat(chunks).toString("latin1") });
    }
    return found;
  } catch (error) {
    if (error instanceof ProblemError && error.status === 400) return REFUSED;
    throw error;
  }
}

function streamOf(body: Buffer, sizes: readonly number[]): Readable {
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < body.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? body.length;
    pieces.push(body.subarray(at, at + size));
    at += size;
  }
  return Readable.from(pieces, { objectMode: false });
}

const ours = (body: Buffer, sizes: readonly number[] = [], readsBytes = false, boundary = BOUNDARY) =>
  outcome(readParts(streamOf(body, sizes), boundary), readsBytes);

/** The name and the filename that each disposition gives. */
const NAMES: Readonly<Record<string, { name: string; filename: string | undefined }>> = {
  'form-data; name="file"; filename="x\\"y"': { name: "file", filename: 'x"y' },
  'Form-Data; filename=x; name="metadata"': { name: "metadata", filename: "x" },
  "form-data; name=file": { name: "file", filename: undefined },
  'form-data; name="a%22b"': { name: 'a"b', filename: undefined },
  'form-data; name="\u00e9"': { name: "\u00e9", filename: undefined },
  "form-data": { name: "", filename: undefined },
  'attachment; name="file"': { name: "", filename: undefined },
  // What is quoted may look like another parameter.
  'form-data; filename="a; name=other; b"; name=file': { name: "file", filename: "a; name=other; b" },
  'form-data; filename="\\"; name=\\"x"; name="file" ;': { name: "file", filename: '"; name="x' },
  "form-data; x=\" name=a\"; filename*=UTF-8''y; NAME=file": { name: "file", filename: undefined },
};

/** The text between two boundaries: padding, headers and content. */
const SECTION = /^[ \t]*\r\n((?:[\w-]+:(?:[\t\x20-\x7e\x80-\xff]|\r\n[ \t])*\r\n)*)\r\n(.*)$/s;

/** The parts by the grammar of RFC 2046 §5.1.1, of a whole text at once. */
function byGrammar(body: string): unknown {
  const found: unknown[] = [];
  const [, ...sections] = `\r\n${body}`.split(`\r\n--${BOUNDARY}`);
  for (const section of sections) {
    if (section.startsWith("--")) return found;
    const [matched, head = "", content = ""] = SECTION.exec(section) ?? [];
    if (matched === undefined) return REFUSED;
    const fields = head.replace(/\r\n(?=[ \t])/g, "");
    const disposition = /^content-disposition: *(.*)$/im.exec(fields)?.[1];
    const contentType = /^content-type: *(.*)$/im.exec(fields)?.[1];
    found.push({ ...(NAMES[disposition ?? ""] ?? { name: "", filename: undefined }), contentType, content });
  }
  return REFUSED;
}

const nearly = fc.constantFrom(
  ...["x", "\r\n", "\r\n--", "--b", "\r\n--a", "\r", "\n", "\0", "--", "\r\n-", "\r\r\n-", "{}", "\r\n--B", "b"],
);
const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 });
const content = fc
  .array(nearly, { maxLength: 8 })
  .map((pieces) => pieces.join(""))
  .filter((text) => !`\r\n${text}\r\n--b`.slice(0, -1).includes("\r\n--b"));
/** The content type that each header gives. */
const TYPES: Readonly<Record<string, string | undefined>> = {
  "": undefined,
  "Content-Type: text/plain\r\n": "text/plain",
  "content-type: a/b; c=d\r\nX-Other: 1\r\n": "a/b; c=d",
};
const head = fc.record({
  disposition: fc.constantFrom(...Object.keys(NAMES)),
  type: fc.constantFrom(...Object.keys(TYPES)),
});
const textOf = ({ disposition, type }: { disposition: string; type: string }) =>
  `Content-Disposition: ${disposition}\r\n${type}\r\n`;

test("bodies as the standards say: the parts that were written, in pieces of any size", async () => {
  const written = fc
    .tuple(
      fc.constantFrom("", "preamble", "\r\n", "-bad"),
      fc.array(fc.tuple(head, content), { minLength: 1, maxLength: 4 }),
      fc.constantFrom("", "\r\n", "\r\nepilogue\r\n--b\r\n"),
    )
    .map(([preamble, parts, epilogue]) => {
      const text = parts.map(([headers, inner]) => `\r\n--b\r\n${textOf(headers)}${inner}`).join("");
      const whole = `${preamble}${text}\r\n--b--${epilogue}`;
      const expected = parts.map(([{ disposition, type }, inner]) => {
        return { ...NAMES[disposition], contentType: TYPES[type], content: inner };
      });
      return { body: preamble === "" ? whole.slice(2) : whole, expected };
    });
  await fc.assert(
    fc.asyncProperty(written, sizes, async ({ body, expected }, pieces) => {
      const bytes = Buffer.from(body, "latin1");
      expect(await ours(bytes)).toEqual(expected);
      expect(await ours(bytes, pieces, true)).toEqual(expected);
      // The next test relies on the grammar.
      expect(byGrammar(body)).toEqual(expected);
    }),
    options,
  );
});

test("anything else: refused or not as the grammar says, the same parts, and the same in pieces of any size", async () => {
  const piece = fc.oneof(
    fc.constantFrom("--b\r\n", "\r\n--b\r\n", "\r\n--b--", "\r\n--b--\r\n", "\r\n--b \r\n", "\r\n--bc"),
    head.map(textOf),
    fc.constantFrom("Content-Disposition: form-data;\r\n name=file\r\n\r\n", "no header\r\n\r\n", "\r\n\r\n"),
    nearly,
  );
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 10 }), sizes, async (texts, pieces) => {
      const body = texts.join("");
      const bytes = Buffer.from(body, "latin1");
      const expected = byGrammar(body);
      expect(await ours(bytes)).toEqual(expected);
      expect(await ours(bytes, pieces, true)).toEqual(expected);
      if (expected !== REFUSED) accepted += 1;
    }),
    options,
  );
  expect(accepted).toBeGreaterThan(options.numRuns / 100);
});

/** Node's parser takes this for a boundary wherever it is, so no content holds it. */
const NODES_BOUNDARY = "Xyz";

async function nodes(body: Buffer): Promise<unknown> {
  const headers = { "content-type": `multipart/form-data; boundary=${NODES_BOUNDARY}` };
  const form = await new Response(body, { headers }).formData().catch((error: unknown) => {
    if (!(error instanceof TypeError)) throw error;
  });
  if (form === undefined) return REFUSED;
  const files = [...form].map(async ([name, file]) => {
    // The parser keeps the bytes and the type of a part only if the part has a filename, so all have one.
    if (typeof file === "string") throw new Error(`expected a file, got ${JSON.stringify(file)}`);
    const content = Buffer.from(await file.arrayBuffer()).toString("latin1");
    return { name, filename: file.name, contentType: file.type, content };
  });
  return Promise.all(files);
}

test("Node's own parser reads the same, and refuses what is broken off", async () => {
  const name = fc.constantFrom("file", "metadata", "a%22b", "a; name=c");
  const almost = fc.constantFrom(
    ...["\xff", "\0", "\r", "\n", "\r\n", "\r\n-", "\r\n--", "\r\n--Xy", "--Xy\r\n", "yz"],
  );
  const part = fc
    .tuple(name, name, fc.constantFrom("text/plain", "a/b; c=d"), fc.array(almost, { maxLength: 8 }))
    .map(([name, filename, type, inner]) => {
      const disposition = `form-data; name="${name}"; filename="${filename}"`;
      return `--Xyz\r\n${textOf({ disposition, type: `Content-Type: ${type}\r\n` })}${inner.join("")}\r\n`;
    });
  const body = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => `${parts.join("")}--Xyz--`);
  await fc.assert(
    fc.asyncProperty(body, sizes, fc.nat(), async (text, pieces, end) => {
      const bytes = Buffer.from(text, "latin1");
      const expected = await nodes(bytes);
      expect(expected).not.toBe(REFUSED);
      expect(await ours(bytes, [], false, NODES_BOUNDARY)).toEqual(expected);
      expect(await ours(bytes, pieces, true, NODES_BOUNDARY)).toEqual(expected);
      const broken = bytes.subarray(0, end % bytes.length);
      expect(await nodes(broken)).toBe(REFUSED);
      expect(await ours(broken, pieces, true, NODES_BOUNDARY)).toBe(REFUSED);
    }),
    options,
  );
});

test("what clients send is taken apart", async () => {
  const form = new FormData();
  form.set("metadata", JSON.stringify({ branch: "main" }));
  form.set("file", new Blob(["\r\n--bcontent\r\n"], { type: "text/x-test" }), "näme.txt");
  const response = new Response(form);
  const boundary = /boundary=(.+)$/.exec(response.headers.get("content-type") ?? "")?.[1] ?? "";
  const body = Buffer.from(await response.arrayBuffer());
  const parts = await outcome(readParts(Readable.from([body], { objectMode: false }), boundary), true);
  expect(parts).toMatchObject([{ name: "metadata" }, { name: "file", content: "\r\n--bcontent\r\n" }]);
});

test("what of a part is not read is skipped", async () => {
  const text = `--b\r\nContent-Disposition: form-data; name=file\r\n\r\n${"x".repeat(50_000)}\r\n--b\r\nContent-Disposition: form-data; name=metadata\r\n\r\n{}\r\n--b--`;
  const names: string[] = [];
  for await (const part of readParts(streamOf(Buffer.from(text), [100]), BOUNDARY)) {
    names.push(part.name);
    for await (const _ of part.data) break;
  }
  expect(names).toEqual(["file", "metadata"]);
});

test("a body that breaks off is refused, wherever that is", async () => {
  const whole = "--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx\r\n--b--";
  for (let length = 0; length < whole.length; length += 1) {
    for (const how of ["end", "destroy"] as const) {
      const stream = new Readable({ read() {} });
      const work = outcome(readParts(stream, BOUNDARY), false);
      if (length > 0) stream.push(whole.slice(0, length));
      if (how === "end") stream.push(null);
      else setImmediate(() => stream.destroy());
      expect([length, how, await work]).toEqual([length, how, REFUSED]);
    }
  }
  const gone = new Readable({ read() {} });
  gone.destroy();
  expect(await outcome(readParts(gone, BOUNDARY), false)).toBe(REFUSED);
});

test("headers without end are refused, and a body is not read far ahead", async () => {
  let read = 0;
  const endless = new Readable({
    read() {
      read += 1000;
      this.push(read === 1000 ? `--b\r\n${"x: ".padEnd(995, "x")}` : Buffer.alloc(1000, "x"));
    },
  });
  expect(await outcome(readParts(endless, BOUNDARY), false)).toBe(REFUSED);
  expect(read).toBeLessThan(1_000_000);
});

test("parameters that cannot be told apart are refused, and a boundary is not looked for in another's value", async () => {
  const dispositions = ['name="file', 'name="a"b"', "name=a; name=b", "name=a b", 'filename="x; name=file'];
  for (const disposition of dispositions) {
    const body = `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\nx\r\n--b--`;
    expect([disposition, await ours(Buffer.from(body))]).toEqual([disposition, REFUSED]);
  }
  const boundaries: Record<string, string | undefined> = {
    "multipart/form-data; boundary=b": "b",
    'Multipart/Form-Data ;Boundary="b c"; charset=x': "b c",
    'multipart/form-data; x="; boundary=other; "; boundary=b': "b",
    "multipart/form-data; boundary=b; boundary=c": undefined,
    "multipart/form-data; boundary=": undefined,
    "multipart/form-data": undefined,
    "multipart/mixed; boundary=b": undefined,
    [`multipart/form-data; boundary=${"b".repeat(201)}`]: undefined,
  };
  for (const [type, boundary] of Object.entries(boundaries)) {
    expect([type, multipartBoundary(type)]).toEqual([type, boundary]);
  }
});

test("what comes before the first part is passed over, but not without end", async () => {
  const part = "\r\n--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx\r\n--b--";
  const before = (length: number) =>
    outcome(readParts(streamOf(Buffer.from("-".repeat(length) + part), [999]), BOUNDARY), true);
  expect(await before(60_000)).toMatchObject([{ name: "file", content: "x" }]);
  expect(await before(70_000)).toBe(REFUSED);
  let read = 0;
  const endless = new Readable({
    read() {
      read += 1000;
      this.push(Buffer.alloc(1000, "x"));
    },
  });
  expect(await outcome(readParts(endless, BOUNDARY), false)).toBe(REFUSED);
  expect(read).toBeLessThan(1_000_000);
});

test("of a body in single bytes no more is received ahead than takes as much room as one in large pieces", async () => {
  const beginning = "--b\r\n\r\n";
  let read = 0;
  const tiny = new Readable({
    highWaterMark: 1,
    read() {
      this.push(beginning[read] ?? "x");
      read += 1;
    },
  });
  const parts = readParts(tiny, BOUNDARY);
  // Of the part that is there nobody takes anything.
  await parts.next();
  for (let before = -1; before !== read; ) {
    before = read;
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
  }
  expect(read).toBeLessThan(20_000);
  tiny.destroy();
});

test("a header of a part with a control character in it is refused", async () => {
  const body = (type: string) =>
    Buffer.from(
      `--b\r\nContent-Disposition: form-data; name=file\r\nContent-Type: ${type}\r\n\r\nx\r\n--b--`,
      "latin1",
    );
  expect(await ours(body("a/b;\tc=\xe9"))).toMatchObject([{ contentType: "a/b;\tc=\xe9" }]);
  for (const code of [0x01, 0x0b, 0x1f, 0x7f]) {
    expect(await ours(body(`a/b${String.fromCharCode(code)}`)), `${code}`).toBe(REFUSED);
  }
});
