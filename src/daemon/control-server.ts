/** The daemon's end of the control socket. It knows HTTP and the messages, not the handlers. */

import { once } from "node:events";
import { chmodSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { z } from "zod";
import type { DrainProgress, DrainResult, QueueItem, RetryResult } from "../engine/api/index.ts";
import type { Logger } from "../lib/log.ts";
import { TIMER_MAX_MS } from "../lib/runtime.ts";
import { socketAddress } from "../lib/socket-address.ts";
import {
  type DrainLine,
  drainRequest,
  type MountStatus,
  type QueueLine,
  type QueueSums,
  type ReloadRequest,
  reloadRequest,
  retryRequest,
  type UnmountReply,
} from "./control-messages.ts";

export interface ControlHandlers {
  status(): Promise<MountStatus>;
  sums(): Promise<QueueSums>;
  queue(limit: number): AsyncIterable<readonly QueueItem[]>;
  retry(paths?: readonly string[]): Promise<RetryResult>;
  drain(settle: boolean, signal: AbortSignal, onProgress: (progress: DrainProgress) => void): Promise<DrainResult>;
  /** Resolves when the mount is gone and the last writes of programs are done, or with the reason why it is busy. */
  unmount(): Promise<UnmountReply>;
  /** Resolves with a function to call when the answer is sent. After that call the daemon answers nothing more. */
  reload(request: ReloadRequest): Promise<() => void>;
}

/** The daemon cannot do this now. The message is one line for the person who asked. */
export class Refused extends Error {
  override name = "Refused";
}

export interface ControlServer {
  /** Sends the answers of `unmount` requests that are under way, then breaks off all others. */
  close(): Promise<void>;
}

/** A base to parse request targets with. Only the path of the target counts. */
const BASE = "http://daemon";
const BODY_LIMIT = 64 * 1024;
/** A retry may name as many paths as a command line holds (2 MiB); JSON may need six bytes for one. */
const RETRY_LIMIT = 16 * 1024 * 1024;
/** A reload may contain a profile. */
const RELOAD_LIMIT = 256 * 1024;
const PROGRESS_INTERVAL_MS = 200;
const QUEUE_LIMIT = 1_000_000_000;

/** The sender's request is wrong. It is answered with this HTTP status. */
class RequestError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Listens on a socket at `path`, mode 0600. Replaces a socket that a killed daemon left there. */
export async function startControlServer(options: {
  readonly path: string;
  readonly handlers: ControlHandlers;
  readonly log: Logger;
}): Promise<ControlServer> {
  const { path, handlers, log } = options;
  const unmounting = new Set<Promise<void>>();
  const server = createServer((request, response) => {
    const answered = answer(handlers, request, response).catch((error: unknown) => {
      if (error instanceof RequestError) return reply(response, error.status, { error: error.message });
      if (error instanceof Refused) return reply(response, 409, { error: error.message });
      log.error({ err: error, url: request.url }, "control: a request failed");
      reply(response, 500, { error: error instanceof Error ? error.message : String(error) });
    });
    if (request.url !== "/unmount") return;
    unmounting.add(answered);
    void answered.then(() => unmounting.delete(answered));
  });
  rmSync(path, { force: true });
  const address = socketAddress(path);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.path, resolve);
  });
  chmodSync(path, 0o600);
  return {
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all(unmounting);
      server.closeIdleConnections();
      server.closeAllConnections();
      await closed;
      address.close();
    },
  };
}

async function answer(handlers: ControlHandlers, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const target = request.url ?? "/";
  if (!URL.canParse(target, BASE)) throw new RequestError(400, `expected a path, got ${target}`);
  const url = new URL(target, BASE);
  switch (`${request.method} ${url.pathname}`) {
    case "GET /status":
      return reply(response, 200, await handlers.status());
    case "GET /queue":
      return queue(handlers, limitOf(url), response);
    case "POST /queue/retry":
      return reply(response, 200, await handlers.retry((await bodyOf(request, retryRequest, RETRY_LIMIT)).paths));
    case "POST /drain":
      return drain(handlers, await bodyOf(request, drainRequest), response);
    case "POST /unmount":
      return reply(response, 200, await handlers.unmount());
    case "POST /reload": {
      const begin = await handlers.reload(await bodyOf(request, reloadRequest, RELOAD_LIMIT));
      response.once("close", begin);
      if (response.destroyed) begin();
      return reply(response, 200, {});
    }
    default:
      throw new RequestError(404, `no such request: ${request.method} ${url.pathname}`);
  }
}

function limitOf(url: URL): number {
  const text = url.searchParams.get("limit") ?? "100";
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > QUEUE_LIMIT) {
    throw new RequestError(400, `limit: expected a whole number from 1 to ${QUEUE_LIMIT}, got "${text}"`);
  }
  return limit;
}

async function bodyOf<T>(request: IncomingMessage, schema: z.ZodType<T>, limit = BODY_LIMIT): Promise<T> {
  let text = "";
  // A character may be split between two chunks.
  for await (const chunk of request.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > limit) throw new RequestError(413, `expected at most ${limit} bytes`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RequestError(400, "expected a JSON body");
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new RequestError(400, z.prettifyError(parsed.error).replaceAll("\n", " "));
  return parsed.data;
}

/** Sends the list as fast as the other side reads, and stops when the other side goes away. */
async function queue(handlers: ControlHandlers, limit: number, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const sums = await handlers.sums();
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  const write = async (lines: readonly QueueLine[]) => {
    if (response.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))) return;
    await once(response, "drain", { signal: gone.signal });
  };
  let listed = 0;
  try {
    await write([{ sums }]);
    for await (const items of handlers.queue(limit)) {
      if (gone.signal.aborted) return;
      listed += items.length;
      if (items.length > 0) await write(items.map((item) => ({ item })));
    }
    await write([{ listed }]);
    response.end();
  } catch (error) {
    // The HTTP head is already sent: the missing last line tells the other side.
    response.destroy();
    if (!gone.signal.aborted) throw error;
  }
}

/** Ends early when the time is up or the other side goes away. Only in the first case is a result sent. */
async function drain(
  handlers: ControlHandlers,
  request: { settle: boolean; timeoutMs?: number | undefined },
  response: ServerResponse,
): Promise<void> {
  const stop = new AbortController();
  const { timeoutMs } = request;
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => stop.abort(), Math.min(timeoutMs, TIMER_MAX_MS));
  response.on("close", () => stop.abort());
  const write = (line: DrainLine) => response.write(`${JSON.stringify(line)}\n`);
  let last: DrainProgress | undefined;
  let written = 0;
  try {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.flushHeaders();
    const result = await handlers.drain(request.settle, stop.signal, (progress) => {
      last = progress;
      const now = performance.now();
      if (now - written < PROGRESS_INTERVAL_MS) return;
      written = now;
      last = undefined;
      write({ progress });
    });
    if (last !== undefined) write({ progress: last });
    write({ result: { drained: result.drained, left: [...result.left] } });
    response.end();
  } catch (error) {
    // The HTTP head is already sent: the missing result line tells the other side.
    response.destroy();
    if (!stop.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
}

function reply(response: ServerResponse, status: number, value: object): void {
  if (response.destroyed || response.headersSent) return;
  const body = `${JSON.stringify(value)}\n`;
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}
