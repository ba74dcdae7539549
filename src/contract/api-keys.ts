/** API keys as schemas (gateway-spec §2; their fields are our own). */
import { z } from "zod";
import { accountRef, id, moment, page, workspaceRef } from "./resources.ts";
import { KEY_SCOPES } from "./scopes.ts";

/** Every key begins with this, so that a key in a file or a log is recognised. */
export const API_KEY_PREFIX = "wsfs_key_";

/**
 * Removes the secret part of API keys, also of percent-encoded ones, from text for a log or an answer, wherever a
 * caller put the key.
 */
export const withoutApiKeys = (text: string) =>
  text.replace(/wsfs(?:_|%5f)key(?:_|%5f)[\w%-]+/gi, `${API_KEY_PREFIX}…`);

export const apiKey = z
  .object({
    id,
    name: z.string(),
    account: accountRef.nullable().describe("Whose it is; null: of no account, as the token that made it"),
    workspace: workspaceRef.describe("The only workspace it is good for"),
    scopes: z.array(z.string()),
    createdAt: moment,
    expiresAt: moment.nullable().describe("null: it does not expire"),
    lastUsedAt: moment.nullable().describe("To the minute; null: never"),
  })
  .meta({ id: "ApiKey", description: "A key that a program calls with, as with an access token" });
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
        "What it may do: of those of the token that makes it, else 403 naming the first that lacks. Not account.key.create: a key makes no other",
      ),
    expiresAt: z.iso.datetime({ offset: true }).optional().describe("A moment to come; without one it does not expire"),
  })
  .meta({ id: "NewApiKey", description: "What the key may do, and for how long" });
export type NewApiKey = z.infer<typeof newApiKey>;
