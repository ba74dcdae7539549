/** Access tokens as the OAuth server issues them, without the way through it. */
import { createPrivateKey, sign } from "node:crypto";
import { SCOPES } from "../../src/contract/scopes.ts";
import { type Account, type AccountStore, LOGIN } from "../../src/gateway/accounts/index.ts";

export const ISSUER = "http://gateway.test";

export interface TokenChoice {
  readonly scopes?: readonly string[];
  /** Id of the workspace it is bound to. */
  readonly workspace?: string;
  /** The sign-in it comes from; made when it is not there. */
  readonly login?: string;
}

export function accountToken(
  { keys, records }: AccountStore,
  clock: { wallClock(): number },
  account: Account,
  { scopes = SCOPES, workspace, login = `login-of-${account.name}` }: TokenChoice = {},
): string {
  if (!records.isLogin(login)) records.upsert(LOGIN, login, { accountId: account.id }, undefined);
  const [key] = keys.all();
  if (key === undefined) throw new Error("There is no key.");
  const now = Math.floor(clock.wallClock() / 1000);
  const claims = { iss: ISSUER, aud: ISSUER, sub: account.id, client_id: "wsfs", scope: scopes.join(" ") };
  const payload = { ...claims, iat: now, exp: now + 300, jti: `${now}`, login, workspace };
  const text = [{ alg: "ES256", kid: key.kid, typ: "at+jwt" }, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  const privateKey = createPrivateKey({ key: { ...key }, format: "jwk" });
  return `${text}.${sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

/** An account without a password: hashing one takes a while. */
export function newAccount({ accounts }: AccountStore, name: string): Account {
  return accounts.ofOutside({ issuer: "https://id.example.com", subject: name }, name);
}
