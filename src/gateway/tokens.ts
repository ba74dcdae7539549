/**
 * Access tokens: JWTs signed with HMAC-SHA-256, with `scope` (space separated), `exp` and, if
 * bound, `workspace` (its id). Signed with node:crypto rather than jose: jose's WebCrypto resolves
 * on the thread pool, and a gateway on a virtual clock must answer in the same order every time.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Clock } from "../lib/runtime.ts";
import { unauthorized } from "./problems.ts";

/** Who calls: what its token says. */
export interface Caller {
  readonly scopes: ReadonlySet<string>;
  /** Id of the workspace the token is bound to. */
  readonly workspace: string | undefined;
  /** When the token was issued and when it says that it expires, milliseconds since the epoch. */
  readonly issued: number;
  readonly until: number;
}

/** When a token expires that is good for at most so long, whatever it says itself (0: as it says). */
export function goodUntil({ issued, until }: Pick<Caller, "issued" | "until">, lifeSeconds: number): number {
  return lifeSeconds > 0 ? Math.min(until, issued + lifeSeconds * 1000) : until;
}

export interface TokenClaims {
  readonly scopes: readonly string[];
  readonly workspace?: string | undefined;
  readonly ttlSeconds: number;
}

const HEADER = Buffer.from(JSON.stringify({ alg: "HS256", typ: "JWT" })).toString("base64url");

const header = z.looseObject({ alg: z.literal("HS256"), crit: z.undefined().optional() });
const claims = z.looseObject({
  scope: z.string(),
  exp: z.number(),
  iat: z.number().optional(),
  nbf: z.number().optional(),
  workspace: z.string().min(1).optional(),
});

function signature(key: Uint8Array, signed: string): Buffer {
  return createHmac("sha256", key).update(signed).digest();
}

export function signToken(key: Uint8Array, clock: Pick<Clock, "wallClock" | "uuid">, token: TokenClaims): string {
  const issuedAt = Math.floor(clock.wallClock() / 1000);
  const payload = {
    scope: token.scopes.join(" "),
    ...(token.workspace === undefined ? {} : { workspace: token.workspace }),
    iat: issuedAt,
    exp: issuedAt + token.ttlSeconds,
    jti: clock.uuid(),
  };
  const signed = `${HEADER}.${Buffer.from(JSON.stringify(payload)).toString("base64url")}`;
  return `${signed}.${signature(key, signed).toString("base64url")}`;
}

interface KnownToken {
  readonly caller: Caller;
  /** Milliseconds since the epoch. */
  readonly from: number;
}

function parsePart(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    return undefined;
  }
}

function readToken(key: Uint8Array, token: string): KnownToken | undefined {
  const [head = "", payload = "", given = "", ...more] = token.split(".");
  if (more.length > 0 || !header.safeParse(parsePart(head)).success) return undefined;
  const expected = signature(key, `${head}.${payload}`);
  const actual = Buffer.from(given, "base64url");
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return undefined;
  // The last digit has bits that stand for nothing, and base64 other digits: one token, one spelling.
  if (given !== expected.toString("base64url")) return undefined;
  const parsed = claims.safeParse(parsePart(payload));
  if (!parsed.success) return undefined;
  const { scope, exp, iat, nbf, workspace } = parsed.data;
  return {
    caller: {
      scopes: new Set(scope.split(" ").filter((name) => name !== "")),
      workspace,
      issued: (iat ?? 0) * 1000,
      until: exp * 1000,
    },
    from: (nbf ?? 0) * 1000,
  };
}

/** Answers who calls by the Authorization header, or throws a 401. `lifeSeconds` as for `goodUntil`. */
export function createTokenCheck(
  key: Uint8Array,
  clock: Pick<Clock, "wallClock">,
  lifeSeconds: () => number,
): (header: string | undefined) => Caller {
  const known = new LRUCache<string, KnownToken>({ max: 1000 });
  return (authorization) => {
    if (authorization === undefined) throw unauthorized("The request carries no access token.");
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token === undefined) throw unauthorized('Expected the header "Authorization: Bearer <ACCESS_TOKEN>".');
    let entry = known.get(token);
    if (entry === undefined) {
      entry = readToken(key, token);
      if (entry === undefined) throw unauthorized("The access token is not one of this gateway's.");
      known.set(token, entry);
    }
    const now = clock.wallClock();
    if (now >= goodUntil(entry.caller, lifeSeconds())) throw unauthorized("The access token has expired.");
    if (now < entry.from) throw unauthorized("The access token is not valid yet.");
    return entry.caller;
  };
}
