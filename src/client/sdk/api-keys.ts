/** API keys of a workspace. Services call the gateway with them. */
import type { ApiKey, CreatedApiKey } from "../../contract/api-keys.ts";
import { type Context, type RequestOptions, read, removed } from "./context.ts";
import { moment } from "./nodes.ts";
import { type Paged, paged } from "./paged.ts";

export interface ApiKeyOptions extends RequestOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

export interface NewApiKeyOptions extends ApiKeyOptions {
  /** Absent: the key does not expire. */
  readonly expiresAt?: Date | string | undefined;
}

export interface ApiKeyListOptions extends ApiKeyOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
}

/** All calls fail with "forbidden" unless the account is an owner of the workspace. */
export interface ApiKeys {
  /**
   * Creates a key. Only this answer contains it: `staticToken(made.key)` calls with it. "forbidden": a scope is not
   * among those of the token that creates it. "invalid" (field "expiresAt"): the moment is past. The call is not
   * repeated when its answer is lost ("offline"): look for the key in the list then, and revoke it. Scope:
   * account.key.create.
   */
  create(name: string, scopes: readonly string[], options?: NewApiKeyOptions): Promise<CreatedApiKey>;
  /** The keys without their secrets. Scope: account.key.read. */
  list(options?: ApiKeyListOptions): Paged<ApiKey>;
  /**
   * Revokes a key at once. `keyId` is its id, not the key. "notFound": there is no such key. Scope: account.key.delete.
   */
  revoke(keyId: string, options?: RequestOptions): Promise<void>;
}

export function createApiKeys(context: Context): ApiKeys {
  return {
    create(name, scopes, options = {}) {
      const { workspace = context.workspace, expiresAt, signal } = options;
      return context.retrier.run(
        "unkeyed",
        async () =>
          (await context.load()).createApiKey(name, scopes, { workspace, expiresAt: moment(expiresAt), signal }),
        options,
      );
    },
    list(options = {}) {
      const { workspace = context.workspace, pageSize, signal } = options;
      return paged((which) =>
        read(context, options, (client) => client.listApiKeys({ ...which, workspace, pageSize, signal })),
      );
    },
    revoke: (keyId, options = {}) => removed(context, options, (client) => client.revokeApiKey(keyId, options)),
  };
}
