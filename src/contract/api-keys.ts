/** API keys as schemas (gateway-spec §2; their fields are our own). */
import { z } from "zod";
import { accountRef, id, moment, page, workspaceRef } from "./resources.ts";
import { KEY_SCOPES } from "./scopes.ts";

/** Every key begins with this, so that a key in a file or a log is recognised. */
export const API_KEY_PREFIX = "wsfs_key_";

/**
 * Removes the secret part of all API keys from text for a log or an answer. A caller may put a key anywhere, also
 * percent-encoded.
 */
export const withoutApiKeys = (text: string) =>
  text.replace(/wsfs(?:_|%5f)key(?:_|%5f)[\w%-]+/gi, `${API_KEY_PREFIX}…`);

export const apiKey = z
  .object({
    id,
    name: z.string(),
    account: accountRef.nullable().describe("The account it belongs to; null: none, like the token that made it"),
    workspace: workspaceRef.describe("The only workspace in which it is valid"),
    scopes: z.array(z.string()),
    createdAt: moment,
    expiresAt: moment.nullable().describe("null: it does not expire"),
    lastUsedAt: moment.nullable().describe("The last use, to the minute; null: never used"),
  })
  .meta({ id: "ApiKey", description: "A key that a program sends in the place of an access token" });
export type ApiKey = z.infer<typeof apiKey>;
export const apiKeyPage = page(apiKey).meta({ id: "ApiKeyPage" });
export type ApiKeyPage = z.infer<typeof apiKeyPage>;

export const createdApiKey = apiKey
  .extend({ key: z.string().describe("The key itself, shown this once: the gateway keeps a hash of it") })
  .meta({ id: "CreatedApiKey", description: "A new key" });
export type CreatedApiKey = z.infer<typeof createdApiKey>;

export const newApiKey = z
  .strictObject({
    name: z.string().min(1).max(128).describe("For people; need not be unique"),
    scopes: z
      .array(z.enum(KEY_SCOPES))
      .min(1)
      .describe(
        "Only scopes of the token that makes it, else 403 naming the first that it lacks. Never account.key.create: a key makes no other key",
      ),
    expiresAt: z.iso
      .datetime({ offset: true })
      .optional()
      .describe("A future moment; a key without one does not expire"),
  })
  .meta({ id: "NewApiKey", description: "The name, scopes and expiry of a new key" });
export type NewApiKey = z.infer<typeof newApiKey>;
