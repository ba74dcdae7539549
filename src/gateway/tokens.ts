/**
 * What a request may carry as its bearer token: an API key (accounts/api-keys.ts), or an access token, of two kinds, each
 * with its own algorithm. Those of a sign-in are checked by accounts/access-tokens.ts. Those of the gateway's command line,
 * below, are JWTs signed with HMAC-SHA-256, with `scope` (space separated), `exp`, if bound `workspace` (its id), and if of
 * an account `sub` (its id); that of an execution also has `execution`. Signed with node:crypto rather than jose: jose's
 * WebCrypto resolves on the thread pool,
 * and a gateway on a virtual clock must answer in the same order every time.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { API_KEY_PREFIX } from "../contract/api-keys.ts";
import type { Role } from "../contract/roles.ts";
import type { Clock } from "../lib/runtime.ts";
import { type AccountStore, readAccessToken } from "./accounts/index.ts";
import { unauthorized } from "./problems.ts";

/** Who calls: what its token says. */
export interface Caller {
  readonly scopes: ReadonlySet<string>;
  /** Id of the workspace the token is bound to. */
  readonly workspace: string | undefined;
  /** Undefined: a token of the gateway's command line, of no account. */
  readonly account: { readonly id: string; readonly name: string } | undefined;
  /** What the account must be for this call, in the workspace it is about. */
  readonly needs?: Role | undefined;
  /** Which mount it calls itself; which execution its token was made for. */
  readonly mount?: string | undefined;
  readonly execution?: string | undefined;
  /** False once what the token came from has ended: a sign-in, an account. */
  stands(): boolean;
  /** It is an API key, by id: nothing shortens its life. */
  readonly apiKey?: string;
  /** When the token was issued and when it says that it expires, milliseconds since the epoch. */
  readonly issued: number;
  readonly until: number;
}

/** When a token expires that is good for at most so long, whatever it says itself (0: as it says). */
export function goodUntil({ issued, until, apiKey }: Pick<Caller, "issued" | "until" | "apiKey">, lifeSeconds: number) {
  return lifeSeconds > 0 && apiKey === undefined ? Math.min(until, issued + lifeSeconds * 1000) : until;
}

export interface TokenClaims {
  readonly scopes: readonly string[];
  readonly workspace?: string | undefined;
  /** Id of the account it is of. */
  readonly account?: string | undefined;
  /** The program it is for. */
  readonly client?: string | undefined;
  /** The execution that it was made for. */
  readonly execution?: string | undefined;
  readonly ttlSeconds: number;
}

/** What a token of the command line says, whether it is good or not. */
export interface OwnToken extends Pick<TokenClaims, "workspace" | "account" | "client"> {
  /** None: it has expired or was revoked. */
  readonly secondsLeft: number;
}

/** What `createTokenCheck` needs to know of a gateway. */
export interface TokenNeeds {
  /** Signs the tokens of the command line. */
  readonly key: Uint8Array;
  readonly clock: Pick<Clock, "wallClock">;
  readonly store: AccountStore;
  /** The address that tokens of a sign-in name as their issuer. */
  issuer(): string | undefined;
  /** Whether an execution runs: its token is good for so long. */
  isRunning(execution: string): boolean;
  /** As for `goodUntil`. */
  lifeSeconds(): number;
}

const HEADER = Buffer.from(JSON.stringify({ alg: "HS256", typ: "JWT" })).toString("base64url");

const header = z.looseObject({ alg: z.literal("HS256"), crit: z.undefined().optional() });
const claims = z.looseObject({
  scope: z.string(),
  exp: z.number(),
  iat: z.number().optional(),
  nbf: z.number().optional(),
  workspace: z.string().min(1).optional(),
  sub: z.string().min(1).optional(),
  client_id: z.string().optional(),
  execution: z.string().min(1).optional(),
});

function signature(key: Uint8Array, signed: string): Buffer {
  return createHmac("sha256", key).update(signed).digest();
}

/** `after`: seconds since the epoch; all tokens issued until then have been ended. */
export function signToken(
  key: Uint8Array,
  clock: Pick<Clock, "wallClock" | "uuid">,
  token: TokenClaims,
  after = 0,
): string {
  const now = Math.floor(clock.wallClock() / 1000);
  const payload = {
    scope: token.scopes.join(" "),
    // Absent where they are undefined.
    workspace: token.workspace,
    sub: token.account,
    client_id: token.client,
    execution: token.execution,
    iat: Math.max(now, after + 1),
    exp: now + token.ttlSeconds,
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

/** Undefined: not one that this key signed. */
function readClaims(key: Uint8Array, token: string): z.infer<typeof claims> | undefined {
  const [head = "", payload = "", given = "", ...more] = token.split(".");
  if (more.length > 0 || !header.safeParse(parsePart(head)).success) return undefined;
  const expected = signature(key, `${head}.${payload}`);
  const actual = Buffer.from(given, "base64url");
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return undefined;
  // The last digit has bits that stand for nothing, and base64 other digits: one token, one spelling.
  if (given !== expected.toString("base64url")) return undefined;
  return claims.safeParse(parsePart(payload)).data;
}

export function readOwnToken(
  { key, clock, store }: Pick<TokenNeeds, "key" | "clock" | "store">,
  token: string,
): OwnToken | undefined {
  const said = readClaims(key, token);
  if (said === undefined) return undefined;
  const { iat = 0, exp, workspace, sub: account, client_id: client } = said;
  const secondsLeft = iat > store.revokedUntil() ? Math.max(0, exp - Math.floor(clock.wallClock() / 1000)) : 0;
  return { workspace, account, client, secondsLeft };
}

/** A token of an account is good as long as that is there. */
function readOwnCaller({ key, store, isRunning }: TokenNeeds, token: string): KnownToken | undefined {
  const said = readClaims(key, token);
  if (said === undefined) return undefined;
  const { scope, exp, iat = 0, nbf = 0, workspace, sub, execution } = said;
  const account = sub === undefined ? undefined : store.accounts.find(sub);
  if (sub !== undefined && account === undefined) return undefined;
  const isOf = () => account === undefined || store.accounts.find(account.id) !== undefined;
  const caller: Caller = {
    scopes: new Set(scope.split(" ").filter((name) => name !== "")),
    workspace,
    account: account === undefined ? undefined : { id: account.id, name: account.name },
    execution,
    issued: iat * 1000,
    until: exp * 1000,
    stands: () => iat > store.revokedUntil() && isOf() && (execution === undefined || isRunning(execution)),
  };
  return { caller, from: nbf * 1000 };
}

/** A token of a sign-in is good as long as that stands and its account is there. */
function readSignedInToken({ store, issuer }: TokenNeeds, token: string): KnownToken | undefined {
  const expected = issuer();
  const read = expected === undefined ? undefined : readAccessToken(store.keys, expected, token);
  const account = read === undefined ? undefined : store.accounts.find(read.account);
  if (read === undefined || account === undefined) return undefined;
  const { scopes, workspace, issued, until, from, login } = read;
  const stands = () => store.records.isLogin(login) && store.accounts.find(account.id) !== undefined;
  const { id, name } = account;
  return { caller: { scopes: new Set(scopes), workspace, account: { id, name }, issued, until, stands }, from };
}

/** A key is good as long as it is there: it goes with its account. */
function readApiKey({ store: { apiKeys, accounts } }: TokenNeeds, token: string): KnownToken | undefined {
  const row = token.startsWith(API_KEY_PREFIX) ? apiKeys.byKey(token) : undefined;
  if (row === undefined) return undefined;
  const account = row.account === null ? undefined : accounts.find(row.account);
  const caller: Caller = {
    scopes: new Set(row.scopes),
    workspace: row.workspace,
    account: account === undefined ? undefined : { id: account.id, name: account.name },
    apiKey: row.id,
    issued: row.createdAt,
    until: row.expiresAt ?? Number.POSITIVE_INFINITY,
    stands: () => apiKeys.byId(row.id) !== undefined,
  };
  // Between the two reads another process may have removed the account, which would leave a key of none: an owner's.
  return account === undefined && row.account !== null ? undefined : { caller, from: 0 };
}

/** Answers who calls by the Authorization header, or throws a 401. */
export function createTokenCheck(needs: TokenNeeds): (header: string | undefined) => Caller {
  const known = new LRUCache<string, KnownToken>({ max: 1000 });
  return (authorization) => {
    if (authorization === undefined) throw unauthorized("The request carries no access token.");
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token === undefined) throw unauthorized('Expected the header "Authorization: Bearer <ACCESS_TOKEN>".');
    let entry = known.get(token);
    if (entry === undefined) {
      entry = readApiKey(needs, token) ?? readOwnCaller(needs, token) ?? readSignedInToken(needs, token);
      if (entry === undefined) throw unauthorized("The access token is not one of this gateway's.");
      known.set(token, entry);
    }
    const { caller, from } = entry;
    const now = needs.clock.wallClock();
    if (now >= goodUntil(caller, needs.lifeSeconds())) throw unauthorized("The access token has expired.");
    if (now < from) throw unauthorized("The access token is not valid yet.");
    if (!caller.stands()) throw unauthorized("The access token has been revoked.");
    if (caller.apiKey !== undefined) needs.store.apiKeys.use(caller.apiKey);
    return caller;
  };
}
