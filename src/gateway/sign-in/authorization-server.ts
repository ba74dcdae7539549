/**
 * The OAuth 2.0 authorization server: oidc-provider, set up for device authorization (RFC 8628), refresh (RFC 6749 §6)
 * and revocation (RFC 7009), with access tokens as JWTs (RFC 9068). Our own pages ask people (approval.ts).
 *
 * `workspace` (name or id) is a parameter of ours of the token endpoint: it binds the access token to that workspace.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Configuration, KoaContextWithOIDC, Provider } from "oidc-provider";
import { SCOPES } from "../../contract/scopes.ts";
import type { Logger } from "../../lib/log.ts";
import type { Clock } from "../../lib/runtime.ts";
import type { AccountStore } from "../accounts/index.ts";
import { createAdapter } from "./adapter.ts";
import { createDevicePolls, POLL_SECONDS } from "./device-polls.ts";
import { createRefreshRotation, REFRESH_TOKEN } from "./refresh-rotation.ts";

const ROUTES = {
  device_authorization: "/oauth/device",
  token: "/oauth/token",
  revocation: "/oauth/revoke",
  jwks: "/oauth/jwks",
  code_verification: "/sign-in",
} as const;

/** The only client: the command line and programs with the SDK. It is public, because a person approves each login. */
const CLIENT = { id: "wsfs", name: "wsfs" } as const;
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

const ACCESS_TOKEN_SECONDS = 300;
const DEVICE_CODE_SECONDS = 600;
/** A login that is unused for this long ends; each use starts the time again. */
const REFRESH_SECONDS = 90 * 86_400;
const LOGIN_SECONDS = 10 * 365 * 86_400;

/** Choices of a person for a login, stored beside it. */
export const LOGIN_CHOICE = "LoginChoice";

interface AuthorizationServerNeeds {
  readonly store: AccountStore;
  readonly clock: Clock;
  readonly issuer: string;
  readonly log: Logger;
  /** Returns the id of a workspace that the account may see. */
  workspaceId(account: string, nameOrId: string): string | undefined;
}

interface AuthorizationServer {
  readonly issuer: string;
  readonly provider: Provider;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

export async function createAuthorizationServer(needs: AuthorizationServerNeeds): Promise<AuthorizationServer> {
  const { store, clock, issuer, log } = needs;
  const { Provider: OidcProvider, errors } = await quietly(log, () => import("oidc-provider"));
  const rotation = createRefreshRotation(store.records, clock);
  const polls = createDevicePolls(clock);
  /** Requests that have to make the successor of their refresh token. */
  const claims = new WeakSet<IncomingMessage>();

  const configuration: Configuration = {
    adapter: createAdapter(store.records, rotation),
    jwks: { keys: store.keys.all() },
    clients: [
      {
        client_id: CLIENT.id,
        client_name: CLIENT.name,
        grant_types: [DEVICE_GRANT, "refresh_token"],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: "none",
        id_token_signed_response_alg: "ES256",
      },
    ],
    scopes: ["offline_access", ...SCOPES],
    responseTypes: ["none"],
    routes: { ...ROUTES },
    ttl: {
      AccessToken: ACCESS_TOKEN_SECONDS,
      DeviceCode: DEVICE_CODE_SECONDS,
      RefreshToken: REFRESH_SECONDS,
      Grant: LOGIN_SECONDS,
    },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      revocation: { enabled: true, allowedPolicy: (_context, client, token) => token.clientId === client.clientId },
      deviceFlow: { enabled: true, charset: "base-20", mask: "****-****", deviceInfo: () => ({}) },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => issuer,
        useGrantedResource: () => true,
        getResourceServerInfo(_context, resource) {
          if (resource !== issuer) throw new errors.InvalidTarget(`expected the resource ${issuer}, got ${resource}`);
          return {
            scope: SCOPES.join(" "),
            audience: issuer,
            accessTokenTTL: ACCESS_TOKEN_SECONDS,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: "ES256" } },
          };
        },
      },
    },
    clientBasedCORS: () => false,
    issueRefreshToken: async () => true,
    rotateRefreshToken(context) {
      const isFirst = rotation.claim(presented(context));
      if (isFirst) claims.add(context.req);
      return isFirst;
    },
    findAccount: (_context, id) =>
      store.accounts.find(id) === undefined ? undefined : { accountId: id, claims: () => ({ sub: id }) },
    extraTokenClaims(context, token) {
      const login = token.kind === "AccessToken" ? token.grantId : undefined;
      const account = token.kind === "AccessToken" ? token.accountId : undefined;
      if (login === undefined || account === undefined) return undefined;
      const workspace = workspaceOf(login, account, context.oidc.body?.workspace);
      return { login, ...(workspace === undefined ? {} : { workspace }) };
    },
    renderError(context, out) {
      context.type = "application/json";
      context.body = out;
    },
  };

  /** A login that a person bound to a workspace gives tokens for that workspace only. */
  function workspaceOf(login: string, account: string, asked: unknown): string | undefined {
    const bound = store.records.find(LOGIN_CHOICE, login)?.payload.workspace;
    if (asked === undefined) return typeof bound === "string" ? bound : undefined;
    const id = typeof asked === "string" ? needs.workspaceId(account, asked) : undefined;
    if (id === undefined) throw new errors.InvalidTarget(`workspace: there is no workspace ${JSON.stringify(asked)}`);
    if (typeof bound === "string" && bound !== id) {
      throw new errors.InvalidTarget("workspace: this login is for another workspace");
    }
    return id;
  }

  const provider = await quietly(log, () => Promise.resolve(new OidcProvider(issuer, configuration)));
  provider.on("server_error", (_context, error) => log.error({ err: error }, "the OAuth server failed"));

  provider.use(async (context, next) => {
    await next();
    const { path, body } = context;
    if (path === ROUTES.device_authorization && isObject(body) && typeof body.device_code === "string") {
      context.body = { ...body, interval: POLL_SECONDS };
    }
    const code = "oidc" in context ? (context as KoaContextWithOIDC).oidc.body?.device_code : undefined;
    if (path === ROUTES.token && typeof code === "string" && isPending(body) && !polls.isInTime(code)) {
      context.body = { error: "slow_down", error_description: "asked too soon: wait five seconds longer each time" };
    }
  });
  provider.use(async (context, next) => {
    try {
      await next();
    } finally {
      if ("oidc" in context) await endRefresh(context as KoaContextWithOIDC);
    }
  });

  /**
   * Ends a refresh, whatever its result. The request that claimed the token releases it; any other request answers the
   * same successor.
   */
  async function endRefresh(context: KoaContextWithOIDC): Promise<void> {
    const token = context.oidc.body?.refresh_token;
    if (context.path !== ROUTES.token || typeof token !== "string") return;
    const answer: Record<string, unknown> = isObject(context.body) ? context.body : {};
    const given = typeof answer.refresh_token === "string" ? answer.refresh_token : undefined;
    if (claims.has(context.req)) {
      const made = context.oidc.entities.RefreshToken;
      if (given === undefined && made !== undefined && made.jti !== token)
        store.records.destroy(REFRESH_TOKEN, made.jti);
      rotation.release(token, given, made?.grantId);
    } else if (given !== undefined) {
      const successor = await rotation.successor(token);
      if (successor !== undefined) context.body = { ...answer, refresh_token: successor };
      else {
        context.status = 503;
        context.body = { error: "temporarily_unavailable", error_description: "try again" };
      }
    }
  }

  const callback = provider.callback();
  return {
    issuer,
    provider,
    async handle(request, response) {
      await callback(request, response);
    },
  };
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

const isPending = (body: unknown) => isObject(body) && body.error === "authorization_pending";

function presented({ oidc }: KoaContextWithOIDC): string {
  const token = oidc.body?.refresh_token;
  if (typeof token !== "string") throw new Error("There is no refresh token to rotate.");
  return token;
}

/** oidc-provider prints remarks about its surroundings to the console; they belong in the log. */
async function quietly<T>(log: Logger, work: () => Promise<T>): Promise<T> {
  const { info, warn } = console;
  const note = (...words: unknown[]) => log.debug({ said: words.map(String).join(" ") }, "the OAuth server says");
  Object.assign(console, { info: note, warn: note });
  try {
    return await work();
  } finally {
    Object.assign(console, { info, warn });
  }
}
