/**
 * The bearer tokens of a request: an API key (accounts/api-keys.ts), or an access token of two kinds, each with its own
 * algorithm. Tokens of a sign-in are checked by accounts/access-tokens.ts. Tokens of the gateway's command line, below,
 * are JWTs signed with HMAC-SHA-256. They have `scope` (space separated), `exp`, `workspace` (its id) if bound, and
 * `sub` (its id) if they belong to an account; the token of an execution also has `execution`. They are signed with
 * node:crypto rather than jose: jose's WebCrypto resolves on the thread pool, and a gateway on a virtual clock must
 * answer in the same order every time.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { API_KEY_PREFIX } from "../contract/api-keys.ts";
import type { Role } from "../contract/roles.ts";
import type { Clock } from "../lib/runtime.ts";
import { type AccountStore, readAccessToken } from "./accounts/index.ts";
import { unauthorized } from "./problems.ts";

/** The caller, as its token describes it. */
export interface Caller {
  readonly scopes: ReadonlySet<string>;
  /** Id of the workspace the token is bound to. */
  readonly workspace: string | undefined;
  /** Undefined: a token of the gateway's command line, without an account. */
  readonly account: { readonly id: string; readonly name: string } | undefined;
  /** Required role of the account for this call, in the workspace of the call. */
  readonly needs?: Role | undefined;
  /** The mount that the caller names, and the execution its token was made for. */
  readonly mount?: string | undefined;
  readonly execution?: string | undefined;
  /** False once the source of the token has ended: a sign-in, an account. */
  stands(): boolean;
  /** Id of the API key, if the token is one: nothing shortens its life. */
  readonly apiKey?: string;
  /** When the token was issued, and its own expiry, in milliseconds since the epoch. */
  readonly issued: number;
  readonly until: number;
}

/** Returns the expiry, in milliseconds since the epoch. `lifeSeconds`: a further limit of the lifetime; 0: none. */
export function goodUntil({ issued, until, apiKey }: Pick<Caller, "issued" | "until" | "apiKey">, lifeSeconds: number) {
  return lifeSeconds > 0 && apiKey === undefined ? Math.min(until, issued + lifeSeconds * 1000) : until;
}

export interface TokenClaims {
  readonly scopes: readonly string[];
  readonly workspace?: string | undefined;
  /** Id of the account. */
  readonly account?: string | undefined;
  /** The program that uses the token. */
  readonly client?: string | undefined;
  /** The execution that the token was made for. */
  readonly execution?: string | undefined;
  readonly ttlSeconds: number;
}

/** The claims of a token of the command line, valid or not. */
export interface OwnToken extends Pick<TokenClaims, "workspace" | "account" | "client"> {
  /** 0: it has expired or was revoked. */
  readonly secondsLeft: number;
}

/** The parts of a gateway that `createTokenCheck` needs. */
interface TokenNeeds {
  /** Signs the tokens of the command line. */
  readonly key: Uint8Array;
  readonly clock: Pick<Clock, "wallClock">;
  readonly store: AccountStore;
  /** Returns the address that tokens of a sign-in name as their issuer. */
  issuer(): string | undefined;
  /** True if an execution runs: its token is valid for that long. */
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

/** `after`: seconds since the epoch; all tokens issued until then are revoked. */
export function signToken(
  key: Uint8Array,
  clock: Pick<Clock, "wallClock" | "uuid">,
  token: TokenClaims,
  after = 0,
): string {
  const now = Math.floor(clock.wallClock() / 1000);
  const payload = {
    scope: token.scopes.join(" "),
    // Left out when undefined.
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

/** Undefined: this key did not sign the token. */
function readClaims(key: Uint8Array, token: string): z.infer<typeof claims> | undefined {
  const [head = "", payload = "", given = "", ...more] = token.split(".");
  if (more.length > 0 || !header.safeParse(parsePart(head)).success) return undefined;
  const expected = signature(key, `${head}.${payload}`);
  const actual = Buffer.from(given, "base64url");
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return undefined;
  // The last digit has unused bits, and base64 has other digits: one token must have one spelling.
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

/** A token of an account is valid as long as the account exists. */
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

/** A token of a sign-in is valid as long as the sign-in and its account exist. */
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

/** A key is valid as long as it exists: it is removed with its account. */
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
  // Between the two reads another process may have removed the account. That would leave a key without an account,
  // which has the rights of an owner.
  return account === undefined && row.account !== null ? undefined : { caller, from: 0 };
}

/** Returns the caller of an Authorization header, or throws a 401. */
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
