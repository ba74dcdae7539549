/**
 * The transport over the network, with small changes on a thread of their own. So the HTTP of many small files does not
 * burden the thread that answers programs, and small changes go out while that thread is busy. Reads stay on this
 * thread, because programs wait for them here. Bulk stays too: handing its bytes over would cost more than it saves.
 * This file knows no operation and no token; HTTP is in http-transport.ts.
 */
import type { Worker } from "node:worker_threads";
import type { ContentSource, HttpAnswer, HttpRequest, Transport } from "../contract/http.ts";
import { deferred } from "../lib/deferred.ts";
import { unlessAborted } from "../lib/single-flight.ts";
import { RemoteError } from "./errors.ts";
import { createHttpTransport, type HttpTransportOptions } from "./http-transport.ts";
import { unreadable } from "./multipart.ts";
import { createOutbox, type Post } from "./outbox.ts";
import {
  type CarriedError,
  type CarriedRequest,
  FORMAT,
  type FromThread,
  type Outcome,
  requestOf,
  type ThreadOptions,
  type ToThread,
  unpackError,
} from "./thread-messages.ts";
import { joined } from "./whole-body.ts";

/** Content of at most this size is small. */
const SMALL_BYTES = 256 * 1024;

interface ThreadTransportOptions extends HttpTransportOptions {
  /** Starts client/http-thread with this data. Called with the first small change. May throw. */
  readonly startThread: (data: ThreadOptions) => Worker;
}

interface Thread {
  readonly worker: Worker;
  readonly post: Post<ToThread>;
  /** Requests without an answer. */
  readonly open: Map<number, (outcome: Outcome) => void>;
  /** Resolves when the thread is closed or gone. */
  readonly ended: Promise<void>;
}

/**
 * Like `createHttpTransport`, but each of the two threads may have that many connections. When the thread ends by
 * itself, all its requests fail with "offline". From then on, and if no thread can be started, this thread sends
 * everything.
 */
export function createThreadTransport(options: ThreadTransportOptions): Transport {
  const { startThread, ...data } = options;
  const here = createHttpTransport(data);
  let thread: Thread | undefined;
  let isLost = false;
  let isClosed = false;
  let lastId = 0;

  function start(): Thread {
    const worker = startThread({ ...data, format: FORMAT });
    const open: Thread["open"] = new Map();
    const ending = deferred<void>();
    let why: unknown;
    worker.unref();
    worker.on("message", (batch: readonly FromThread[]) => {
      for (const message of batch) {
        if (message.tell === "closed") ending.resolve();
        else open.get(message.id)?.(message);
      }
    });
    worker.on("error", (error) => {
      why = error;
    });
    worker.once("exit", (code) => {
      isLost = true;
      lose(open, why ?? new Error(`exit code ${code}`));
      ending.resolve();
    });
    return { worker, post: createOutbox<ToThread>(worker), open, ended: ending.promise };
  }

  async function send(request: HttpRequest): Promise<HttpAnswer> {
    if (isLost || !isSmallChange(request)) return here.send(request);
    const carried = await carriedOf(request);
    if (isClosed) throw new RemoteError("aborted", "the client was closed", { isUnsent: true });
    if (request.signal?.aborted === true) throw aborted(request.signal);
    try {
      thread ??= start();
    } catch {
      isLost = true;
    }
    // The copy is sent, because some content can be read only once.
    if (thread === undefined || isLost) return here.send({ ...request, ...requestOf(carried) });
    return carry(thread, carried, request.signal);
  }

  function carry(
    { worker, post, open }: Thread,
    request: CarriedRequest,
    signal: AbortSignal | undefined,
  ): Promise<HttpAnswer> {
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      const onAbort = () => post({ tell: "abort", id });
      const settle = (outcome: Outcome) => {
        signal?.removeEventListener("abort", onAbort);
        open.delete(id);
        // `close` waits for the thread, so it must keep the process alive until then.
        if (open.size === 0 && !isClosed) worker.unref();
        if (outcome.tell === "answer") {
          const { content, broken, ...answer } = outcome.answer;
          resolve({ ...answer, body: bodyOf(content, broken === undefined ? undefined : errorOf(broken, signal)) });
        } else reject(errorOf(outcome.error, signal));
      };
      if (open.size === 0) worker.ref();
      open.set(id, settle);
      signal?.addEventListener("abort", onAbort, { once: true });
      const own = request.body?.kind === "upload" ? request.body.content.buffer : undefined;
      post({ tell: "request", id, request }, own);
    });
  }

  return {
    send,
    async close() {
      isClosed = true;
      const ending = here.close();
      if (thread !== undefined) {
        thread.worker.ref();
        thread.post({ tell: "close" });
        await thread.ended;
        thread.worker.unref();
      }
      await ending;
    },
  };
}

function isSmallChange({ method, body }: HttpRequest): boolean {
  if (method === "GET") return false;
  if (body?.kind !== "upload") return true;
  const { size } = body.content;
  return size !== undefined && size <= SMALL_BYTES;
}

async function carriedOf({ body, signal, ...request }: HttpRequest): Promise<CarriedRequest> {
  if (body === undefined || body.kind === "json") return body === undefined ? request : { ...request, body };
  const { content, ...rest } = body;
  const reading = readAll(content);
  const bytes = await (signal === undefined ? reading : unlessAborted(reading, signal, () => aborted(signal)));
  return { ...request, body: { ...rest, size: content.size, content: bytes } };
}

async function readAll(content: ContentSource): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of content.read()) {
      chunks.push(chunk);
      length += chunk.length;
      // The content has grown. The rest is not needed: content of another size than announced is refused.
      if (length > (content.size ?? length)) break;
    }
  } catch (error) {
    const { code, message, details } = unreadable(error);
    throw new RemoteError(code, message, { ...details, isUnsent: true });
  }
  return joined(chunks);
}

async function* bodyOf(content: Uint8Array, error: Error | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  if (content.length > 0) yield content;
  if (error !== undefined) throw error;
}

/** A caller that aborted gets its own reason back. */
function errorOf(carried: CarriedError, signal: AbortSignal | undefined): Error {
  const isOurs = carried.code === "aborted" && signal?.aborted === true;
  return unpackError(carried, isOurs ? signal.reason : undefined);
}

function aborted(signal: AbortSignal): RemoteError {
  return new RemoteError("aborted", "the call was aborted", { isUnsent: true, cause: signal.reason });
}

/** Fails all open requests. It is unknown whether they took effect. */
function lose(open: Thread["open"], why: unknown): void {
  const reason = why instanceof Error ? why.message : String(why);
  const message = `the thread of the small changes has ended: ${reason}`;
  const error = { name: "RemoteError", message, code: "offline", details: {} };
  for (const [id, settle] of [...open]) settle({ tell: "failure", id, error });
}
