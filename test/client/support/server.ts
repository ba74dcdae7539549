/** A real HTTP server on the loopback whose answers a test scripts, and a client that talks to it. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { onTestFinished } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { createClient } from "../../../src/client/create-client.ts";
import { type Credentials, staticToken } from "../../../src/client/credentials.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { createHttpTransport, type HttpTransportOptions } from "../../../src/client/http-transport.ts";
import type { ThreadOptions } from "../../../src/client/thread-messages.ts";
import { createThreadTransport } from "../../../src/client/thread-transport.ts";
import type { Transport } from "../../../src/contract/http.ts";
import type { WallTime } from "../../../src/lib/clocks.ts";
import type { Logger } from "../../../src/lib/log.ts";

export interface TestServer {
  readonly baseUrl: string;
  /** Connections accepted so far. */
  readonly connections: () => number;
}

/** Listens until the test is finished. */
export async function serve(listener: RequestListener): Promise<TestServer> {
  const server = createServer(listener);
  let connections = 0;
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { baseUrl: `http://127.0.0.1:${port}`, connections: () => connections };
}

/** Where the connections of the clients of this file are. */
let makeTransport: (options: HttpTransportOptions) => Transport = createHttpTransport;

/** From now on they are on a thread of their own. */
export function useThread(): void {
  makeTransport = (options) => createThreadTransport({ ...options, startThread: startHttpThread });
}

/** From the sources. */
export function startHttpThread(workerData: ThreadOptions): Worker {
  return new Worker(new URL("../../../src/client/http-thread.ts", import.meta.url), {
    workerData,
    execArgv: ["--import", new URL("../../../scripts/typescript.mjs", import.meta.url).href],
  });
}

interface TestClientOptions extends Partial<HttpTransportOptions> {
  readonly credentials?: Credentials;
  readonly log?: Logger;
  readonly now?: () => WallTime;
}

/** A client of `baseUrl`, closed when the test is finished. */
export function clientOf(baseUrl: string, options: TestClientOptions = {}): Client {
  const { credentials = staticToken("secret-token"), log, now, ...transport } = options;
  const client = createClient({
    transport: makeTransport({ baseUrl, ...transport }),
    credentials,
    ...(log === undefined ? undefined : { log }),
    ...(now === undefined ? undefined : { now }),
  });
  onTestFinished(() => client.close());
  return client;
}

export async function clientFor(listener: RequestListener, options: TestClientOptions = {}): Promise<Client> {
  const { baseUrl } = await serve(listener);
  return clientOf(baseUrl, options);
}

export function answerJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { "content-type": "application/json", "content-length": bytes.length, ...headers });
  response.end(bytes);
}

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The RemoteError a call rejects with; fails when it does not. */
export async function failureOf(call: Promise<unknown>): Promise<RemoteError> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof RemoteError) return outcome;
  throw new Error(`expected a RemoteError, got ${String(outcome)}`);
}

/** A promise with its ends outside. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
