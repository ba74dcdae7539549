/**
 * The network between one mount and the gateway, on the virtual clock: a Transport that hands requests to the gateway's
 * core and fails by seed. Knows nothing of engines and of what a request is for.
 */
import { RemoteError } from "../../../src/client/errors.ts";
import {
  type HttpAnswer,
  type HttpRequest,
  NODE_LINES,
  type Transport,
  type UploadBody,
} from "../../../src/contract/http.ts";
import type { Scope } from "../../../src/contract/scopes.ts";
import type { Gateway } from "../../../src/gateway/core.ts";
import { type GatewayAnswer, jsonBody, type RequestBody } from "../../../src/gateway/exchange.ts";
import { invalid } from "../../../src/gateway/problems.ts";
import { type Clock, sleep } from "../../../src/lib/runtime.ts";

export const FAULTS = [
  /** The connection breaks, nothing was done. */
  "lost-before",
  /** The connection breaks, it was done. */
  "lost-after",
  /** The connection breaks while the request is read or carried out, which may go on. */
  "lost-during",
  /** 503, nothing was done. */
  "unavailable",
  /** 500, nothing was done. */
  "failed",
  /** 401; with another token it goes. */
  "unauthorized",
  /** 429 with Retry-After. */
  "throttled",
  /** No answer until the client gives up; nothing was done … */
  "silent-before",
  /** … it was done … */
  "silent-after",
  /** … it will be done when nobody thinks of it any more. */
  "late",
  /** The answer breaks off in its body. */
  "broken-body",
  /** The answer ends before its length. */
  "short-body",
  /** The answer comes in drops. */
  "slow-body",
  /** The whole content, whatever part was asked for. */
  "range-ignored",
] as const;
/** Those that are drawn, and, by hand, 429 and 503 that say to wait for an hour. */
export type Fault = (typeof FAULTS)[number] | "throttled-long" | "unavailable-long";

/** By their status: no token is good, no grant for any node, no content is small enough, no space. */
export const REFUSALS = [401, 403, 413, 507] as const;
export type Refusal = (typeof REFUSALS)[number];

/** What a token may lack for a while. Without node.journal.create an upload is done, and nobody told. */
export const WITHDRAWABLE = [
  "node.file.delete",
  "node.node.update",
  "node.node.create",
  "node.file.read",
] as const satisfies readonly Scope[];
export type Withdrawable = (typeof WITHDRAWABLE)[number];

/** What the network is like right now; the simulation changes it while requests are under way. */
export interface Weather {
  isOffline: boolean;
  /** One way takes up to this, milliseconds. */
  latencyMs: number;
  /** Share of requests that meet a fault, 0..1. */
  faultShare: number;
  refusal?: Refusal | undefined;
  withdrawn?: Withdrawable | undefined;
}

/** Silence after which the client gives up; shorter than the real one's, which is 10 s and more. */
const PATIENCE_MS = 10_000;
const LATE_MS = 30_000;
/** Lines after which a stream is interrupted. */
const LINE_CUT_SHARE = 0.1;
/** Between two drops of a slow answer. */
const DROP_MS = 300;

export interface SimTransportOptions {
  readonly clock: Clock;
  /** The gateway that is up now. */
  readonly gateway: () => Gateway;
  readonly weather: Weather;
  readonly random: () => number;
  /** False once the process that sends is dead: nothing reaches it any more. */
  readonly isAlive: () => boolean;
  /** Right after the gateway carried a request out, before anybody hears of it. */
  readonly onAnswer: (request: HttpRequest, answer: GatewayAnswer) => void;
  readonly note: (line: string) => void;
  /** Each request, with what it meets. */
  readonly onRequest?: ((met: Fault | Refusal | "offline" | undefined) => void) | undefined;
  /** Instead of the weather, for requests it has a say about; "none": nothing goes wrong. */
  readonly choose?: ((request: HttpRequest) => Fault | "none" | undefined) | undefined;
  /** Streams of trees are interrupted now and then. */
  readonly cutsTrees?: boolean | undefined;
  /** The gateway has no stream of a tree. */
  readonly lacksTrees?: boolean | undefined;
  /** Those it may meet. */
  readonly faults?: readonly Fault[];
  /** What becomes of a request on its way; for breaking things on purpose. */
  readonly tamper?: ((request: HttpRequest) => HttpRequest) | undefined;
}

export function createSimTransport(options: SimTransportOptions): Transport {
  const { clock, gateway, weather, random, isAlive, note, faults = FAULTS } = options;

  const way = () => sleep(clock, Math.floor(random() * weather.latencyMs));
  const broken = (what: string) => new RemoteError("offline", `the connection broke, ${what}`);
  const silence = async (request: HttpRequest): Promise<never> => {
    await sleep(clock, PATIENCE_MS, request.signal);
    throw new RemoteError("silent", `no answer within ${PATIENCE_MS} ms`);
  };

  /** A stream of events, piece by piece as they come, until one of the ends is gone. */
  async function* events(request: HttpRequest, asked: Gateway, whole: AsyncIterable<Uint8Array>) {
    const pieces = whole[Symbol.asyncIterator]();
    const aborted = new Promise<"aborted">((resolve) => {
      request.signal?.addEventListener("abort", () => resolve("aborted"), { once: true });
    });
    try {
      for (;;) {
        const piece = await Promise.race([pieces.next(), aborted]);
        if (piece === "aborted") throw new RemoteError("aborted", "the call was aborted");
        if (piece.done === true) return;
        await way();
        // What happens to a dead process is that nothing happens.
        if (!isAlive()) {
          pieces.return?.();
          await new Promise(() => {});
        }
        if (weather.isOffline) throw broken("offline");
        if (gateway() !== asked) throw broken("the gateway was restarted");
        yield piece.value;
      }
    } finally {
      pieces.return?.();
    }
  }

  /** A stream of lines, each by itself. It may break off after any: without an error, or in bad weather with one. */
  async function* lines(request: HttpRequest, asked: Gateway, whole: AsyncIterable<Uint8Array>) {
    async function* single(): AsyncGenerator<Uint8Array> {
      for await (const piece of whole) {
        for (const line of Buffer.from(piece)
          .toString()
          .split(/(?<=\n)/))
          yield Buffer.from(line);
      }
    }
    for await (const line of events(request, asked, single())) {
      yield line;
      const isCut = options.cutsTrees === true && random() < LINE_CUT_SHARE;
      if (isCut) note("a stream of a tree is cut");
      if (isCut && weather.faultShare > 0) throw broken("between two lines");
      if (isCut) return;
    }
  }

  async function effect(request: HttpRequest, body: RequestBody | undefined): Promise<GatewayAnswer> {
    const asked = gateway();
    const { method, path, query, headers } = request;
    const answer = await asked.handle({ method, path, query, headers, body });
    options.onAnswer(request, answer);
    if (gateway() !== asked) throw broken("the gateway was restarted");
    return answer;
  }

  async function exchange(request: HttpRequest, fault: Fault | undefined): Promise<HttpAnswer> {
    await way();
    if (weather.isOffline) throw broken("offline");
    if (options.lacksTrees === true && request.path === "/v1/tree") return problem(404, {});
    const { refusal } = weather;
    if (refusal !== undefined && isRefused(request, refusal)) return problem(refusal, {});
    switch (fault) {
      case "lost-before":
        throw broken("nothing was done");
      case "lost-during":
        effect(request, torn(streamed(request, way))).catch(() => undefined);
        throw broken("somewhere in between");
      case "failed":
        return problem(500, {});
      case "unauthorized":
        return problem(401, {});
      case "unavailable":
        return problem(503, {});
      case "throttled":
        return problem(429, { "retry-after": String(1 + Math.floor(random() * 3)) });
      case "throttled-long":
        return problem(429, { "retry-after": "3600" });
      case "unavailable-long":
        return problem(503, { "retry-after": "3600" });
      case "silent-before":
        return silence(request);
      case "late": {
        const body = await inFull(request);
        clock.setTimer(PATIENCE_MS + Math.floor(random() * LATE_MS), () => {
          note(`late: ${request.method} ${request.path}`);
          effect(request, body).catch(() => undefined);
        });
        return silence(request);
      }
    }
    const asked = gateway();
    const answer = await effect(fault === "range-ignored" ? withoutRange(request) : request, streamed(request, way));
    if (fault === "silent-after") return silence(request);
    await way();
    if (weather.isOffline || fault === "lost-after") throw broken("the answer is lost");
    if (answer.headers["content-type"] === NODE_LINES && answer.body?.kind === "bytes") {
      const { status, headers } = answer;
      return { status, headers, body: lines(request, asked, answer.body.stream) };
    }
    if (request.headers.accept === "text/event-stream" && answer.body?.kind === "bytes") {
      const stream = events(request, asked, answer.body.stream);
      const { status, headers } = answer;
      return { status, headers, body: (BODIES[fault ?? ""] ?? ((all) => all))(stream) };
    }
    return received(answer, fault === "slow-body" ? (whole) => inDrops(clock, whole) : BODIES[fault ?? ""]);
  }

  return {
    send(asked) {
      const request = options.tamper === undefined ? asked : options.tamper(asked);
      const drawn = random() < weather.faultShare ? faults[Math.floor(random() * faults.length)] : undefined;
      const chosen = options.choose?.(request) ?? drawn;
      const fault = chosen === "none" ? undefined : chosen;
      const line = `${request.method} ${request.path}${fault === undefined ? "" : ` (${fault})`}`;
      return new Promise((resolve, reject) => {
        // What happens to a dead process is that nothing happens.
        if (!isAlive()) return;
        const { isOffline, refusal } = weather;
        const isKept = refusal === undefined || !isRefused(request, refusal);
        options.onRequest?.(isOffline ? "offline" : isKept ? fault : refusal);
        const abort = () => reject(new RemoteError("aborted", "the call was aborted"));
        if (request.signal?.aborted === true) return abort();
        request.signal?.addEventListener("abort", abort, { once: true });
        exchange(request, fault)
          .then(
            (answer) => {
              note(`${line}: ${answer.status}`);
              if (isAlive()) resolve(answer);
            },
            (error: unknown) => {
              note(`${line}: ${error instanceof RemoteError ? error.code : String(error)}`);
              if (isAlive()) reject(error);
            },
          )
          .finally(() => request.signal?.removeEventListener("abort", abort));
      });
    },
    async close() {},
  };
}

/** The body as the gateway reads it: piece by piece, each as it is when it is read. */
function streamed(request: HttpRequest, way: () => Promise<void>): RequestBody | undefined {
  const { body, signal } = request;
  if (body === undefined) return undefined;
  if (body.kind === "json") return jsonBody(JSON.parse(JSON.stringify(body.value)));
  async function* pieces(content: UploadBody["content"]): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of content.read()) {
        await way();
        if (signal?.aborted === true) throw new Error("aborted");
        yield Uint8Array.from(piece);
      }
    } catch {
      throw invalid("file", "file: the body ended before its closing boundary");
    }
  }
  return parts(body, pieces(body.content));
}

/** The body all at once, as it is now: what lies in buffers on the way. */
async function inFull(request: HttpRequest): Promise<RequestBody | undefined> {
  const { body } = request;
  if (body === undefined) return undefined;
  if (body.kind === "json") return jsonBody(JSON.parse(JSON.stringify(body.value)));
  const pieces: Uint8Array[] = [];
  for await (const piece of body.content.read()) pieces.push(Uint8Array.from(piece));
  return parts(body, once(Buffer.concat(pieces)));
}

function parts(body: UploadBody, data: AsyncIterable<Uint8Array>): RequestBody {
  const metadata = Buffer.from(JSON.stringify(body.metadata));
  return {
    kind: "upload",
    parts: (async function* () {
      yield { name: "metadata", contentType: "application/json", filename: undefined, data: once(metadata) };
      yield { name: "file", contentType: body.contentType, filename: "file", data };
    })(),
  };
}

/** The content ends without an end. */
function torn(body: RequestBody | undefined): RequestBody | undefined {
  if (body?.kind !== "upload") return body;
  async function* halved(data: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of data) {
      yield piece.subarray(0, Math.floor(piece.length / 2));
      throw invalid("file", "file: the body ended before its closing boundary");
    }
  }
  const { parts: all } = body;
  return {
    kind: "upload",
    parts: (async function* () {
      for await (const part of all) yield part.name === "file" ? { ...part, data: halved(part.data) } : part;
    })(),
  };
}

function isRefused({ method, path }: HttpRequest, refusal: Refusal): boolean {
  if (refusal === 401) return true;
  if (refusal === 403) return path.startsWith("/v1/nodes") || path.startsWith("/v1/files");
  return path.startsWith("/v1/files") || (method === "PUT" && path.endsWith("/content"));
}

function withoutRange(request: HttpRequest): HttpRequest {
  const { range: _, ...headers } = request.headers;
  return { ...request, headers };
}

type Change = (whole: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;

const BODIES: Readonly<Record<string, Change>> = {
  "broken-body": (whole) => brokenOff(whole),
  "short-body": (whole) => shortened(whole),
};

function received({ status, headers, body }: GatewayAnswer, change: Change | undefined): HttpAnswer {
  const whole =
    body === undefined ? once(Buffer.alloc(0)) : body.kind === "json" ? once(Buffer.from(body.text)) : body.stream;
  return { status, headers, body: change === undefined ? whole : change(whole) };
}

function problem(status: number, headers: Record<string, string>): HttpAnswer {
  const text = JSON.stringify({ status, title: "on purpose" });
  return { status, headers: { "content-type": "application/problem+json", ...headers }, body: once(Buffer.from(text)) };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

async function* brokenOff(whole: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of whole) {
    yield piece.subarray(0, Math.floor(piece.length / 2));
    break;
  }
  throw new RemoteError("offline", "the connection broke in the body");
}

async function* shortened(whole: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of whole) {
    yield piece.subarray(0, Math.floor(piece.length / 2));
    return;
  }
}

async function* inDrops(clock: Clock, whole: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of whole) {
    await sleep(clock, DROP_MS);
    yield piece;
  }
}
