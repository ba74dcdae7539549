/** Whose the token is, and who may do what in a workspace. */
import type { AccountStatus, Grant } from "../../contract/resources.ts";
import type { Role } from "../../contract/roles.ts";
import { type Context, type RequestOptions, read } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface GrantOptions extends RequestOptions {
  /** Name or id. Default: the connection's. */
  readonly workspace?: string | undefined;
}

export interface GrantListOptions extends GrantOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
}

export interface AccountCalls {
  /** Whose the token is, what it may do and where. Any token that is good; else "unauthorized". */
  get(options?: RequestOptions): Promise<AccountStatus>;
  /** Scope: account.grant.read; an owner of the workspace, else "forbidden". */
  grants(options?: GrantListOptions): Paged<Grant>;
  /** `account`: name or id, else "notFound". "conflict": a workspace keeps an owner. Scope: account.grant.update. */
  grant(account: string, role: Role, options?: GrantOptions): Promise<Grant>;
  /** As `grant`; no error where the account had no role. */
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
    // Sent twice they leave what they left: both are retried as reads are.
    grant: (account, role, options = {}) =>
      read(context, options, (client) => client.setGrant(account, role, where(options))),
    revoke: (account, options = {}) => read(context, options, (client) => client.removeGrant(account, where(options))),
  };
}
