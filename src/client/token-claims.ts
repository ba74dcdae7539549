/**
 * What an access token says of itself. Read without verifying, as a hint for early, clear answers;
 * the gateway decides. Opaque tokens say nothing.
 */
import { z } from "zod";

export interface TokenClaims {
  /** Undefined when the token does not name its scopes. */
  readonly scopes?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
  /** The workspace (name or id) the token is bound to. */
  readonly workspace?: string;
}

const claims = z.object({
  scope: z
    .union([z.string().transform((text) => text.split(/\s+/).filter((scope) => scope !== "")), z.array(z.string())])
    .optional()
    .catch(undefined),
  exp: z.number().nonnegative().optional().catch(undefined),
  workspace: z.string().min(1).optional().catch(undefined),
});

/** The claims of a JWT, unverified; undefined for an opaque token. */
export function describeToken(token: string): TokenClaims | undefined {
  const [header, payload, signature, ...rest] = token.split(".");
  if (header === undefined || payload === undefined || signature === undefined || rest.length > 0) return undefined;
  if (decodeObject(header) === undefined) return undefined;
  const parsed = claims.safeParse(decodeObject(payload));
  if (!parsed.success) return undefined;
  const { scope, exp, workspace } = parsed.data;
  return {
    ...(scope === undefined ? undefined : { scopes: scope }),
    ...(exp === undefined ? undefined : { expiresAt: exp * 1000 }),
    ...(workspace === undefined ? undefined : { workspace }),
  };
}

function decodeObject(part: string): object | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(part)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
