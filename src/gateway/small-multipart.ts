/**
 * A small multipart/form-data body, read at once and taken apart in memory: a tenth of the work of
 * the streams in multipart.ts, which most uploads would spend more on than on anything else. Takes
 * only what is written the plain way; everything else goes through those streams, which also say
 * what is wrong with it.
 */
import { Readable } from "node:stream";
import type { Part } from "./exchange.ts";
import { brokenOff, partOf, readParts } from "./multipart.ts";

/** Bodies up to this size, by their Content-Length. */
export const SMALL_BODY_BYTES = 64 * 1024;

export async function* readSmallParts(body: Readable, boundary: string): AsyncGenerator<Part> {
  const bytes = await readAll(body);
  const parts = takeApart(bytes, boundary);
  if (parts === undefined) yield* readParts(Readable.from([bytes]), boundary);
  else yield* parts;
}

function readAll(body: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const fail = () => reject(brokenOff());
    // Its end has been told already.
    if (body.destroyed) return fail();
    body.on("data", (chunk: Buffer) => void chunks.push(chunk));
    body.once("end", () => {
      body.off("close", fail);
      const [first] = chunks;
      resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks));
    });
    body.once("error", fail);
    body.once("close", fail);
  });
}

const LINE_END = "\r\n";
const HEAD_END = "\r\n\r\n";
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e]*)$/;

/** Undefined: not written the plain way. */
function takeApart(bytes: Buffer, boundary: string): Part[] | undefined {
  const opening = `--${boundary}${LINE_END}`;
  const delimiter = `${LINE_END}--${boundary}`;
  if (bytes.length < opening.length || bytes.toString("latin1", 0, opening.length) !== opening) return undefined;
  const parts: Part[] = [];
  let at = opening.length;
  for (;;) {
    const headEnd = bytes.indexOf(HEAD_END, at, "latin1");
    if (headEnd === -1) return undefined;
    const start = headEnd + HEAD_END.length;
    // Right after the head is a boundary to some and content to others.
    const end = bytes.indexOf(delimiter, start - LINE_END.length, "latin1");
    if (end < start) return undefined;
    const part = plainPart(bytes.toString("latin1", at, headEnd), bytes.subarray(start, end));
    if (part === undefined) return undefined;
    parts.push(part);
    at = end + delimiter.length + 2;
    const after = bytes.toString("latin1", at - 2, at);
    if (after === "--") return isEnd(bytes, at) ? parts : undefined;
    if (after !== LINE_END) return undefined;
  }
}

function isEnd(bytes: Buffer, at: number): boolean {
  return at === bytes.length || (at + 2 === bytes.length && bytes.toString("latin1", at) === LINE_END);
}

function plainPart(head: string, content: Buffer): Part | undefined {
  let disposition: string | undefined;
  let type: string | undefined;
  for (const line of head.split(LINE_END)) {
    const match = HEADER.exec(line);
    if (match === null) return undefined;
    const name = match[1]?.toLowerCase();
    if (name === "content-disposition") disposition ??= match[2];
    else if (name === "content-type") type ??= match[2];
    // Whatever it means is decided elsewhere.
    else return undefined;
  }
  return partOf(disposition, type, { [Symbol.asyncIterator]: () => only(content) }, content);
}

async function* only(content: Buffer): AsyncGenerator<Uint8Array> {
  if (content.length > 0) yield content;
}
