/** Signs a program in by the device flow (RFC 8628): it shows a code, and a person approves it in any browser. */
import { type AccountStatus, accountStatus } from "../../contract/resources.ts";
import { RemoteError } from "../errors.ts";
import { asking, checkAddress, configure, discover, OauthRefusal, oauth } from "./authorization.ts";
import { guardedFetch } from "./guarded-fetch.ts";
import type { Login } from "./login-file.ts";

export type DeviceLoginEvent =
  | {
      readonly is: "code";
      /** The code that the person compares or types. */
      readonly userCode: string;
      readonly address: string;
      /** The address with the code in it. */
      readonly completeAddress: string;
      /** Milliseconds since the epoch. */
      readonly expiresAt: number;
    }
  /** The sign-in has begun and is not approved yet. */
  | { readonly is: "waiting" }
  | { readonly is: "done"; readonly account: Login["account"] };

export interface DeviceLoginOptions {
  /** Address of the gateway. */
  readonly baseUrl: string;
  /** The issuer at which people sign in, if it is not the gateway itself. */
  readonly issuer?: string | undefined;
  /** The scopes to ask for. Absent: all. A person may allow fewer. */
  readonly scopes?: readonly string[] | undefined;
  readonly onEvent?: (event: DeviceLoginEvent) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves when the person has approved the code; `saveLogin` saves the result. Rejects with a RemoteError: "forbidden"
 * when the person denied it, "unauthorized" when the code expired, "notFound" when the issuer has no sign-in by code,
 * "invalid" for an unsafe address, "aborted" by the signal, "offline", "silent", "server" or "malformed" when the
 * server fails.
 */
export async function deviceLogin(options: DeviceLoginOptions): Promise<Login> {
  const { baseUrl, issuer = baseUrl, scopes, signal, onEvent = () => {} } = options;
  const server = await discover(issuer);
  const configuration = await configure(server);
  const { initiateDeviceAuthorization, pollDeviceAuthorizationGrant } = await oauth();
  if (server.device_authorization_endpoint === undefined) {
    throw new RemoteError("notFound", `${issuer} has no sign-in by code`);
  }
  const asked = scopes === undefined ? {} : { scope: scopes.join(" ") };
  const device = await asking("sign-in", () => initiateDeviceAuthorization(configuration, asked), signal);
  const address = device.verification_uri;
  onEvent({
    is: "code",
    userCode: device.user_code,
    address,
    completeAddress: device.verification_uri_complete ?? address,
    expiresAt: Date.now() + device.expires_in * 1000,
  });
  onEvent({ is: "waiting" });
  const tokens = await asking(
    "sign-in",
    () => pollDeviceAuthorizationGrant(configuration, device, {}, signal === undefined ? {} : { signal }),
    signal,
  ).catch((error: unknown) => {
    if (!(error instanceof OauthRefusal)) throw error;
    if (error.error === "access_denied") throw new RemoteError("forbidden", "sign-in: denied", { cause: error });
    if (error.error === "expired_token") {
      throw new RemoteError("unauthorized", "sign-in: it was not approved in time", { cause: error });
    }
    throw error;
  });
  if (tokens.refresh_token === undefined) {
    throw new RemoteError("malformed", `${issuer} gave a token that cannot be renewed`);
  }
  const { account } = await whoIs(baseUrl, tokens.access_token);
  onEvent({ is: "done", account });
  return {
    server,
    refreshToken: tokens.refresh_token,
    scope: tokens.scope ?? scopes?.join(" ") ?? "",
    account,
    signedInAt: new Date().toISOString(),
  };
}

/** Asks without a client: a client needs the credentials that are being made here. */
async function whoIs(baseUrl: string, token: string): Promise<AccountStatus> {
  const url = `${checkAddress(baseUrl).href.replace(/\/$/, "")}/v1/account`;
  const headers = { authorization: `Bearer ${token}`, accept: "application/json" };
  const answer = await asking("sign-in", () => guardedFetch(url, { headers }));
  const read = accountStatus.safeParse(await answer.json().catch(() => undefined));
  if (answer.ok && read.success) return read.data;
  throw new RemoteError("malformed", `sign-in: ${url} answered ${answer.status} instead of an account`);
}
