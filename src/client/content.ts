/** Downloads content: a version's bytes, whole or a range, never fewer than announced. */
import type { HttpAnswer } from "../contract/http.ts";
import { discard, type Head, malformed, transportFailure } from "./answers.ts";
import type { Send } from "./call.ts";
import type { Content, ContentOptions } from "./client.ts";
import { RemoteError } from "./errors.ts";

const OPERATION = "getContent";

interface Extent {
  readonly start: number;
  /** Number of bytes in the body. */
  readonly length: number;
  /** Size of the whole content. */
  readonly size: number;
}

export async function getContent(send: Send, nodeId: string, options: ContentOptions = {}): Promise<Content> {
  const { version, range, ifVersion, at, branch, signal, takesLoans } = options;
  const answer = await send({
    operation: OPERATION,
    parameters: { nodeId },
    query: { version, at, branch },
    headers: {
      accept: "*/*",
      // Another encoding would change the meaning of lengths and ranges.
      "accept-encoding": "identity",
      range: range === undefined ? undefined : rangeHeader(range),
      "if-range": ifVersion === undefined ? undefined : `"${ifVersion}"`,
    },
    signal,
    takesLoans,
    accept: range === undefined ? [] : [416],
  });
  try {
    const extent = readExtent(answer, range);
    const got = readVersion(answer, version);
    if (extent.length === 0) await discard(answer);
    const mimeType = answer.headers["content-type"];
    const bytes = exactly(answer, extent.length);
    return { version: got, start: extent.start, size: extent.size, mimeType, bytes };
  } catch (error) {
    await discard(answer);
    throw error;
  }
}

function rangeHeader(range: { start: number; end: number }): string {
  const { start, end } = range;
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start < 0 || start >= end) {
    throw new RemoteError("invalid", `${OPERATION}: range: expected 0 <= start < end, got ${start} and ${end}`, {
      field: "range",
      isUnsent: true,
    });
  }
  return `bytes=${start}-${end - 1}`;
}

function readExtent(answer: HttpAnswer, range: { start: number; end: number } | undefined): Extent {
  const { status, headers } = answer;
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw malformed(OPERATION, answer, `expected no Content-Encoding, got ${encoding}`);
  }
  if (status === 200) {
    const size = wholeNumber(headers["content-length"]);
    if (size === undefined) throw malformed(OPERATION, answer, "expected a Content-Length");
    return { start: 0, length: size, size };
  }
  const contentRange = headers["content-range"] ?? "";
  if (status === 416 && range !== undefined) {
    // The content ends before the range begins. For a reader that means no bytes, not an error.
    const size = wholeNumber(/^bytes \*\/(\d+)$/.exec(contentRange)?.[1]);
    if (size === undefined || size > range.start) throw unfit(answer, range);
    return { start: range.start, length: 0, size };
  }
  const [, from, to, of] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(contentRange) ?? [];
  const start = wholeNumber(from);
  const last = wholeNumber(to);
  const size = wholeNumber(of);
  if (status !== 206 || range === undefined || start === undefined || last === undefined || size === undefined) {
    throw unfit(answer, range);
  }
  const length = last - start + 1;
  const declared = headers["content-length"];
  const isRequestedRange = start === range.start && last === Math.min(range.end, size) - 1;
  if (!isRequestedRange || (declared !== undefined && wholeNumber(declared) !== length)) {
    throw unfit(answer, range);
  }
  return { start, length, size };
}

function unfit(answer: Head, range: { start: number; end: number } | undefined): RemoteError {
  const asked = range === undefined ? "no range" : rangeHeader(range);
  const contentRange = answer.headers["content-range"] ?? "";
  return malformed(OPERATION, answer, `asked for ${asked}, got ${answer.status} with Content-Range "${contentRange}"`);
}

/** The ETag is the version's id in quotes. */
function readVersion(answer: HttpAnswer, asked: string | undefined): string {
  const tag = answer.headers.etag;
  const version = tag === undefined ? asked : /^(?:W\/)?"([^"]+)"$/.exec(tag)?.[1];
  if (version === undefined) {
    throw malformed(OPERATION, answer, `expected an ETag that names the version, got ${tag ?? "none"}`);
  }
  if (asked !== undefined && version !== asked) {
    throw malformed(OPERATION, answer, `asked for version ${asked}, got ${version}`);
  }
  return version;
}

function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Ends after exactly `length` bytes or fails: a short body must never pass for a short file. */
function exactly(answer: HttpAnswer, length: number): AsyncIterable<Uint8Array> {
  if (length === 0) return { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }) };
  const iterator = answer.body[Symbol.asyncIterator]();
  let read = 0;
  let isOver = false;
  const fail = async (message: string): Promise<never> => {
    isOver = true;
    await iterator.return?.();
    throw malformed(OPERATION, answer, message);
  };
  // Not a generator, because return() must reach the body even if next() was never called.
  const checked: AsyncIterator<Uint8Array> = {
    async next() {
      if (isOver) return { done: true, value: undefined };
      const result = await iterator.next().catch((error: unknown) => {
        throw transportFailure(error, `${OPERATION}: after ${read} of ${length} bytes`, answer);
      });
      if (result.done === true) {
        return read === length ? { done: true, value: undefined } : fail(`expected ${length} bytes, got ${read}`);
      }
      read += result.value.length;
      return read <= length ? result : fail(`expected ${length} bytes, got more`);
    },
    async return() {
      isOver = true;
      await iterator.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => checked };
}
