/** An OpenID issuer of its own in the test's process, where whoever comes is signed in at once; it can be made to lie. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import * as jose from "jose";
import { Provider } from "oidc-provider";
import { onTestFinished } from "vitest";
import { accountsInMemory } from "../../../src/gateway/accounts/index.ts";
import { createAdapter } from "../../../src/gateway/sign-in/adapter.ts";
import { createRefreshRotation } from "../../../src/gateway/sign-in/refresh-rotation.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";

export interface Person {
  readonly sub: string;
  readonly preferred_username?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
}

export interface Lies {
  /** What the identity token says, changed. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** How it is signed. */
  readonly sign?: "another key" | "none" | "HS256 with the public key";
}

export interface Issuer {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Who is signed in there next. */
  person: Person;
  lies: Lies;
  /** Requests for tokens it has had. */
  readonly exchanges: URLSearchParams[];
}

/** `host`: by which name it is reached. */
export async function startIssuer(returnTo: () => string, host = "127.0.0.1"): Promise<Issuer> {
  const server: Server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://${host}:${(server.address() as AddressInfo).port}`;
  const { privateKey, publicKey } = await jose.generateKeyPair("ES256", { extractable: true });
  const other = await jose.generateKeyPair("ES256");
  const issuer: Issuer = {
    ...{ url, clientId: "gateway", clientSecret: "a secret of the gateway's own" },
    ...{ person: { sub: "17", preferred_username: "grace" }, lies: {}, exchanges: [] },
  };
  const { records } = accountsInMemory(systemClock);
  const provider = new Provider(url, {
    clients: [
      {
        client_id: issuer.clientId,
        client_secret: issuer.clientSecret,
        redirect_uris: ["http://known.later.invalid/"],
        token_endpoint_auth_method: "client_secret_post",
        id_token_signed_response_alg: "ES256",
      },
    ],
    jwks: { keys: [{ ...(await jose.exportJWK(privateKey)), kid: "one", alg: "ES256", use: "sig" }] },
    adapter: createAdapter(records, createRefreshRotation(records, systemClock)),
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
    cookies: { keys: ["of a test"] },
    claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email", "email_verified"] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: () => "/asked" },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ ...issuer.person }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ accountId: oidc.session?.accountId, clientId: issuer.clientId });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  });
  provider.Client.prototype.redirectUriAllowed = (uri: string) => uri === returnTo();
  provider.use(async (context, next) => {
    await next();
    const { body } = context;
    if (context.path !== "/token" || typeof body !== "object" || body === null || !("id_token" in body)) return;
    context.body = { ...body, id_token: await lie(String(body.id_token)) };
  });
  const answer = provider.callback();
  const handle: typeof answer = async (request, response) => {
    if (request.url === "/asked") {
      return provider.interactionFinished(request, response, { login: { accountId: issuer.person.sub } });
    }
    if (request.url === "/token") {
      let text = "";
      request.on("data", (chunk) => {
        text += chunk;
      });
      request.on("end", () => issuer.exchanges.push(new URLSearchParams(text)));
    }
    return answer(request, response);
  };

  async function lie(token: string): Promise<string> {
    const { claims = {}, sign } = issuer.lies;
    if (sign === undefined && Object.keys(claims).length === 0) return token;
    const payload = { ...jose.decodeJwt(token), ...claims };
    if (sign === "none") return new jose.UnsecuredJWT(payload).encode();
    const signed = new jose.SignJWT(payload);
    if (sign === "HS256 with the public key") {
      const key = new TextEncoder().encode(await jose.exportSPKI(publicKey));
      return signed.setProtectedHeader({ alg: "HS256", kid: "one" }).sign(key);
    }
    const key = sign === "another key" ? other.privateKey : privateKey;
    return signed.setProtectedHeader({ alg: "ES256", kid: "one" }).sign(key);
  }

  return issuer;
}
