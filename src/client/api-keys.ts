/** Calls that create, list and revoke API keys. */
import { type ApiKeyPage, apiKeyPage, type CreatedApiKey, createdApiKey } from "../contract/api-keys.ts";
import { discard } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { ApiKeyOptions, CallOptions, PageOptions, WorkspaceOptions } from "./client.ts";
import { pageQuery } from "./listings.ts";

export function createApiKey(
  send: Send,
  name: string,
  scopes: readonly string[],
  { workspace, expiresAt, signal }: ApiKeyOptions = {},
): Promise<CreatedApiKey> {
  const body = { kind: "json", value: { name, scopes, expiresAt } } as const;
  return askJson(send, { operation: "createApiKey", query: { workspace }, body, signal }, createdApiKey);
}

export function listApiKeys(send: Send, options: PageOptions & WorkspaceOptions = {}): Promise<ApiKeyPage> {
  const { workspace, signal } = options;
  return askJson(send, { operation: "listApiKeys", query: { workspace, ...pageQuery(options) }, signal }, apiKeyPage);
}

export async function revokeApiKey(send: Send, keyId: string, { signal }: CallOptions = {}): Promise<void> {
  await discard(await send({ operation: "revokeApiKey", parameters: { keyId }, signal }));
}
