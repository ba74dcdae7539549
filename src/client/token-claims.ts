/**
 * The claims of an access token. They are not verified: they only allow early and clear errors, and the gateway
 * decides. Opaque tokens have no claims that can be read.
 */
export interface TokenClaims {
  /** Undefined when the token does not name its scopes. */
  readonly scopes?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
  /** The workspace (name or id) that the token is bound to. */
  readonly workspace?: string;
}

const MARGIN_MS = 30_000;

/** A token is replaced half a minute before it expires, or after half of its life if that is later. */
export function replacementTime(begun: number, expiresAt: number): number {
  return Math.max(expiresAt - MARGIN_MS, begun + (expiresAt - begun) / 2);
}

/** The claims of a JWT, unverified; undefined for an opaque token. */
export function describeToken(token: string): TokenClaims | undefined {
  const [header, payload, signature, ...rest] = token.split(".");
  if (header === undefined || payload === undefined || signature === undefined || rest.length > 0) return undefined;
  if (decodeObject(header) === undefined) return undefined;
  const claims = decodeObject(payload);
  if (claims === undefined) return undefined;
  const { exp, workspace } = claims;
  const scopes = readScopes(claims.scope);
  return {
    ...(scopes === undefined ? undefined : { scopes }),
    ...(typeof exp === "number" && exp >= 0 ? { expiresAt: exp * 1000 } : undefined),
    ...(typeof workspace === "string" && workspace !== "" ? { workspace } : undefined),
  };
}

/** Words in one text, as in RFC 8693, or a list. */
function readScopes(value: unknown): readonly string[] | undefined {
  if (typeof value === "string") return value.split(/\s+/).filter((scope) => scope !== "");
  return Array.isArray(value) && value.every((scope) => typeof scope === "string") ? value : undefined;
}

function decodeObject(part: string): Readonly<Record<string, unknown>> | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(part)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
