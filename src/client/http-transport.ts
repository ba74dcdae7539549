/**
 * The transport over the network: requests of the contract as HTTP/1.1 on five pools of kept-alive connections, so that
 * a short call never waits behind an upload or a stream. It knows no operation and no token. undici is loaded with the
 * first request, so that importing this file costs little.
 */

import type { buildConnector, Pool } from "undici";
import { type HttpRequest, NODE_LINES, type Transport } from "../contract/http.ts";
import { aBoolean, checkArguments, fields, filledText, is, optional, wholeNumber } from "./checks.ts";
import { RemoteError } from "./errors.ts";
import { type ExchangeLimits, type ExchangeRequest, exchange, type PoolActivity } from "./exchange.ts";
import { frameMultipart } from "./multipart.ts";
import { SILENCE_LIMITS } from "./silence.ts";

/**
 * For answers without content: fewer bytes than this within the silence limit count as silence. At a byte per second a
 * listing would take days, and so would all requests that wait for it. The slowest modem is a hundred times faster.
 */
const LEAST_BYTES = 256;

/** Limits on silence, not on the total, in milliseconds. A transfer may take any time while data moves. */
export interface SilenceLimits {
  /** Until a connection exists. Default 10,000. */
  readonly connect?: number;
  /** Calls without content: until the answer begins, and between its bytes. Default 10,000. */
  readonly metadata?: number;
  /** Content, in both directions: until the next byte. Default 30,000. */
  readonly content?: number;
  /** After the last byte of an upload: until the gateway has hashed and stored it. Default 60,000. */
  readonly uploadAnswer?: number;
  /** Streams of events: until the next event or heartbeat. Default 35,000, three heartbeats. */
  readonly stream?: number;
}

export interface HttpTransportOptions {
  /** "https://host[:port][/prefix]". Paths of operations are appended. */
  readonly baseUrl: string;
  readonly limits?: SilenceLimits;
  /**
   * The largest number of connections for each of: calls without content, downloads, uploads. Default 16. Each stream
   * has its own.
   */
  readonly connections?: number;
  /** True: a gateway on this machine that is reached by plain HTTP must run as this user or as root. Linux only. */
  readonly guarded?: boolean;
  /** The Unix socket of a gateway on this machine, owned by this user. It is used instead of the base URL's port. */
  readonly socketPath?: string;
}

const milliseconds = is(
  "milliseconds, more than 0",
  (value) => typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY,
);

export const LIMITS = fields<SilenceLimits>({
  connect: optional(milliseconds),
  metadata: optional(milliseconds),
  content: optional(milliseconds),
  uploadAnswer: optional(milliseconds),
  stream: optional(milliseconds),
});

const OPTIONS = fields<HttpTransportOptions>({
  baseUrl: filledText,
  limits: optional(LIMITS),
  connections: optional(wholeNumber(1)),
  guarded: optional(aBoolean),
  socketPath: optional(filledText),
});

interface ConnectionPool {
  readonly pool: Pool;
  readonly activity: PoolActivity;
  readonly limits: ExchangeLimits;
  /** True: the pool's connections have buffers of their own (read-buffers.ts). */
  readonly hasReadBuffers?: boolean;
}

/** The streams, by the `accept` of their requests. Each stream has a connection of its own. */
const STREAMS: Readonly<Record<string, "events" | "lines">> = { "text/event-stream": "events", [NODE_LINES]: "lines" };

type ConnectionPools = Readonly<Record<"calls" | "downloads" | "uploads" | "events" | "lines", ConnectionPool>>;

/**
 * A call that fails before its answer rejects with a RemoteError: "offline", "silent", "aborted", "malformed" or, for a
 * request that cannot be sent, "invalid". Closing ends the calls under way ("aborted"). Throws a TypeError for a wrong
 * option.
 */
export function createHttpTransport(options: HttpTransportOptions): Transport {
  checkArguments("createHttpTransport", { options: OPTIONS }, [options]);
  const { origin, prefix } = parseBaseUrl(options.baseUrl);
  const { connect = SILENCE_LIMITS.connect, metadata = SILENCE_LIMITS.metadata } = options.limits ?? {};
  const { content = SILENCE_LIMITS.content, uploadAnswer = SILENCE_LIMITS.uploadAnswer } = options.limits ?? {};
  const { stream = SILENCE_LIMITS.stream } = options.limits ?? {};
  let opened: Promise<ConnectionPools> | undefined;
  let isClosed = false;

  const open = async (): Promise<ConnectionPools> => {
    const { default: Pool } = await import("undici/lib/dispatcher/pool.js");
    const hasReadBuffers = origin.startsWith("http:");
    const [connector, downloads] = await connectorsOf(options, connect, hasReadBuffers);
    const newPool = (
      limits: Omit<ExchangeLimits, "connect">,
      connections: number | null = options.connections ?? 16,
      by = connector,
    ) => ({
      pool: new Pool(origin, { connections, pipelining: 1, connect: by }),
      activity: {
        last: Number.NEGATIVE_INFINITY,
        underWay: 0,
        most: connections ?? Number.POSITIVE_INFINITY,
      },
      limits: { connect, ...limits },
    });
    return {
      calls: newPool({ send: metadata, answer: metadata, receive: metadata, least: LEAST_BYTES }),
      downloads: {
        ...newPool({ send: content, answer: content, receive: content }, undefined, downloads),
        hasReadBuffers,
      },
      uploads: newPool({ send: content, answer: uploadAnswer, receive: metadata, least: LEAST_BYTES }),
      events: newPool({ send: metadata, answer: metadata, receive: stream }, null),
      // Programs wait for lines as they wait for the answers of calls, so the limits are the same.
      lines: newPool({ send: metadata, answer: metadata, receive: metadata, least: LEAST_BYTES }, null),
    };
  };
  const poolOf = (request: HttpRequest, pools: ConnectionPools): ConnectionPool => {
    if (request.body?.kind === "upload") return pools.uploads;
    if (request.headers.accept === "application/json") return pools.calls;
    return pools[STREAMS[request.headers.accept ?? ""] ?? "downloads"];
  };

  return {
    async send(request) {
      opened ??= open();
      const { pool, activity, limits, hasReadBuffers } = poolOf(request, await opened);
      if (isClosed) throw new RemoteError("aborted", "the client was closed", { isUnsent: true });
      try {
        const chunks = hasReadBuffers !== true ? undefined : request.takesLoans === true ? "lent" : "copied";
        return await exchange(pool, activity, { ...translate(request, prefix), chunks }, limits);
      } catch (error) {
        if (!(error instanceof RemoteError) || error.code === "aborted" || error.code === "invalid") throw error;
        throw new RemoteError(error.code, `${origin}: ${error.message}`, error.details);
      }
    },
    async close() {
      isClosed = true;
      if (opened !== undefined) await Promise.all(Object.values(await opened).map(({ pool }) => pool.destroy()));
    },
  };
}

/** The connectors of all connections but downloads, and of downloads. */
async function connectorsOf(
  { guarded = false, socketPath }: HttpTransportOptions,
  timeout: number,
  hasReadBuffers: boolean,
): Promise<readonly [buildConnector.connector, buildConnector.connector]> {
  const [{ default: build }, { createConnector }, { withReadBuffers }] = await Promise.all([
    import("undici/lib/core/connect.js"),
    import("./connector.ts"),
    import("./read-buffers.ts"),
  ]);
  const isPlain = !guarded && socketPath === undefined;
  const by = (how: typeof build) =>
    isPlain ? how({ timeout }) : createConnector(how, { timeout, ...(socketPath === undefined ? {} : { socketPath }) });
  const connector = by(build);
  return [connector, hasReadBuffers ? by(withReadBuffers(build)) : connector];
}

function parseBaseUrl(baseUrl: string): { origin: string; prefix: string } {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new TypeError(`base URL: expected http(s)://host[:port][/prefix], got ${JSON.stringify(baseUrl)}`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    // The URL is not quoted, because it may contain a password.
    throw new TypeError("base URL: expected http(s)://host[:port][/prefix], without user, password, query or fragment");
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, "") };
}

function translate(request: HttpRequest, prefix: string): ExchangeRequest {
  const query = Object.keys(request.query).length === 0 ? "" : new URLSearchParams(request.query).toString();
  const translated = {
    method: request.method,
    path: `${prefix}${request.path}${query === "" ? "" : `?${query}`}`,
    ...(request.signal === undefined ? undefined : { signal: request.signal }),
  };
  const { body, headers } = request;
  if (body === undefined) return { ...translated, headers };
  if (body.kind === "json") {
    const bytes = Buffer.from(JSON.stringify(body.value));
    return { ...translated, headers: { ...headers, "content-type": "application/json" }, body: bytes };
  }
  const framed = frameMultipart(body);
  return {
    ...translated,
    headers: {
      ...headers,
      "content-type": framed.contentType,
      // A body without a length is sent in HTTP chunks. Their end shows that the body is whole.
      ...(framed.size === undefined ? undefined : { "content-length": String(framed.size) }),
    },
    body: framed.read(),
    size: framed.size,
  };
}
