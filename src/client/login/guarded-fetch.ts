/**
 * A fetch for openid-client, over connections that check the other end (connector.ts). When a gateway has ended, a
 * program that takes its port must get neither a refresh token nor an access token. Each request has a connection of
 * its own.
 */
import { createConnector } from "../connector.ts";

interface FetchOptions {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

const CONNECT_MS = 10_000;
const WITHOUT_BODY = [204, 205, 304];

/**
 * Follows no redirect. Rejects like fetch with a TypeError whose cause says why; when aborted, with the signal's
 * reason.
 */
export async function guardedFetch(url: string, { method = "GET", headers, body, signal }: FetchOptions) {
  const [{ default: Pool }, { default: build }, { default: request }] = await Promise.all([
    import("undici/lib/dispatcher/pool.js"),
    import("undici/lib/core/connect.js"),
    import("undici/lib/api/api-request.js"),
  ]);
  const { origin, pathname, search } = new URL(url);
  // Other systems do not show the user of a listening program.
  const connect = process.platform === "linux" ? createConnector(build, { timeout: CONNECT_MS }) : {};
  const pool = new Pool(origin, { connections: 1, connect });
  try {
    const answer = await request.call(pool, {
      path: `${pathname}${search}`,
      method: method === "POST" ? "POST" : "GET",
      headers,
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const bytes = await answer.body.bytes();
    const { statusCode: status } = answer;
    const lines = Object.entries(answer.headers).flatMap(([name, value = []]) =>
      [value].flat().map((one): [string, string] => [name, one]),
    );
    return new Response(WITHOUT_BODY.includes(status) ? null : bytes, { status, headers: lines });
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason;
    throw new TypeError("fetch failed", { cause });
  } finally {
    await pool.destroy();
  }
}
