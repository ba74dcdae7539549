/**
 * HTTP around the core: bodies in and answers out as streams, limits on silence, one log line a
 * request. Routing and every decision are the core's.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import fastify from "fastify";
import type { Logger } from "../lib/log.ts";
import { type Clock, sleep } from "../lib/runtime.ts";
import type { Gateway } from "./core.ts";
import { type GatewayAnswer, type GatewayRequest, jsonAnswer, type RequestBody } from "./exchange.ts";
import { ConnectionReset } from "./faults.ts";
import { multipartBoundary, readParts } from "./multipart.ts";
import { invalid, ProblemError, tooLarge } from "./problems.ts";
import { readSmallParts, SMALL_BODY_BYTES } from "./small-multipart.ts";

const JSON_BYTES = 1024 * 1024;
const HEADERS_SILENCE_MS = 30_000;
const BODY_SILENCE_MS = 60_000;
const KEEP_ALIVE_MS = 65_000;
/** On close, answers under way may take this long. */
const CLOSE_MS = 3000;
/** Then, for what is still at work for connections that are gone. */
const SETTLE_MS = 1000;
const IDLE_POLL_MS = 50;
/** How much of a body nobody wants is read, so that the client sees the answer instead of a reset. */
const LINGER_BYTES = 16 * 1024 * 1024;
const LINGER_MS = 1000;
const CORE_PREFIX = "/v1/";

export interface Server {
  readonly port: number;
  close(): Promise<void>;
}

export interface ServerOptions {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly log: Logger;
}

export async function startServer({ gateway, clock, host, port, log }: ServerOptions): Promise<Server> {
  const active = new Set<Promise<void>>();
  const begin = async (request: IncomingMessage, response: ServerResponse) => {
    const work = answer(gateway, clock, log, request, response);
    active.add(work);
    await work;
    active.delete(work);
  };
  const app = fastify({
    logger: false,
    serverFactory(handler) {
      // What the core answers needs none of the framework.
      const server = createServer((request, response) => {
        if (request.url?.startsWith(CORE_PREFIX) === true) void begin(request, response);
        else handler(request, response);
      });
      server.requestTimeout = 0;
      server.setTimeout(BODY_SILENCE_MS);
      server.keepAliveTimeout = KEEP_ALIVE_MS;
      server.headersTimeout = HEADERS_SILENCE_MS;
      return server;
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  const serve = async (request: { raw: IncomingMessage }, reply: { raw: ServerResponse; hijack(): unknown }) => {
    reply.hijack();
    await begin(request.raw, reply.raw);
  };
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
  return {
    port: address.port,
    async close() {
      const deadline = clock.setTimer(CLOSE_MS, () => app.server.closeAllConnections());
      // A connection whose answer has just gone out is idle only a moment later.
      let poll = clock.setTimer(0, function closeIdle() {
        app.server.closeIdleConnections();
        poll = clock.setTimer(IDLE_POLL_MS, closeIdle);
      });
      await app.close();
      deadline.cancel();
      poll.cancel();
      await Promise.race([Promise.all(active), sleep(clock, SETTLE_MS)]);
    },
  };
}

async function answer(
  gateway: Gateway,
  clock: Clock,
  log: Logger,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const start = clock.elapsed();
  const url = incoming.url ?? "/";
  const mark = url.indexOf("?");
  const path = mark === -1 ? url : url.slice(0, mark);
  const method = incoming.method ?? "GET";
  let status = 0;
  let bytes = 0;
  try {
    const result = await handle(gateway, incoming, method, path, mark === -1 ? "" : url.slice(mark + 1));
    status = result.status;
    bytes = await send(clock, incoming, response, result);
  } catch (error) {
    // A fault on purpose, a client that went away, or content that broke: there is no answer any more.
    log.debug({ err: error, method, path }, "connection broken off");
    if (error instanceof ConnectionReset && error.isPartial && response.headersSent) incoming.socket.destroySoon();
    else incoming.socket.resetAndDestroy();
  }
  log.info({ method, path, status, ms: Math.round((clock.elapsed() - start) * 10) / 10, bytes }, "request");
}

async function handle(
  gateway: Gateway,
  incoming: IncomingMessage,
  method: string,
  path: string,
  search: string,
): Promise<GatewayAnswer> {
  let request: GatewayRequest;
  try {
    request = {
      method,
      path,
      query: parseQuery(search),
      headers: plainHeaders(incoming),
      body: bodyOf(incoming),
    };
  } catch (error) {
    if (error instanceof ProblemError) return jsonAnswer(error.status, error.document);
    throw error;
  }
  return gateway.handle(request);
}

const NO_QUERY: Readonly<Record<string, string>> = {};

function parseQuery(search: string): Readonly<Record<string, string>> {
  if (search === "") return NO_QUERY;
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(search)) {
    if (name in query) throw invalid(name, `${name}: came twice`);
    query[name] = value;
  }
  return { ...query };
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
  if (boundary !== undefined) {
    const parts = isSmall(incoming) ? readSmallParts(incoming, boundary) : readParts(incoming, boundary);
    return { kind: "upload", parts };
  }
  if (!hasBody(incoming)) return undefined;
  if (contentType !== undefined && /^application\/(json|[\w.-]+\+json)\s*(;|$)/i.test(contentType)) {
    return { kind: "json", read: () => readJson(incoming) };
  }
  return { kind: "other", contentType };
}

async function readJson(incoming: IncomingMessage): Promise<unknown> {
  if (Number(incoming.headers["content-length"] ?? 0) > JSON_BYTES)
    throw tooLarge(`body: more than ${JSON_BYTES} bytes`);
  const chunks: Buffer[] = [];
  let size = 0;
  await new Promise<void>((resolve, reject) => {
    incoming.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > JSON_BYTES) {
        incoming.removeAllListeners("data");
        incoming.pause();
        reject(tooLarge(`body: more than ${JSON_BYTES} bytes`));
      } else chunks.push(chunk);
    });
    incoming.on("end", resolve);
    incoming.on("error", () => reject(invalid("body", "body: broken off")));
    incoming.on("close", () => reject(invalid("body", "body: broken off")));
  });
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw invalid("body", "body: expected JSON");
  }
}

/** Answers how many bytes of body went out. */
async function send(
  clock: Clock,
  incoming: IncomingMessage,
  response: ServerResponse,
  answer: GatewayAnswer,
): Promise<number> {
  const unread = hasBody(incoming) && !incoming.readableEnded;
  const lingers = unread && !isSmall(incoming);
  response.writeHead(answer.status, lingers ? { ...answer.headers, connection: "close" } : answer.headers);
  let bytes = 0;
  if (answer.body?.kind === "json") {
    bytes = Buffer.byteLength(answer.body.text);
    if (lingers) response.write(answer.body.text);
    else response.end(answer.body.text);
  } else if (answer.body !== undefined) {
    bytes = await sendBytes(response, answer.body.stream);
  }
  if (lingers) await discardBody(clock, incoming);
  else if (unread) incoming.resume();
  response.end();
  return bytes;
}

async function sendBytes(response: ServerResponse, stream: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of stream) {
    if (response.destroyed) throw new Error("The client went away.");
    bytes += chunk.length;
    if (!response.write(chunk)) await drained(response);
  }
  return bytes;
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error) => {
      response.off("drain", onDrain);
      response.off("close", onClose);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onDrain = () => settle();
    const onClose = () => settle(new Error("The client went away."));
    response.on("drain", onDrain);
    response.on("close", onClose);
  });
}

/** Reads on for a moment: a connection closed on unread bytes is reset, and the answer lost with it. */
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
