/** Calls about the account of a token, and about the roles of accounts in a workspace. */
import {
  type AccountStatus,
  accountStatus,
  type Grant,
  type GrantPage,
  grant,
  grantPage,
} from "../contract/resources.ts";
import type { Role } from "../contract/roles.ts";
import { discard } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { CallOptions, PageOptions, WorkspaceOptions } from "./client.ts";
import { pageQuery } from "./listings.ts";

export function getAccount(send: Send, { signal }: CallOptions = {}): Promise<AccountStatus> {
  return askJson(send, { operation: "getAccount", signal }, accountStatus);
}

export function listGrants(send: Send, options: PageOptions & WorkspaceOptions = {}): Promise<GrantPage> {
  const { workspace, signal } = options;
  return askJson(send, { operation: "listGrants", query: { workspace, ...pageQuery(options) }, signal }, grantPage);
}

export function setGrant(
  send: Send,
  account: string,
  role: Role,
  { workspace, signal }: WorkspaceOptions = {},
): Promise<Grant> {
  const body = { kind: "json", value: { account, role } } as const;
  return askJson(send, { operation: "setGrant", query: { workspace }, body, signal }, grant);
}

export async function removeGrant(
  send: Send,
  account: string,
  { workspace, signal }: WorkspaceOptions = {},
): Promise<void> {
  await discard(await send({ operation: "removeGrant", query: { workspace, account }, signal }));
}
