/**
 * A multipart/form-data body (RFC 7578, RFC 2046 §5.1) as a sequence of parts, read as it arrives. A part that is
 * complete in memory is handed over at once, without copying. Each piece of a longer part is handed over as soon as it
 * certainly holds no boundary. A body that does not follow the standards is refused; nothing is guessed.
 */
import type { Readable } from "node:stream";
import type { Part } from "./exchange.ts";
import { invalid } from "./problems.ts";

/** The number of bytes that are received ahead of the reader of the parts. */
const AHEAD_BYTES = 512 * 1024;
/** Maximum size of the headers of one part. */
const HEAD_BYTES = 16 * 1024;
/** The length of the padding that transport may add to the line of a boundary. */
const PADDING_BYTES = 1024;
const [SPACE, TAB] = [0x20, 0x09];
/** Memory of a chunk besides its bytes. */
const CHUNK_BYTES = 256;
/** The limit for bytes before the first boundary, and after the closing one. RFC 2046 lets readers ignore both. */
const IGNORED_BYTES = 64 * 1024;
const BOUNDARY_LENGTH = 200;

/** Returns the boundary of a multipart/form-data content type; undefined when the type is another or has none. */
export function multipartBoundary(contentType: string | undefined): string | undefined {
  const boundary =
    contentType === undefined ? undefined : parametersOf(contentType, "multipart/form-data")?.get("boundary");
  return boundary === undefined || boundary === "" || boundary.length > BOUNDARY_LENGTH ? undefined : boundary;
}

const brokenOff = () => invalid("file", "file: the body ended before its closing boundary");
const malformed = (problem: string) => invalid("body", `body: not multipart/form-data: ${problem}`);

/**
 * Returns the parts, one after the other. The unread rest of a part is skipped. Fails with a 400 when the body is
 * broken off.
 */
export async function* readParts(body: Readable, boundary: string): AsyncGenerator<Part> {
  const chunks = chunksOf(body);
  const content = contentOf(chunks, `\r\n--${boundary}`);
  try {
    await content.skip(IGNORED_BYTES);
    while (await content.isFollowed()) {
      const head = await content.head();
      const bytes = content.atOnce();
      yield partOf(head, bytes === undefined ? content.pieces : piecesOf(bytes), bytes);
      await content.skip();
    }
    await chunks.skip(IGNORED_BYTES);
  } finally {
    chunks.close();
  }
}

interface Content {
  /** Pieces of the current part, up to the next boundary. */
  readonly pieces: AsyncIterable<Uint8Array>;
  /** The whole part, when it has already arrived. */
  atOnce(): Buffer | undefined;
  /** Skips to the next boundary. Refuses the body when more than so many bytes come before it. */
  skip(limit?: number): Promise<void>;
  /** After a boundary: returns whether another part follows. */
  isFollowed(): Promise<boolean>;
  /** After `isFollowed`: returns the headers of the part, without the line ends around them. */
  head(): Promise<string>;
}

function contentOf(chunks: Chunks, delimiterText: string): Content {
  const delimiter = Buffer.from(delimiterText, "latin1");
  /**
   * Bytes received and not handed over. They begin as if a line had ended before the body, because the body may begin
   * with a boundary.
   */
  let rest: Buffer = Buffer.from("\r\n");
  let isOpen = true;

  async function more(): Promise<void> {
    const chunk = await chunks.next();
    if (chunk === undefined) throw brokenOff();
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
  }

  function upTo(end: number): Buffer {
    const found = rest.subarray(0, end);
    rest = rest.subarray(end + delimiter.length);
    isOpen = false;
    return found;
  }

  /** Returns how many of the last bytes may be the beginning of a boundary. */
  function bytesToKeep(): number {
    let at = rest.indexOf(0x0d, Math.max(0, rest.length - delimiter.length + 1));
    while (at !== -1 && delimiter.compare(rest, at, rest.length, 0, rest.length - at) !== 0) {
      at = rest.indexOf(0x0d, at + 1);
    }
    return at === -1 ? 0 : rest.length - at;
  }

  async function piece(): Promise<Buffer | undefined> {
    while (isOpen) {
      const end = rest.indexOf(delimiter);
      if (end !== -1) return upTo(end);
      const safe = rest.length - bytesToKeep();
      if (safe > 0) {
        const found = rest.subarray(0, safe);
        rest = rest.subarray(safe);
        return found;
      }
      await more();
    }
    return undefined;
  }

  return {
    pieces: {
      [Symbol.asyncIterator]: () => ({
        async next() {
          const value = await piece();
          return value === undefined ? { done: true, value } : { done: false, value };
        },
      }),
    },
    atOnce() {
      const end = rest.indexOf(delimiter);
      return end === -1 ? undefined : upTo(end);
    },
    async skip(limit = Number.POSITIVE_INFINITY) {
      for (let skipped = 0; isOpen; ) {
        skipped += (await piece())?.length ?? 0;
        if (skipped > limit) throw malformed(`more than ${limit} bytes before the first part`);
      }
    },
    async isFollowed() {
      while (rest.length < 2) await more();
      if (rest.toString("latin1", 0, 2) === "--") return false;
      let end = 0;
      for (;;) {
        while (rest[end] === SPACE || rest[end] === TAB) end += 1;
        if (rest.length >= end + 2) break;
        if (end > PADDING_BYTES) throw malformed(`a boundary padded with more than ${PADDING_BYTES} bytes`);
        await more();
      }
      if (rest.toString("latin1", end, end + 2) !== "\r\n") throw malformed("a boundary that does not end its line");
      rest = rest.subarray(end);
      return true;
    },
    async head() {
      let end = rest.indexOf("\r\n\r\n", 0, "latin1");
      for (; end === -1; end = rest.indexOf("\r\n\r\n", 0, "latin1")) {
        if (rest.length > HEAD_BYTES) throw malformed(`a part with more than ${HEAD_BYTES} bytes of headers`);
        await more();
      }
      // The line end after the headers must not be the beginning of a boundary as well.
      while (rest.length < end + 2 + delimiter.length) await more();
      const boundary = rest.indexOf(delimiter);
      if (boundary !== -1 && boundary <= end + 2) throw malformed("a boundary among the headers of a part");
      const head = rest.toString("latin1", 2, end);
      rest = rest.subarray(end + 4);
      isOpen = true;
      return head;
    },
  };
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** Makes a part of its headers; only two of them matter (RFC 7578 §4.8). */
function partOf(head: string, data: Part["data"], bytes: Uint8Array | undefined): Part {
  let disposition: string | undefined;
  let contentType: string | undefined;
  for (const line of head === "" ? [] : head.replace(/\r\n(?=[ \t])/g, "").split("\r\n")) {
    const [matched, name, value] = HEADER.exec(line) ?? [];
    if (matched === undefined)
      throw malformed(`expected "NAME: VALUE" among the headers of a part, got ${quote(line)}`);
    if (/^content-disposition$/i.test(name ?? "")) disposition ??= value;
    else if (/^content-type$/i.test(name ?? "")) contentType ??= value;
  }
  const parameters = disposition === undefined ? undefined : parametersOf(disposition, "form-data");
  if (disposition !== undefined && parameters === undefined && /^form-data\s*;/i.test(disposition)) {
    throw malformed(`the parameters of a part cannot be told apart: ${quote(disposition)}`);
  }
  // Browsers write a quote this way.
  const [name, filename] = ["name", "filename"].map((one) => parameters?.get(one)?.replaceAll("%22", '"'));
  return { name: name ?? "", contentType, filename, data, bytes };
}

const quote = (line: string) => JSON.stringify(line.slice(0, 100));

/**
 * One parameter, with the separator before it and up to the next one. A value without its closing quote does not match.
 */
const PARAMETER = /;[ \t]*(?:([^\s;="]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))[ \t]*)?(?=;|$)/y;

/**
 * Returns the parameters after a word such as `form-data`, names in lower case; undefined when the value begins with
 * another word, or when its parameters cannot be told apart. They are read one after the other, because a quoted value
 * may look like several parameters.
 */
function parametersOf(value: string, word: string): ReadonlyMap<string, string> | undefined {
  const mark = value.indexOf(";");
  const first = (mark === -1 ? value : value.slice(0, mark)).trim();
  if (first.toLowerCase() !== word) return undefined;
  const found = new Map<string, string>();
  for (let at = mark === -1 ? value.length : mark; at < value.length; at = PARAMETER.lastIndex) {
    PARAMETER.lastIndex = at;
    const [matched, name, quoted, plain] = PARAMETER.exec(value) ?? [];
    if (matched === undefined) return undefined;
    if (name === undefined) continue;
    if (found.has(name.toLowerCase())) return undefined;
    found.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "");
  }
  return found;
}

interface Chunks {
  /** Undefined at the end of the body. */
  next(): Promise<Buffer | undefined>;
  /** Reads on to the end, so that the connection is ready for the next request, but not more than this many bytes. */
  skip(bytes: number): Promise<void>;
  close(): void;
}

/**
 * The body as it arrives. The amount received but not taken is limited, and its stream stays intact when no more is
 * taken.
 */
function chunksOf(body: Readable): Chunks {
  let waiting: Buffer[] = [];
  /** The chunks before this index are taken. Shifting a long list would cost its length each time. */
  let first = 0;
  let size = 0;
  // A stream that ended before does not report its end again.
  let state: "open" | "ended" | "broken" = body.destroyed ? "broken" : "open";
  let wake = () => {};
  const end = (how: "ended" | "broken") => {
    if (state === "open") state = how;
    wake();
  };
  const onData = (chunk: Buffer) => {
    waiting.push(chunk);
    size += chunk.length + CHUNK_BYTES;
    if (size >= AHEAD_BYTES) body.pause();
    wake();
  };
  body.on("data", onData);
  body.once("end", () => end("ended"));
  body.on("error", () => end("broken"));
  body.once("close", () => end("broken"));

  async function next(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = waiting[first];
      if (chunk !== undefined) {
        first += 1;
        if (first === waiting.length) [waiting, first] = [[], 0];
        size -= chunk.length + CHUNK_BYTES;
        if (size < AHEAD_BYTES && body.isPaused()) body.resume();
        return chunk;
      }
      if (state === "ended") return undefined;
      if (state === "broken") throw brokenOff();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }

  return {
    next,
    async skip(bytes) {
      for (let rest = bytes; rest >= 0; ) {
        const chunk = await next();
        if (chunk === undefined) return;
        rest -= chunk.length;
      }
    },
    close() {
      body.off("data", onData);
      if (state === "open") body.pause();
    },
  };
}
