/**
 * Checks the access tokens that the OAuth server issues: JWTs (RFC 9068), signed with a key of signing-keys.ts. The
 * algorithm is that of the key which `kid` names, whatever the token's header asks for.
 */
import { verify } from "node:crypto";
import { z } from "zod";
import type { SigningKeys } from "./signing-keys.ts";

interface AccessToken {
  /** Id of the account. */
  readonly account: string;
  readonly scopes: readonly string[];
  /** Id of the workspace that the token is bound to. */
  readonly workspace: string | undefined;
  /** The sign-in that it comes from. The token ends with it. */
  readonly login: string;
  /** Milliseconds since the epoch. */
  readonly issued: number;
  readonly from: number;
  readonly until: number;
}

const header = z.object({
  alg: z.string(),
  kid: z.string().min(1),
  typ: z.string().regex(/^(?:application\/)?at\+jwt$/i),
  crit: z.undefined().optional(),
});
const claims = z.object({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  sub: z.string().min(1),
  client_id: z.string(),
  scope: z.string().default(""),
  iat: z.number(),
  exp: z.number(),
  nbf: z.number().optional(),
  jti: z.string(),
  login: z.string().min(1),
  workspace: z.string().min(1).optional(),
});

/** Undefined: it is not a token of this issuer. Whether the token is valid now is for the caller to check. */
export function readAccessToken(keys: SigningKeys, issuer: string, token: string): AccessToken | undefined {
  const [head = "", payload = "", signature = "", ...more] = token.split(".");
  if (more.length > 0) return undefined;
  const said = header.safeParse(decode(head));
  if (!said.success) return undefined;
  const key = keys.publicKey(said.data.kid, said.data.alg);
  const bytes = Buffer.from(signature, "base64url");
  // Base64url can write the same bytes in several ways; only one of them is this token.
  if (key === undefined || bytes.toString("base64url") !== signature) return undefined;
  const signed = Buffer.from(`${head}.${payload}`);
  if (!verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, bytes)) return undefined;
  const parsed = claims.safeParse(decode(payload));
  if (!parsed.success) return undefined;
  const { iss, aud, sub, scope, iat, exp, nbf, login, workspace } = parsed.data;
  if (iss !== issuer || ![aud].flat().includes(issuer)) return undefined;
  return {
    account: sub,
    scopes: scope.split(" ").filter((name) => name !== ""),
    workspace,
    login,
    issued: iat * 1000,
    from: (nbf ?? 0) * 1000,
    until: exp * 1000,
  };
}

function decode(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString());
  } catch {
    return undefined;
  }
}
