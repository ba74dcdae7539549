/** Talks to the gateway's OAuth server through openid-client, and turns its refusals into RemoteErrors. */
import type { Configuration } from "openid-client";
import { z } from "zod";
import { isLoopbackName } from "../../lib/loopback.ts";
import { isOfStranger } from "../connector.ts";
import { RemoteError } from "../errors.ts";
import { guardedFetch } from "./guarded-fetch.ts";

/** Loaded only when a person signs in or a login is used, because most programs do neither. */
export const oauth = () => import("openid-client");

const CLIENT_ID = "wsfs";
const TIMEOUT_SECONDS = 30;

/** The server's addresses. They are saved with a login, so that a new token takes one request. */
export const endpoints = z.object({
  issuer: z.url(),
  token_endpoint: z.url(),
  revocation_endpoint: z.url().optional(),
  device_authorization_endpoint: z.url().optional(),
});
type Endpoints = z.infer<typeof endpoints>;

/** Throws a RemoteError "invalid" for an address at which others could read the login. */
export function checkAddress(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new RemoteError("invalid", `expected an address such as https://gateway.example.com, got ${baseUrl}`);
  }
  if (url.protocol === "https:" || isLoopbackName(url.hostname)) return url;
  throw new RemoteError("invalid", `${url.host}: a login over http can be overheard; expected https, or this machine`);
}

/** The addresses that the gateway, or another issuer, publishes. Rejects with a RemoteError. */
export async function discover(issuer: string): Promise<Endpoints> {
  const url = checkAddress(issuer);
  const { allowInsecureRequests, customFetch, discovery, None } = await oauth();
  const ask = (algorithm: "oauth2" | "oidc") =>
    asking("sign-in", () =>
      discovery(url, CLIENT_ID, {}, None(), {
        algorithm,
        timeout: TIMEOUT_SECONDS,
        [customFetch]: guardedFetch,
        execute: url.protocol === "http:" ? [allowInsecureRequests] : [],
      }),
    );
  // An issuer that speaks only OpenID Connect publishes them at another address.
  const found = await ask("oauth2").catch((error: unknown) => {
    if (error instanceof RemoteError && error.code === "malformed") return ask("oidc");
    throw error;
  });
  const read = endpoints.safeParse(found.serverMetadata());
  if (read.success) return read.data;
  throw new RemoteError("malformed", `${issuer} does not say where a program signs in`);
}

export async function configure(server: Endpoints): Promise<Configuration> {
  checkAddress(server.issuer);
  const client = await oauth();
  const { issuer, token_endpoint, revocation_endpoint: revocation, device_authorization_endpoint: device } = server;
  const metadata = {
    issuer,
    token_endpoint,
    ...(revocation === undefined ? {} : { revocation_endpoint: revocation }),
    ...(device === undefined ? {} : { device_authorization_endpoint: device }),
  };
  const configuration = new client.Configuration(metadata, CLIENT_ID, {}, client.None());
  configuration.timeout = TIMEOUT_SECONDS;
  configuration[client.customFetch] = guardedFetch;
  if (checkAddress(server.token_endpoint).protocol === "http:") client.allowInsecureRequests(configuration);
  return configuration;
}

/** A refusal of the OAuth server. `error` is its code of RFC 6749. */
export class OauthRefusal extends RemoteError {
  readonly error: string;
  constructor(what: string, error: string, description: string | undefined, status: number, cause: unknown) {
    super(status >= 500 ? "server" : "unauthorized", `${what}: ${description ?? error}`, { status, cause });
    this.error = error;
  }
}

const refusal = z.object({ error: z.string(), error_description: z.string().optional(), status: z.number() });

/** Runs a request. Any failure becomes a RemoteError whose message contains no secret. */
export async function asking<T>(what: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof RemoteError) throw cause;
    if (signal?.aborted === true) throw new RemoteError("aborted", `${what}: given up`, { cause });
    const read = refusal.safeParse(cause);
    if (read.success) {
      throw new OauthRefusal(what, read.data.error, read.data.error_description, read.data.status, cause);
    }
    const { name, code } = z
      .object({ name: z.string().catch(""), code: z.string().catch("") })
      .catch({ name: "", code: "" })
      .parse(cause);
    if (name === "TimeoutError" || code === "OAUTH_TIMEOUT") {
      throw new RemoteError("silent", `${what}: no answer within ${TIMEOUT_SECONDS} s`, { cause });
    }
    if (code.startsWith("OAUTH_")) {
      throw new RemoteError("malformed", `${what}: the answer does not follow OAuth`, { cause });
    }
    const reason = cause instanceof TypeError ? cause.cause : undefined;
    const isStranger = reason instanceof Error && isOfStranger({ cause: reason });
    const why = isStranger ? reason.message : "the gateway is not reached";
    throw new RemoteError("offline", `${what}: ${why}`, { cause: isStranger ? reason : cause });
  }
}
