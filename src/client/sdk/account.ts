/** Calls about the token's account, and about the roles of accounts in a workspace. */
import type { AccountStatus, Grant } from "../../contract/resources.ts";
import type { Role } from "../../contract/roles.ts";
import { type Context, type RequestOptions, read } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface GrantOptions extends RequestOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

export interface GrantListOptions extends GrantOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
}

export interface AccountCalls {
  /** The account of the token, its scopes and its workspaces. Any valid token may ask; otherwise "unauthorized". */
  get(options?: RequestOptions): Promise<AccountStatus>;
  /**
   * The roles of all accounts in the workspace. "forbidden": not an owner of the workspace. Scope: account.grant.read.
   */
  grants(options?: GrantListOptions): Paged<Grant>;
  /**
   * Gives an account (name or id) a role, in place of an earlier one. "notFound": there is no such account. "conflict":
   * the workspace would lose its only owner. "forbidden": not an owner. Scope: account.grant.update.
   */
  grant(account: string, role: Role, options?: GrantOptions): Promise<Grant>;
  /** Takes the account's role away. No error if it had none; other errors and scope as for `grant`. */
  revoke(account: string, options?: GrantOptions): Promise<void>;
}

export function createAccountCalls(context: Context): AccountCalls {
  const where = ({ workspace = context.workspace, signal }: GrantOptions) => ({ workspace, signal });
  return {
    get: (options = {}) => read(context, options, (client) => client.getAccount({ signal: options.signal })),
    grants: (options = {}) =>
      paged((which) =>
        read(context, options, (client) =>
          client.listGrants({ ...which, pageSize: options.pageSize, ...where(options) }),
        ),
      ),
    // Repeated, both have the same result, so they are retried like reads.
    grant: (account, role, options = {}) =>
      read(context, options, (client) => client.setGrant(account, role, where(options))),
    revoke: (account, options = {}) => read(context, options, (client) => client.removeGrant(account, where(options))),
  };
}
