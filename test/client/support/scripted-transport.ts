/** A gateway without sockets whose every answer a test scripts, and `connect` on it with a virtual clock. */
import { onTestFinished } from "vitest";
import { type ConnectOptions, connect, type Gateway } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import type { HttpAnswer, HttpRequest, Transport } from "../../../src/contract/http.ts";
import { millisecondsOf, minus } from "../../../src/lib/clocks.ts";
import { createVirtualClock, type VirtualClock } from "../../support/virtual-clock.ts";

/** What becomes of a request: an answer, or what the transport rejects with. */
export type Step = (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;

export interface Scripted {
  readonly gateway: Gateway;
  readonly clock: VirtualClock;
  /** Requests so far, in order. */
  readonly requests: HttpRequest[];
  /** `elapsed` of the clock at each. */
  readonly times: number[];
  /** The promise's result; the clock moves on to the next timer whenever nothing else is left to do. */
  run<T>(promise: Promise<T>): Promise<T>;
}

/** One step for each request; the last one for all that follow. */
export function scripted(steps: readonly Step[], options: Partial<ConnectOptions> & { seed?: number } = {}): Scripted {
  const { seed, ...connected } = options;
  const clock = createVirtualClock(seed);
  const requests: HttpRequest[] = [];
  const times: number[] = [];
  const transport: Transport = {
    async send(request) {
      if (request.signal?.aborted === true) throw new RemoteError("aborted", "the call was aborted");
      const step = steps[Math.min(requests.length, steps.length - 1)];
      requests.push(request);
      times.push(millisecondsOf(clock.elapsed()));
      if (step === undefined) throw new Error("no step is scripted");
      return step(request);
    },
    async close() {},
  };
  const gateway = connect({
    baseUrl: "http://scripted.invalid",
    credentials: staticToken("token"),
    transport,
    clock,
    ...connected,
  });
  onTestFinished(() => gateway.close());
  return { gateway, clock, requests, times, run: (promise) => drive(clock, promise) };
}

export async function drive<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = promise.finally(() => {
    isSettled = true;
  });
  settled.catch(() => {});
  while (!isSettled) {
    await clock.settle();
    const next = clock.nextTimer();
    if (!isSettled && next !== undefined) await clock.advance(Math.max(0, minus(next, clock.elapsed())));
  }
  return settled;
}

export async function* chunksOf(...chunks: readonly (Uint8Array | string)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}): Step {
  return () => ({ status, headers, body: chunksOf(JSON.stringify(value)) });
}

/** The connection breaks; `unsent`: before anything went out. */
export function broken(code: "offline" | "silent" = "offline", unsent = false): Step {
  return () => {
    throw new RemoteError(code, "broken on purpose", unsent ? { isUnsent: true } : {});
  };
}

/** The idempotency key of a request, wherever it stands. */
export function keyOf({ body, query }: HttpRequest): unknown {
  const value: unknown = body === undefined ? query : body.kind === "json" ? body.value : body.metadata;
  return typeof value === "object" && value !== null && "idempotencyKey" in value ? value.idempotencyKey : undefined;
}
