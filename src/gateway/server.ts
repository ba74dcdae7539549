/**
 * HTTP around the core: bodies and answers as streams, limits on silence, one log line per request. The core does the
 * routing and makes every decision.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import fastify from "fastify";
import { withoutApiKeys } from "../contract/api-keys.ts";
import { minus } from "../lib/clocks.ts";
import type { Logger } from "../lib/log.ts";
import { type Clock, sleep } from "../lib/runtime.ts";
import type { Gateway } from "./core.ts";
import { createDocs, type Docs, isDocs } from "./docs.ts";
import { type GatewayAnswer, type GatewayRequest, jsonAnswer, type RequestBody } from "./exchange.ts";
import { ConnectionReset } from "./faults.ts";
import { parseJson } from "./json.ts";
import { answerMalformed } from "./malformed.ts";
import { multipartBoundary, readParts } from "./multipart.ts";
import { misdirected, ownNames } from "./own-names.ts";
import { OWNER_PREFIX } from "./owner-calls.ts";
import { breakSilentPeers, type PeerWatch } from "./peers.ts";
import { failed, invalid, ProblemError, tooLarge } from "./problems.ts";
import { parseQuery } from "./query.ts";
import { isSignIn, type SignIn } from "./sign-in/index.ts";
import { openUnixListener, type UnixListener } from "./unix-listener.ts";
import { WITHOUT_SCHEMAS } from "./without-schemas.ts";

const KEEP_ALIVE_MS = 65_000;
/** At close, running answers may take this long. */
const CLOSE_MS = 3000;
/** Time after that for work of connections that are gone. */
const WORK_ENDS_MS = 1000;
const IDLE_POLL_MS = 50;
/** The unread rest of a body of at most this size (its Content-Length) is skipped, and the connection stays open. */
const SMALL_BODY_BYTES = 64 * 1024;
/** The limit for reading an unwanted body, so that the client sees the answer instead of a reset. */
const LINGER_BYTES = 16 * 1024 * 1024;
const LINGER_MS = 1000;
/** The limit for reading after malformed input, so that its sender sees the answers instead of a reset. */
const GARBAGE_BYTES = 1024 * 1024;
const LONG_TEXT = 16 * 1024;
const CORE_PREFIX = "/v1/";

interface Server {
  readonly baseUrl: string;
  readonly port: number;
  /** True if the requested Unix socket exists. */
  readonly hasSocket: boolean;
  close(): Promise<void>;
}

/** The limits on a client's silence, in milliseconds. A moving transfer, and the gateway itself, may take any time. */
export interface Silence {
  /** From the beginning of a request to the end of its headers. */
  readonly headersMs: number;
  /** Within a body or an answer. */
  readonly bodyMs: number;
  /** Between two requests. */
  readonly keepAliveMs?: number;
}

const SILENCE: Silence = { headersMs: 30_000, bodyMs: 60_000 };
/** The number of checks for overdue headers within `headersMs`. */
const HEADER_CHECKS = 6;

interface ServerOptions {
  readonly gateway: Gateway;
  /** Called with the address of the gateway, once that is known. Absent: people cannot sign in. */
  readonly signInAt?: (baseUrl: string) => SignIn;
  readonly clock: Clock;
  readonly host: string;
  /** Names of the gateway besides its addresses. */
  readonly names?: readonly string[];
  /** 0: any free port. */
  readonly port: number;
  /** Also listens on a Unix socket at this path, which only the owner may use. */
  readonly socketPath?: string;
  /** Answers requests that come by that socket, at paths below OWNER_PREFIX. Others find nothing at these paths. */
  readonly owner?: (request: GatewayRequest) => Promise<GatewayAnswer>;
  readonly log: Logger;
  readonly silence?: Silence;
}

/** Resolves once the server listens. Rejects with the system's error if it cannot, such as EADDRINUSE or EACCES. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { gateway, clock, host, names = [], port, log, silence = SILENCE } = options;
  const isOwn = ownNames([host, ...names]);
  let listener: UnixListener | undefined;
  /** Returns the handler for requests of a connection. */
  const handlerFor = (incoming: IncomingMessage, path: string): Handler =>
    options.owner !== undefined && path.startsWith(OWNER_PREFIX) && listener?.has(incoming.socket) === true
      ? options.owner
      : (request) => gateway.handle(request);
  let signIn: SignIn | undefined;
  const active = new Set<Promise<void>>();
  const docs = gateway.openApi === undefined ? undefined : createDocs(gateway.openApi);
  let peers: PeerWatch | undefined;
  const begin = async (request: IncomingMessage, response: ServerResponse) => {
    peers?.begin(request, response);
    const work = answer({ handlerFor, docs, signIn, isOwn, clock, log }, request, response);
    active.add(work);
    await work;
    active.delete(work);
  };
  const serve = async (request: { raw: IncomingMessage }, reply: { raw: ServerResponse; hijack(): unknown }) => {
    reply.hijack();
    await begin(request.raw, reply.raw);
  };
  /** Connections that sent malformed input, and how much had been read by then. */
  const malformed = new WeakMap<Socket, number>();
  const app = fastify({
    logger: false,
    schemaController: WITHOUT_SCHEMAS,
    clientErrorHandler(error, socket) {
      const before = malformed.get(socket);
      if (before === undefined) {
        malformed.set(socket, socket.bytesRead);
        peers?.whenAnswered(socket, () => answerMalformed(error, socket));
        // Called again for each piece that follows, while an earlier answer is being sent.
      } else if (socket.bytesRead - before > GARBAGE_BYTES) socket.pause();
    },
    frameworkErrors: (_error, request, reply) => void serve(request, reply),
    serverFactory(handler) {
      const checks = { connectionsCheckingInterval: Math.ceil(silence.headersMs / HEADER_CHECKS) };
      // The answers of the core do not need the framework.
      const server = createServer(checks, (request, response) => {
        if (request.url?.startsWith(CORE_PREFIX) === true) void begin(request, response);
        else handler(request, response);
      });
      server.requestTimeout = 0;
      // Each request that waits for its turn listens for the end of its connection.
      server.on("connection", (socket) => {
        socket.setMaxListeners(0);
        // Once read, the address stays known after the connection has ended.
        void socket.localAddress;
      });
      peers = breakSilentPeers(server, silence.bodyMs);
      server.keepAliveTimeout = silence.keepAliveMs ?? KEEP_ALIVE_MS;
      server.headersTimeout = silence.headersMs;
      return server;
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  app.all("/*", serve);
  app.setNotFoundHandler(serve);
  app.setErrorHandler((error, _request, reply) => {
    const status = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 500;
    const problem = new ProblemError(status, error instanceof Error ? error.message : "The request failed.");
    void reply.code(status).type("application/problem+json").send(JSON.stringify(problem.document));
  });
  await app.listen({ host, port });
  const address = app.server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  const { socketPath } = options;
  const opening = socketPath === undefined ? undefined : openUnixListener(socketPath, app.server);
  listener = await opening?.catch((error: unknown) => {
    log.error({ err: error }, "the Unix socket cannot be made: only the port leads here");
    return undefined;
  });
  const baseUrl = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
  signIn = options.signInAt?.(baseUrl);
  return {
    baseUrl,
    port: address.port,
    hasSocket: listener !== undefined,
    async close() {
      const deadline = clock.setTimer(CLOSE_MS, () => app.server.closeAllConnections());
      // A connection whose answer was just sent becomes idle only a moment later.
      let poll = clock.setTimer(0, function closeIdle() {
        app.server.closeIdleConnections();
        poll = clock.setTimer(IDLE_POLL_MS, closeIdle);
      });
      await Promise.all([app.close(), listener?.close()]);
      deadline.cancel();
      poll.cancel();
      await Promise.race([Promise.all(active), sleep(clock, WORK_ENDS_MS)]);
    },
  };
}

type Handler = (request: GatewayRequest) => Promise<GatewayAnswer>;

interface Serving {
  readonly handlerFor: (incoming: IncomingMessage, path: string) => Handler;
  readonly docs: Docs | undefined;
  readonly signIn: SignIn | undefined;
  readonly isOwn: (incoming: IncomingMessage) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

async function answer(
  { handlerFor, docs, signIn, isOwn, clock, log }: Serving,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const start = clock.elapsed();
  const url = incoming.url ?? "/";
  const mark = url.indexOf("?");
  const path = mark === -1 ? url : url.slice(0, mark);
  const method = incoming.method ?? "GET";
  const search = mark === -1 ? "" : url.slice(mark + 1);
  const shownPath = withoutApiKeys(path);
  const sent = { status: 0, bytes: 0 };
  let broken = false;
  // The id is made here: an id from outside could name another request's line of the log.
  const requestId = clock.uuid();
  response.setHeader("x-request-id", requestId);
  try {
    const isForUs = isOwn(incoming);
    if (docs !== undefined && isDocs(path) && isForUs) Object.assign(sent, await docs(incoming, response));
    else if (signIn !== undefined && isSignIn(path) && isForUs) {
      Object.assign(sent, await signIn(incoming, response, path));
    } else {
      const result = isForUs
        ? await handle(handlerFor(incoming, path), incoming, method, path, search)
        : misdirected(incoming.headers.host ?? "");
      sent.status = result.status;
      await send(clock, incoming, response, result, sent);
    }
  } catch (error) {
    if (error instanceof Unreadable)
      log.error({ err: error.cause, method, path: shownPath }, "an answer's content cannot be read");
    else log.debug({ err: error, method, path: shownPath }, "connection broken off");
    if (error instanceof Unreadable && !response.headersSent) {
      const { status, document } = failed();
      Object.assign(sent, { status, bytes: 0 });
      await send(clock, incoming, response, jsonAnswer(status, document), sent).catch(() => {});
    } else {
      // No answer is possible any more: a deliberate fault, a client that went away, or content that cannot be read.
      broken = true;
      if (error instanceof ConnectionReset && error.isPartial && response.headersSent) incoming.socket.destroySoon();
      else incoming.socket.resetAndDestroy();
    }
  }
  const ms = Math.round(minus(clock.elapsed(), start) * 10) / 10;
  const query = search === "" ? {} : { query: withoutSecrets(search) };
  log.info({ method, path: shownPath, ...query, ...sent, ms, requestId, ...(broken ? { broken } : {}) }, "request");
}

/** A token does not belong in a query, but clients put it there. */
function withoutSecrets(search: string): string {
  return withoutApiKeys(search).replace(/((?:^|&)[^=&]*(?:token|secret|password|authorization)[^=&]*=)[^&]*/gi, "$1…");
}

async function handle(
  handler: Handler,
  incoming: IncomingMessage,
  method: string,
  path: string,
  search: string,
): Promise<GatewayAnswer> {
  let request: GatewayRequest;
  try {
    const headers = plainHeaders(incoming);
    // Only GET answers parts (RFC 9110 §14.2).
    if (method === "HEAD") headers.range = undefined;
    request = {
      method: method === "HEAD" ? "GET" : method,
      path,
      query: parseQuery(search),
      headers,
      body: bodyOf(incoming),
    };
  } catch (error) {
    if (error instanceof ProblemError) return jsonAnswer(error.status, error.document);
    throw error;
  }
  const answer = await handler(request);
  return method === "HEAD" ? withoutBody(answer) : answer;
}

/** The answer to HEAD (RFC 9110 §9.3.2): that to GET without its body. */
async function withoutBody({ status, headers, body }: GatewayAnswer): Promise<GatewayAnswer> {
  if (body?.kind === "bytes") await body.stream[Symbol.asyncIterator]().return?.();
  return { status, headers };
}

function plainHeaders(incoming: IncomingMessage): Record<string, string | undefined> {
  const headers: Record<string, string | undefined> = {};
  const { headers: given } = incoming;
  for (const name in given) {
    const value = given[name];
    headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return headers;
}

function hasBody(incoming: IncomingMessage): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = incoming.headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}

function isSmall(incoming: IncomingMessage): boolean {
  return Number(incoming.headers["content-length"] ?? Number.POSITIVE_INFINITY) <= SMALL_BODY_BYTES;
}

function bodyOf(incoming: IncomingMessage): RequestBody | undefined {
  const contentType = incoming.headers["content-type"];
  const boundary = multipartBoundary(contentType);
  if (boundary !== undefined) return { kind: "upload", parts: readParts(incoming, boundary) };
  if (!hasBody(incoming)) return undefined;
  if (contentType !== undefined && /^application\/(json|[\w.-]+\+json)\s*(;|$)/i.test(contentType)) {
    return { kind: "json", read: (limit) => readJson(incoming, limit) };
  }
  return { kind: "other", contentType };
}

async function readJson(incoming: IncomingMessage, limit: number): Promise<unknown> {
  const large = () => tooLarge(`body: more than ${limit} bytes`, "body");
  if (Number(incoming.headers["content-length"] ?? 0) > limit) throw large();
  // If the client has gone already, no event follows.
  if (incoming.destroyed) throw invalid("body", "body: broken off");
  const chunks: Buffer[] = [];
  let size = 0;
  await new Promise<void>((resolve, reject) => {
    incoming.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) {
        incoming.removeAllListeners("data");
        incoming.pause();
        reject(large());
      } else chunks.push(chunk);
    });
    incoming.on("end", resolve);
    incoming.on("error", () => reject(invalid("body", "body: broken off")));
    incoming.on("close", () => reject(invalid("body", "body: broken off")));
  });
  return parseJson(chunks, "body");
}

/** Counts in `sent` the bytes of body that were sent. */
async function send(
  clock: Clock,
  incoming: IncomingMessage,
  response: ServerResponse,
  answer: GatewayAnswer,
  sent: { bytes: number },
): Promise<void> {
  const unread = hasBody(incoming) && !incoming.readableEnded;
  const lingers = unread && !isSmall(incoming);
  const begin = () => {
    response.writeHead(answer.status, lingers ? { ...answer.headers, connection: "close" } : answer.headers);
  };
  if (answer.body?.kind !== "bytes") begin();
  if (answer.body?.kind === "json") {
    const { text } = answer.body;
    // A short text is sent in one piece with the headers. A long one costs twice as much as text than as bytes.
    const bytes = text.length < LONG_TEXT ? text : Buffer.from(text);
    sent.bytes = Buffer.byteLength(bytes);
    if (lingers) response.write(bytes);
    else response.end(bytes);
  } else if (answer.body !== undefined) {
    await sendBytes(incoming.socket, response, answer.body.stream, begin, sent);
  }
  if (lingers) await discardBody(clock, incoming);
  else if (unread) incoming.resume();
  response.end();
}

/** Begins the answer when its first bytes exist: until then another answer is possible. */
async function sendBytes(
  socket: Socket,
  response: ServerResponse,
  stream: AsyncIterable<Uint8Array>,
  begin: () => void,
  sent: { bytes: number },
): Promise<void> {
  for await (const chunk of readable(stream)) {
    if (socket.destroyed) throw new Error("The client went away.");
    if (!response.headersSent) begin();
    sent.bytes += chunk.length;
    await written(socket, response, chunk);
  }
  if (!response.headersSent) begin();
}

/** The content cannot be read: a failure of the disk, not of the connection. */
class Unreadable extends Error {}

async function* readable(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (error) {
    throw error instanceof ConnectionReset ? error : new Unreadable("It cannot be read.", { cause: error });
  }
}

/**
 * Resolves once the system has taken the chunk, because its memory may be reused then. It listens to the socket: a
 * response that waits for earlier ones of its connection gets no event when the connection ends.
 */
function written(socket: Socket, response: ServerResponse, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = () => reject(new Error("The client went away."));
    socket.once("close", onClose);
    response.write(chunk, (error) => {
      socket.off("close", onClose);
      if (error == null) resolve();
      else reject(new Error("The client went away.", { cause: error }));
    });
  });
}

/** Reads on for a moment: a connection closed with unread bytes is reset, and the answer is lost with it. */
function discardBody(clock: Clock, incoming: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let rest = LINGER_BYTES;
    const done = () => {
      timer.cancel();
      incoming.pause();
      resolve();
    };
    const timer = clock.setTimer(LINGER_MS, done);
    incoming.on("data", (chunk: Buffer) => {
      rest -= chunk.length;
      if (rest < 0) done();
    });
    incoming.on("end", done);
    incoming.on("close", done);
    incoming.resume();
  });
}
