/** API keys of a workspace: what services call with. */
import type { ApiKey, CreatedApiKey } from "../../contract/api-keys.ts";
import { type Context, type RequestOptions, read, removed } from "./context.ts";
import { moment } from "./nodes.ts";
import { type Paged, paged } from "./paged.ts";

export interface ApiKeyOptions extends RequestOptions {
  /** Name or id. Default: that of `connect`. */
  readonly workspace?: string | undefined;
}

export interface NewApiKeyOptions extends ApiKeyOptions {
  /** Without one it does not expire. */
  readonly expiresAt?: Date | string | undefined;
}

export interface ApiKeyListOptions extends ApiKeyOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
}

/** For an owner of the workspace, else "forbidden". */
export interface ApiKeys {
  /**
   * The key is in the answer, this once: `staticToken(made.key)` calls with it. `scopes`: of those of the token that makes
   * it. Sent once: where the answer is lost ("offline"), look into the list and revoke it. Scope: account.key.create.
   */
  create(name: string, scopes: readonly string[], options?: NewApiKeyOptions): Promise<CreatedApiKey>;
  /** Scope: account.key.read. */
  list(options?: ApiKeyListOptions): Paged<ApiKey>;
  /** At once; `keyId` is its id, not the key. Scope: account.key.delete. */
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
