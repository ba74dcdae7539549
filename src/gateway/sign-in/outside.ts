/**
 * Sign-in at an outside OpenID issuer instead of by a password of ours: authorization code with PKCE, state and nonce,
 * by openid-client, which also checks the answers of the issuer (`iss`, signature, audience, nonce). The data kept
 * between leaving and coming back are found by a cookie of the browser that left, and are valid for one return.
 */
import { randomBytes } from "node:crypto";
import type { Configuration } from "openid-client";
import { z } from "zod";
import type { Logger } from "../../lib/log.ts";
import type { Account, AccountStore } from "../accounts/index.ts";

export interface OutsideIssuer {
  readonly issuer: string;
  readonly clientId: string;
  /** Absent: the client is public. */
  readonly clientSecret?: string | undefined;
}

interface OutsideNeeds {
  readonly outside: OutsideIssuer;
  readonly store: AccountStore;
  /** The address to which people come back, as the issuer knows it. */
  readonly returnTo: string;
  readonly log: Logger;
}

export interface OutsideSignIn {
  /** A short name of the issuer: its host. */
  readonly name: string;
  /**
   * Returns the address to which a person with this code goes, and the cookie for the return. Undefined: the issuer
   * does not answer.
   */
  begin(code: string): Promise<{ readonly address: string; readonly cookie: string } | undefined>;
  /**
   * Returns the account of the person who came back. Undefined: the person did not leave from this browser, or did not
   * sign in there.
   */
  finish(cookie: string | undefined, query: string): Promise<{ account: Account; code: string } | undefined>;
}

const KIND = "OutsideSignIn";
export const OUTSIDE_COOKIE = "wsfs-outside";
export const OUTSIDE_SECONDS = 600;
const TIMEOUT_SECONDS = 10;
const SCOPE = "openid profile email";

const going = z.object({ code: z.string(), state: z.string(), nonce: z.string(), verifier: z.string() });
const person = z.object({
  preferred_username: z.string().optional().catch(undefined),
  email: z.string().optional().catch(undefined),
  email_verified: z.boolean().optional().catch(undefined),
});

export function createOutsideSignIn({ outside, store, returnTo, log }: OutsideNeeds): OutsideSignIn {
  const { issuer, clientId, clientSecret } = outside;
  const oauth = () => import("openid-client");
  let known: Promise<Configuration> | undefined;

  async function discover(): Promise<Configuration> {
    const { allowInsecureRequests, ClientSecretPost, discovery, enableNonRepudiationChecks, None } = await oauth();
    const auth = clientSecret === undefined ? None() : ClientSecretPost(clientSecret);
    const insecure = issuer.startsWith("http:") ? [allowInsecureRequests] : [];
    const execute = [...insecure, enableNonRepudiationChecks];
    return discovery(new URL(issuer), clientId, {}, auth, { timeout: TIMEOUT_SECONDS, execute });
  }

  function configuration(): Promise<Configuration> {
    known ??= discover().catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  }

  /** Returns the issuer's name for the person. An email address counts only when the issuer has verified it. */
  function nameOf(claims: unknown): string {
    const { preferred_username: name, email, email_verified: isVerified } = person.parse(claims);
    return name ?? (isVerified === true ? email : undefined) ?? "";
  }

  return {
    name: new URL(issuer).host,
    async begin(code) {
      try {
        const client = await oauth();
        const verifier = client.randomPKCECodeVerifier();
        const [state, nonce, cookie] = [
          client.randomState(),
          client.randomNonce(),
          randomBytes(32).toString("base64url"),
        ];
        const address = client.buildAuthorizationUrl(await configuration(), {
          redirect_uri: returnTo,
          scope: SCOPE,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
          state,
          nonce,
        });
        store.records.upsert(KIND, cookie, { code, state, nonce, verifier }, OUTSIDE_SECONDS);
        return { address: address.href, cookie };
      } catch (err) {
        log.warn({ err }, `sign-in: ${issuer} is not reached`);
        return undefined;
      }
    },
    async finish(cookie, query) {
      const gone = going.safeParse(cookie === undefined ? undefined : store.records.findCurrent(KIND, cookie)?.payload);
      if (cookie === undefined || !gone.success) return undefined;
      store.records.destroy(KIND, cookie);
      const { code, state, nonce, verifier } = gone.data;
      try {
        const { authorizationCodeGrant, fetchUserInfo } = await oauth();
        const server = await configuration();
        const tokens = await authorizationCodeGrant(server, new URL(`${returnTo}?${query}`), {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) return undefined;
        const hasMore = nameOf(claims) === "" && server.serverMetadata().userinfo_endpoint !== undefined;
        const more = hasMore ? await fetchUserInfo(server, tokens.access_token, claims.sub) : {};
        const account = store.accounts.ofOutside(
          { issuer: claims.iss, subject: claims.sub },
          nameOf({ ...claims, ...more }),
        );
        return { account, code };
      } catch (err) {
        log.warn({ problem: problemOf(err) }, `sign-in: a person who came back from ${issuer} is not let in`);
        return undefined;
      }
    },
  };
}

/** An answer of the issuer contains secrets: its text must not get into the log. */
const problemOf = (error: unknown) =>
  error instanceof Error ? `${error.message} ${"code" in error ? String(error.code) : ""}`.trim() : "";
