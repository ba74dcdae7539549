/** API keys over HTTP: created, listed, revoked. */
import type { ApiKey, CreatedApiKey } from "../contract/api-keys.ts";
import { checkAccess } from "./access.ts";
import type { ApiKeyRow } from "./accounts/index.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { lastChange } from "./lag.ts";
import { pageOfItems } from "./paging.ts";
import { invalid, missingScope, notFound, unauthorized } from "./problems.ts";
import { callWorkspace, type WorkspaceRow } from "./workspaces.ts";

/**
 * A key may permit no more than the token that creates it. A key cannot create another one (contract/scopes.ts), so
 * that no key outlives the one that made it.
 */
export function createApiKey(context: Context, call: Call<"createApiKey">): GatewayAnswer {
  const { caller, json } = call;
  const workspace = callWorkspace(context, caller, call.query.workspace);
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  const scopes = [...new Set(json.scopes)];
  const lacking = scopes.find((scope) => !caller.scopes.has(scope));
  if (lacking !== undefined) throw missingScope(lacking);
  const expiresAt = json.expiresAt === undefined ? null : Date.parse(json.expiresAt);
  if (expiresAt !== null && expiresAt <= context.clock.wallClock()) {
    throw invalid("expiresAt", `expiresAt: expected a future moment, got ${json.expiresAt}`);
  }
  const account = caller.account?.id ?? null;
  const made = context.apiKeys.create({ name: json.name, account, workspace: workspace.id, scopes, expiresAt });
  if (made === undefined) throw unauthorized("The account of the access token was removed.");
  const created: CreatedApiKey = { ...shown(context, workspace, made.row), key: made.key };
  return jsonAnswer(201, created, { "cache-control": "no-store" });
}

const FIELDS = [
  "id",
  "name",
  "account",
  "workspace",
  "scopes",
  "createdAt",
  "expiresAt",
  "lastUsedAt",
] as const satisfies readonly (keyof ApiKey)[];

export function listApiKeys(context: Context, call: Call<"listApiKeys">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const items = context.apiKeys.list(workspace.id).map((row) => shown(context, workspace, row));
  const by = (field: (typeof FIELDS)[number]) => (item: ApiKey) => {
    if (field === "account" || field === "workspace") return item[field]?.name ?? "";
    return field === "scopes" ? item.scopes.join(" ") : (item[field] ?? "");
  };
  const { position: asOf } = lastChange(context.store);
  return jsonAnswer(200, pageOfItems(call.query, { items, fields: FIELDS, fallback: "name", by, asOf }));
}

export function revokeApiKey(context: Context, { caller, parameters }: Call<"revokeApiKey">): GatewayAnswer {
  // The message does not contain the id, because a caller may have sent the key itself.
  const unseen = () => notFound("There is no API key of this id.");
  const row = context.apiKeys.byId(parameters.keyId);
  if (row === undefined) throw unseen();
  checkAccess(context, caller, row.workspace, unseen);
  context.apiKeys.remove(row.id);
  // A caller that reads a stream with this key must be checked again.
  context.news.fire([row.workspace]);
  return { status: 204, headers: {} };
}

function shown(context: Context, workspace: WorkspaceRow, row: ApiKeyRow): ApiKey {
  const moment = (time: number | null) => (time === null ? null : new Date(time).toISOString());
  const account = row.account === null ? undefined : context.accounts.find(row.account);
  return {
    id: row.id,
    name: row.name,
    account: account === undefined ? null : { id: account.id, name: account.name },
    workspace: { id: workspace.id, name: workspace.name },
    scopes: [...row.scopes],
    createdAt: new Date(row.createdAt).toISOString(),
    expiresAt: moment(row.expiresAt),
    lastUsedAt: moment(row.usedAt),
  };
}
