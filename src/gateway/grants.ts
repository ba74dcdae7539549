/** Accounts and grants over HTTP: the account of a token, and the roles of accounts in a workspace. */
import type { AccountStatus, Grant } from "../contract/resources.ts";
import type { Membership } from "./accounts/index.ts";
import type { Context } from "./context.ts";
import { type Call, type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { lastChange } from "./lag.ts";
import { pageOfItems } from "./paging.ts";
import { conflict, invalid, notFound } from "./problems.ts";
import { type Caller, goodUntil } from "./tokens.ts";
import { callWorkspace, findWorkspace, type WorkspaceRow } from "./workspaces.ts";

export function getAccount(context: Context, { caller }: Call<"getAccount">): GatewayAnswer {
  const { account = null, scopes, workspace = null } = caller;
  const until = goodUntil(caller, context.options.tokenSeconds);
  const status: AccountStatus = {
    account,
    scopes: [...scopes],
    workspace,
    expiresAt: until === Number.POSITIVE_INFINITY ? null : new Date(until).toISOString(),
    workspaces: usableWorkspaces(context, caller),
  };
  return jsonAnswer(200, status);
}

/** Returns the workspaces in which the caller may do something, ordered by name. */
function usableWorkspaces(context: Context, caller: Caller): AccountStatus["workspaces"] {
  const { store, accounts } = context;
  const all = store.prepare<WorkspaceRow>("SELECT id, name, root, used FROM workspace ORDER BY name").all();
  const roles = new Map(
    caller.account === undefined
      ? all.map(({ id }) => [id, "owner"] as const)
      : accounts.memberships({ account: caller.account.id }).map(({ workspace, role }) => [workspace, role] as const),
  );
  return all.flatMap(({ id, name }) => {
    const role = roles.get(id);
    const isOurs = caller.workspace === undefined || caller.workspace === id;
    return role === undefined || !isOurs ? [] : [{ id, name, role }];
  });
}

const FIELDS = ["id", "account", "workspace", "role", "createdAt"] as const;

export function listGrants(context: Context, call: Call<"listGrants">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const items = context.accounts.memberships({ workspace: workspace.id }).map((one) => shown(workspace, one));
  const by = (field: (typeof FIELDS)[number]) => (item: Grant) =>
    field === "account" || field === "workspace" ? item[field].name : item[field];
  const { position: asOf } = lastChange(context.store);
  return jsonAnswer(200, pageOfItems(call.query, { items, fields: FIELDS, fallback: "account", by, asOf }));
}

export function setGrant(context: Context, call: Call<"setGrant">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const { json } = call;
  if (json === undefined) throw invalid("body", "body: expected a JSON object (content-type application/json)");
  const account = context.accounts.find(json.account);
  if (account === undefined) throw notFound(`account: there is no account ${JSON.stringify(json.account)}.`);
  if (json.role !== "owner") checkOwnerLeft(context, workspace, account.id);
  context.accounts.setRole(account.id, workspace.id, json.role);
  const [made] = context.accounts.memberships({ account: account.id, workspace: workspace.id });
  if (made === undefined) throw conflict("The account was removed meanwhile.");
  return jsonAnswer(200, shown(workspace, made));
}

export function removeGrant(context: Context, call: Call<"removeGrant">): GatewayAnswer {
  const workspace = callWorkspace(context, call.caller, call.query.workspace);
  const account = context.accounts.find(call.query.account);
  if (account === undefined) throw notFound(`account: there is no account ${JSON.stringify(call.query.account)}.`);
  checkOwnerLeft(context, workspace, account.id);
  context.accounts.removeRole(account.id, workspace.id);
  return { status: 204, headers: {} };
}

/** Only the command line could give a workspace without an owner a new one. */
function checkOwnerLeft({ accounts }: Context, workspace: WorkspaceRow, leaving: string): void {
  const owners = accounts.memberships({ workspace: workspace.id }).filter(({ role }) => role === "owner");
  if (owners.length !== 1 || owners[0]?.account.id !== leaving) return;
  throw conflict(`${owners[0].account.name} is the only owner of the workspace: make another account an owner first.`);
}

function shown(workspace: WorkspaceRow, { account, role, createdAt }: Membership): Grant {
  return {
    id: `${workspace.id}.${account.id}`,
    account: { id: account.id, name: account.name },
    workspace: { id: workspace.id, name: workspace.name },
    role,
    createdAt: new Date(createdAt).toISOString(),
  };
}

/** Returns the workspaces that an account may use, ordered by id, for the page on which it signs a program in. */
export function workspacesOfAccount(context: Context, account: string) {
  return context.accounts.memberships({ account }).flatMap(({ workspace, role }) => {
    const row = findWorkspace(context.store, workspace);
    return row === undefined ? [] : [{ id: row.id, name: row.name, role }];
  });
}
