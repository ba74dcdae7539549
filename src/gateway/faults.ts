/**
 * Misbehaviour on purpose, as fault-options.ts describes it: answers that wait, requests that fail before, during or
 * after their effect, bodies that are slow or break off. Chance and time come from the clock, so that the same seed
 * meets the same faults. This module does not know the purpose of a request.
 */
import type { OperationName } from "../contract/operations.ts";
import { deferred } from "../lib/deferred.ts";
import { type Clock, sleep } from "../lib/runtime.ts";
import type { GatewayAnswer, GatewayRequest, Part, RequestBody } from "./exchange.ts";
import { FAULTS, type Fault, type FaultOptions } from "./fault-options.ts";
import { ProblemError } from "./problems.ts";

/** The connection breaks: there is no answer, or no more of it. */
export class ConnectionReset extends Error {
  /** True if the part of the answer that was sent has to arrive. */
  readonly isPartial: boolean;

  constructor(when: string, isPartial = false) {
    super(`The connection is reset on purpose, ${when}.`);
    this.name = "ConnectionReset";
    this.isPartial = isPartial;
  }
}

interface FaultyRequest {
  readonly operation: OperationName;
  readonly request: GatewayRequest;
  readonly answer: (request: GatewayRequest) => Promise<GatewayAnswer>;
  /** Receives work that goes on after the connection of its caller was broken. */
  readonly inBackground: (work: Promise<unknown>) => void;
}

/** Handles a request with the faults of the options. Half of the latency comes before the effect, half after it. */
export async function withFaults(
  options: Readonly<FaultOptions>,
  clock: Clock,
  { operation, request, answer, inBackground }: FaultyRequest,
): Promise<GatewayAnswer> {
  const fault = drawFault(options, clock, operation);
  const latency = options.latencyMs + (options.latencyJitterMs > 0 ? clock.random() * options.latencyJitterMs : 0);
  if (latency > 0) await sleep(clock, latency / 2);
  const paced = { ...request, body: slowUpload(clock, request.body, options.uploadBytesPerSecond) };
  switch (fault) {
    case "error":
      throw new ProblemError(500, "Failed on purpose, nothing was done.");
    case "unavailable":
      throw new ProblemError(503, "Unavailable on purpose, nothing was done.");
    case "throttled":
      throw new ProblemError(429, "Too many requests, on purpose; nothing was done.", {
        headers: { "retry-after": String(options.retryAfterSeconds) },
      });
    case "resetBefore":
      throw new ConnectionReset("before the effect");
    case "resetDuring": {
      const { body, received } = untilReceived(paced.body);
      const work = answer({ ...paced, body });
      inBackground(work);
      await Promise.race([received, work]);
      throw new ConnectionReset("during the effect");
    }
    case "truncatedUpload":
      if (paced.body?.kind !== "upload") throw new ConnectionReset("before the effect");
      return answer({ ...paced, body: truncatedUpload(clock, request, paced.body.parts) });
  }
  const result = await answer(fault === "ignoredRange" ? withoutRange(paced) : paced);
  if (latency > 0) await sleep(clock, latency / 2);
  if (fault === "resetAfter") throw new ConnectionReset("after the effect");
  const shown = slowAnswer(clock, result, options.downloadBytesPerSecond);
  return fault === "truncatedAnswer" ? truncatedAnswer(clock, shown) : shown;
}

/** Draws once for a request, and not at all when no fault is configured: then the other draws stay the same. */
function drawFault(
  { failRate, faults }: Readonly<FaultOptions>,
  clock: Clock,
  operation: OperationName,
): Fault | undefined {
  const all = faults.all;
  const own = faults[operation];
  if (failRate === 0 && all === undefined && own === undefined) return undefined;
  const shares: Partial<Record<Fault, number | undefined>> = {
    ...all,
    ...own,
  };
  const third = failRate / 3;
  for (const fault of ["unavailable", "resetBefore", "resetAfter"] as const) {
    if (third > 0) shares[fault] = (shares[fault] ?? 0) + third;
  }
  let roll = clock.random();
  for (const fault of FAULTS) {
    roll -= shares[fault] ?? 0;
    if (roll < 0) return fault;
  }
  return undefined;
}

function withoutRange(request: GatewayRequest): GatewayRequest {
  return { ...request, headers: { ...request.headers, range: undefined } };
}

/** Returns the body, and a promise that resolves when all of it has been read. */
function untilReceived(body: RequestBody | undefined): { body: RequestBody | undefined; received: Promise<void> } {
  if (body === undefined || body.kind === "other") return { body, received: Promise.resolve() };
  const { promise: received, resolve: done } = deferred<void>();
  if (body.kind === "json")
    return { body: { kind: "json", read: (limit) => body.read(limit).finally(done) }, received };
  async function* all(parts: AsyncIterable<Part>): AsyncGenerator<Part> {
    try {
      yield* parts;
    } finally {
      done();
    }
  }
  return { body: { kind: "upload", parts: all(body.parts) }, received };
}

type Bytes = AsyncIterable<Uint8Array>;

/** Applies `change` to the content; the metadata stays. */
async function* changedContent(parts: AsyncIterable<Part>, change: (data: Bytes) => Bytes): AsyncGenerator<Part> {
  for await (const part of parts) {
    yield part.name === "file" ? { ...part, data: change(part.data), bytes: undefined } : part;
  }
}

function slowUpload(clock: Clock, body: RequestBody | undefined, bytesPerSecond: number): RequestBody | undefined {
  if (body?.kind !== "upload" || bytesPerSecond === 0) return body;
  return { kind: "upload", parts: changedContent(body.parts, (data) => paced(clock, data, bytesPerSecond)) };
}

/** Assumed length of a body whose length is unknown. */
const GUESSED_BYTES = 64 * 1024;

function truncatedUpload(clock: Clock, { headers }: GatewayRequest, parts: AsyncIterable<Part>): RequestBody {
  const known = Number(headers["content-length"] ?? Number.NaN);
  const length = Number.isFinite(known) ? known : GUESSED_BYTES;
  const end = Math.floor(clock.random() * length);
  return { kind: "upload", parts: changedContent(parts, (data) => cut(data, end, "within the content")) };
}

function bytesOf(answer: GatewayAnswer): Bytes | undefined {
  if (answer.body === undefined) return undefined;
  return answer.body.kind === "bytes" ? answer.body.stream : only(Buffer.from(answer.body.text));
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function slowAnswer(clock: Clock, answer: GatewayAnswer, bytesPerSecond: number): GatewayAnswer {
  const bytes = bytesPerSecond === 0 ? undefined : bytesOf(answer);
  if (bytes === undefined) return answer;
  return { ...answer, body: { kind: "bytes", stream: paced(clock, bytes, bytesPerSecond) } };
}

function truncatedAnswer(clock: Clock, answer: GatewayAnswer): GatewayAnswer {
  const bytes = bytesOf(answer);
  if (bytes === undefined) throw new ConnectionReset("after the effect");
  const known = Number(answer.headers["content-length"] ?? Number.NaN);
  const end = Math.floor(clock.random() * (Number.isFinite(known) ? known : GUESSED_BYTES));
  return { ...answer, body: { kind: "bytes", stream: cut(bytes, end, "within the answer") } };
}

/** Breaks off before byte `end`, or after the last byte when there are fewer. */
async function* cut(data: Bytes, end: number, where: string): AsyncGenerator<Uint8Array> {
  let rest = end;
  for await (const chunk of data) {
    if (rest > 0) yield chunk.subarray(0, rest);
    rest -= chunk.length;
    if (rest <= 0) break;
  }
  throw new ConnectionReset(where, true);
}

/** Pieces are so small that none takes longer than this. */
const PACE_MS = 50;

async function* paced(clock: Clock, data: Bytes, bytesPerSecond: number): AsyncGenerator<Uint8Array> {
  const size = Math.max(1, Math.floor((bytesPerSecond * PACE_MS) / 1000));
  for await (const chunk of data) {
    for (let start = 0; start < chunk.length; start += size) {
      const piece = chunk.subarray(start, start + size);
      await sleep(clock, (piece.length / bytesPerSecond) * 1000);
      yield piece;
    }
  }
}
