/**
 * One request and its answer on an undici pool: the phases with their limits on silence, backpressure in both
 * directions, and the error when it fails. undici's own time limits are off, because they take a slow chunk for
 * silence. This file knows no operation and no token.
 */
import type { Dispatcher } from "undici";
import type { HttpAnswer } from "../contract/http.ts";
import { createBodyQueue } from "./body-queue.ts";
import { RemoteError } from "./errors.ts";
import { watchSilence } from "./silence.ts";

/** All in milliseconds. */
export interface ExchangeLimits {
  /** Until a connection exists. */
  readonly connect: number;
  /** While sending a streamed body: until the connection takes the next piece. */
  readonly send: number;
  /** From the end of the request to the head of the answer. */
  readonly answer: number;
  /** Between bytes of the answer. */
  readonly receive: number;
  /** This many bytes of the answer, or its end, must arrive within `receive`; fewer count as silence. Default 1. */
  readonly least?: number;
}

/** The activity on the connections of a pool. */
export interface PoolActivity {
  /** The time when data last moved on any of them, by `performance.now()`. */
  last: number;
  /** Requests that have a connection. */
  underWay: number;
  /** The largest number of connections. */
  readonly most: number;
}

export interface ExchangeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | AsyncGenerator<Uint8Array, void, undefined>;
  /** Size of a streamed body in bytes. */
  readonly size?: number | undefined;
  readonly signal?: AbortSignal;
  /**
   * Set where the connection overwrites a chunk after the turn in which it came. lent: the reader is done with a chunk
   * by then. copied: the reader gets copies.
   */
  readonly chunks?: "lent" | "copied" | undefined;
}

/** The connection takes pieces of this size. Each piece is a sign of life on a slow link. */
const PIECE_BYTES = 64 * 1024;

export function exchange(
  pool: Pick<Dispatcher, "dispatch">,
  activity: PoolActivity,
  request: ExchangeRequest,
  limits: ExchangeLimits,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { signal } = request;
    let controller: Dispatcher.DispatchController | undefined;
    let isOver = false;
    let isAnswered = false;
    let isPaused = false;
    let received = 0;

    const move = () => {
      activity.last = performance.now();
    };
    const silence = watchSilence((milliseconds, event) => {
      // Without a connection, this request only waits for its turn while others are served, or while they hold all
      // connections: those have limits of their own.
      const isServing = activity.underWay >= activity.most || performance.now() - activity.last < milliseconds;
      if (controller === undefined && isServing) {
        silence.expect(milliseconds, event);
        return;
      }
      const code = controller === undefined ? "offline" : "silent";
      fail(new RemoteError(code, `no ${event} within ${milliseconds / 1000} s`));
    });
    const settle = () => {
      isOver = true;
      if (controller !== undefined) activity.underWay -= 1;
      silence.pause();
      signal?.removeEventListener("abort", onAbort);
    };
    const fail = (reason: RemoteError) => {
      if (isOver) return;
      settle();
      const error = controller === undefined ? unsent(reason) : reason;
      reject(error);
      queue.fail(error);
      controller?.abort(error);
      void outgoing?.return();
    };
    const onAbort = () => fail(new RemoteError("aborted", "the call was aborted", { cause: signal?.reason }));

    const queue = createBodyQueue({
      onLow() {
        if (isOver) return;
        isPaused = false;
        silence.expect(limits.receive, "byte of the answer");
        controller?.resume();
      },
      onReturn: () => fail(new RemoteError("aborted", "the answer was not read to its end")),
    });

    async function* pieces(body: AsyncGenerator<Uint8Array, void, undefined>) {
      for await (const chunk of body) {
        if (isOver) return;
        for (let start = 0; start < chunk.length; start += PIECE_BYTES) {
          if (!isAnswered) silence.expect(limits.send, "progress in sending");
          // Continues when the connection wants more.
          yield chunk.subarray(start, start + PIECE_BYTES);
          move();
          if (isOver) return;
        }
        // The next chunk comes from the local disk, which has no limit.
        if (!isAnswered) silence.pause();
      }
      if (!isAnswered && !isOver) silence.expect(limits.answer, "answer to what was sent");
    }
    const source = request.body === undefined || request.body instanceof Uint8Array ? undefined : request.body;
    // A body that fits one piece is gathered first, so that it goes out together with the request's head.
    const isShort = request.size !== undefined && request.size <= PIECE_BYTES;
    const outgoing = source === undefined || isShort ? source : pieces(source);

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        // The request was given up while it waited for a connection. Throwing drops it and keeps the connection;
        // abort() would not.
        if (isOver) throw new RemoteError("aborted", "the call was given up");
        if (controller === undefined) activity.underWay += 1;
        controller = started;
        if (isShort) silence.expect(limits.answer, "answer to what was sent");
        else silence.expect(outgoing === undefined ? limits.answer : limits.send, "answer");
      },
      onResponseStart(_, status, headers) {
        // An interim answer does not count: a gateway could send such answers for ever.
        if (status < 200) return;
        move();
        isAnswered = true;
        silence.expect(limits.receive, "byte of the answer");
        resolve({ status, headers: flatten(headers), body: queue.bytes });
      },
      onResponseData(started, chunk) {
        move();
        received += chunk.length;
        if (received >= (limits.least ?? 1)) {
          received = 0;
          silence.heard();
        }
        const isKept = request.chunks === "copied" || (request.chunks === "lent" && !queue.isReaderWaiting());
        if (queue.push(isKept ? Buffer.from(chunk) : chunk) || isPaused) return;
        isPaused = true;
        silence.pause();
        started.pause();
      },
      onResponseEnd() {
        if (isOver) return;
        settle();
        queue.end();
        void outgoing?.return();
      },
      onResponseError(_, error) {
        fail(transportError(error));
      },
    };

    if (signal?.aborted === true) {
      onAbort();
      return;
    }
    signal?.addEventListener("abort", onAbort, { once: true });
    const dispatch = (body: unknown) => {
      if (isOver) return;
      silence.expect(limits.connect, "connection");
      const options = {
        method: request.method,
        path: request.path,
        headers: { ...request.headers },
        body: dispatchBody(body),
        headersTimeout: 0,
        bodyTimeout: 0,
      };
      try {
        pool.dispatch(options, handler);
      } catch (error) {
        fail(transportError(error instanceof Error ? error : new Error(String(error))));
      }
    };
    if (outgoing === undefined || !isShort) dispatch(outgoing ?? request.body);
    else gather(outgoing).then(dispatch, (error: Error) => fail(transportError(error)));
  });
}

async function gather(body: AsyncGenerator<Uint8Array, void, undefined>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Adds `isUnsent` to the error: no connection took the request. */
function unsent(error: RemoteError): RemoteError {
  return new RemoteError(error.code, error.message, { ...error.details, isUnsent: true });
}

function dispatchBody(body: unknown): NonNullable<Dispatcher.DispatchOptions["body"]> | null {
  // undici accepts any async iterable; its types know only streams.
  return body === undefined ? null : (body as NonNullable<Dispatcher.DispatchOptions["body"]>);
}

function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}

function transportError(error: Error): RemoteError {
  if (error instanceof RemoteError) return error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  // A failed connection to several addresses is an AggregateError, whose message is empty.
  const reason = error.message === "" ? code : error.message;
  if (code === "UND_ERR_DESTROYED" || code === "UND_ERR_CLOSED") {
    return new RemoteError("aborted", "the client was closed", { cause: error });
  }
  if (error.name === "HTTPParserError" || code === "UND_ERR_HEADERS_OVERFLOW") {
    return new RemoteError("malformed", `the answer is not HTTP: ${reason}`, { cause: error });
  }
  if (code === "UND_ERR_INVALID_ARG") return new RemoteError("invalid", reason, { cause: error });
  return new RemoteError("offline", reason, { cause: error });
}
