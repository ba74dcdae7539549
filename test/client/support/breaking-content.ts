/** A gateway that has one file and whose answers break off where a test says. */
import { createHash } from "node:crypto";
import { RemoteError } from "../../../src/client/errors.ts";
import type { HttpAnswer, HttpRequest } from "../../../src/contract/http.ts";
import { exampleNode, examplePage } from "./examples.ts";
import { chunksOf, json, type Step } from "./scripted-transport.ts";

export interface BreakingContent {
  readonly step: Step;
  /** First byte asked for, of each request for content. */
  readonly starts: number[];
  /** Bodies given up before their end. */
  readonly returned: () => number;
}

export interface BreakingContentOptions {
  /** Of each answer in turn: bytes after which it breaks off; undefined: it does not. */
  readonly breaks: readonly (number | undefined)[];
  readonly chunk?: number;
  readonly ignoresRanges?: boolean;
  /** The version an answer says it is of. Default: always "v1". */
  readonly version?: (request: number) => string;
  /** Bytes of an answer, when they are not the content's. */
  readonly tamper?: (bytes: Uint8Array) => Uint8Array;
}

export function breakingContent(content: Uint8Array, options: BreakingContentOptions): BreakingContent {
  const { breaks, chunk = 1000, ignoresRanges = false, version = () => "v1", tamper = (bytes) => bytes } = options;
  const starts: number[] = [];
  let returned = 0;

  async function* body(bytes: Uint8Array, breakAt: number | undefined): AsyncGenerator<Uint8Array> {
    let isWhole = false;
    try {
      for (let start = 0; start < bytes.length; start += chunk) {
        const end = Math.min(start + chunk, bytes.length);
        if (breakAt !== undefined && breakAt < end) {
          if (breakAt > start) yield bytes.subarray(start, breakAt);
          isWhole = true;
          throw new RemoteError("offline", `broken after ${breakAt}`);
        }
        yield bytes.subarray(start, end);
      }
      isWhole = true;
    } finally {
      if (!isWhole) returned += 1;
    }
  }

  const answer = (request: HttpRequest): HttpAnswer => {
    const asked = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
    const number = starts.length;
    const isRanged = asked !== null && !ignoresRanges;
    const start = isRanged ? Number(asked[1]) : 0;
    const end = isRanged ? Math.min(Number(asked[2]) + 1, content.length) : content.length;
    starts.push(asked === null ? 0 : Number(asked[1]));
    const headers = {
      etag: `"${version(number)}"`,
      "content-type": "text/plain",
      "content-length": String(end - start),
    };
    const bytes = body(tamper(content.subarray(start, end)), breaks[number]);
    if (!isRanged) return { status: 200, headers, body: bytes };
    const range = `bytes ${start}-${end - 1}/${content.length}`;
    return { status: 206, headers: { ...headers, "content-range": range }, body: bytes };
  };

  const contentHash = createHash("sha256").update(content).digest("hex");
  const node = exampleNode({ size: content.length, head: "v1", contentHash });
  return {
    starts,
    returned: () => returned,
    step(request) {
      if (request.path.endsWith("/content")) return answer(request);
      if (request.path.endsWith("/versions")) return json(200, examplePage([]))(request);
      return { status: 200, headers: {}, body: chunksOf(JSON.stringify(node)) };
    },
  };
}
