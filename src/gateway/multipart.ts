/**
 * A multipart/form-data body as a sequence of parts, streamed. Dicer (of @fastify/busboy) finds the
 * boundaries; its parts are read here rather than through Busboy because that drops the parameters
 * of a part's Content-Type and cannot tell a missing one from text/plain.
 */
import type { Readable } from "node:stream";
import { Dicer } from "@fastify/busboy";
import type { Part } from "./exchange.ts";
import { invalid } from "./problems.ts";

/** How much may follow the closing boundary; RFC 2046 has readers ignore it. */
const EPILOGUE_BYTES = 64 * 1024;

/** The boundary of a multipart/form-data content type; undefined when it is none. */
export function multipartBoundary(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !/^multipart\/form-data\s*;/i.test(contentType)) return undefined;
  const match = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType);
  return match?.[1] ?? match?.[2];
}

export const brokenOff = () => invalid("file", "file: the body ended before its closing boundary");

const PARAMETERS = {
  name: /;\s*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i,
  filename: /;\s*filename=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i,
};

function parameter(disposition: string, name: keyof typeof PARAMETERS): string | undefined {
  const match = PARAMETERS[name].exec(disposition);
  return match?.[1]?.replace(/\\(.)/g, "$1").replace(/%22/g, '"') ?? match?.[2];
}

/** A part by its headers. */
export function partOf(
  disposition: string | undefined,
  contentType: string | undefined,
  data: Part["data"],
  bytes?: Uint8Array,
): Part {
  return {
    name: /^\s*form-data\s*(;|$)/i.test(disposition ?? "") ? (parameter(disposition ?? "", "name") ?? "") : "",
    contentType,
    filename: parameter(disposition ?? "", "filename"),
    data,
    bytes,
  };
}

type Headers = Readonly<Record<string, readonly string[] | undefined>>;

/** Reads what Dicer's typing calls `object`. */
function toPart(headers: object, stream: Readable): Part {
  const { "content-disposition": dispositions, "content-type": types } = headers as Headers;
  const data = {
    [Symbol.asyncIterator]() {
      const chunks: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
      return {
        next: () =>
          chunks.next().catch(() => {
            throw brokenOff();
          }),
        return: async () => {
          await chunks.return?.();
          return { done: true as const, value: undefined };
        },
      };
    },
  };
  return partOf(dispositions?.[0], types?.[0], data);
}

/** Reads what follows the closing boundary, so that the connection is ready for the next request. */
function skipEpilogue(body: Readable): Promise<void> {
  if (body.readableEnded || body.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let rest = EPILOGUE_BYTES;
    const done = () => {
      body.off("data", onData);
      resolve();
    };
    const onData = (chunk: Uint8Array) => {
      rest -= chunk.length;
      if (rest >= 0) return;
      body.pause();
      done();
    };
    body.on("data", onData);
    body.once("end", done);
    body.once("close", done);
    body.resume();
  });
}

/** The parts, one after the other; what of a part is not read is skipped. Fails with a 400 when the body is broken off. */
export async function* readParts(body: Readable, boundary: string): AsyncGenerator<Part> {
  // Its end has been told already.
  if (body.destroyed) throw brokenOff();
  const dicer = new Dicer({ boundary });
  const waiting: { part: Part; stream: Readable }[] = [];
  let open: Readable | undefined;
  const progress: { state: "open" | "ended" | "broken" } = { state: "open" };
  let wake: (() => void) | undefined;
  const step = (next?: "ended" | "broken") => {
    if (next !== undefined && progress.state === "open") progress.state = next;
    wake?.();
  };
  const breakOff = () => {
    if (progress.state !== "open") return;
    step("broken");
    open?.destroy(brokenOff());
  };
  const onClose = () => {
    if (!body.readableEnded) breakOff();
  };

  dicer.on("part", (stream) => {
    open = stream;
    // Errors reach whoever reads the part; one that nobody reads must not end the process.
    stream.on("error", () => {});
    stream.on("header", (headers) => {
      waiting.push({ part: toPart(headers, stream), stream });
      step();
    });
  });
  dicer.on("finish", () => step("ended"));
  dicer.on("error", breakOff);
  body.on("error", breakOff);
  body.on("close", onClose);
  body.pipe(dicer);

  try {
    while (true) {
      const next = waiting.shift();
      if (next !== undefined) {
        yield next.part;
        next.stream.resume();
      } else if (progress.state === "ended") {
        body.unpipe(dicer);
        await skipEpilogue(body);
        return;
      } else if (progress.state === "broken") throw brokenOff();
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    body.unpipe(dicer);
    body.off("close", onClose);
    open?.destroy();
  }
}
