/** The workspaces a token shows. */
import type { Workspace } from "../../contract/resources.ts";
import { type Context, type RequestOptions, read } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface WorkspaceListOptions extends RequestOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** A field of the workspace, `-field` for descending. Default: name. */
  readonly orderBy?: string | undefined;
}

/** `quota` and `used` are bytes, where the gateway says them (gateway-spec §2). Scope: account.workspace.read. */
export interface Workspaces {
  /** A new one, whose maker is its owner. "conflict": the name is taken, also by this call where its first answer was lost. Scope: account.workspace.create. */
  create(name: string, options?: RequestOptions): Promise<Workspace>;
  list(options?: WorkspaceListOptions): Paged<Workspace>;
  /** By name or id; undefined when the token shows none such. */
  find(nameOrId: string, options?: RequestOptions): Promise<Workspace | undefined>;
}

const PAGE_SIZE = 200;

export function createWorkspaces(context: Context): Workspaces {
  const list = (options: WorkspaceListOptions = {}) => {
    const { pageSize, orderBy, signal } = options;
    return paged((which) =>
      read(context, options, (client) => client.listWorkspacePage({ ...which, pageSize, orderBy, signal })),
    );
  };
  return {
    create: (name, options = {}) =>
      context.retrier.run("unkeyed", async () => (await context.load()).createWorkspace(name, options), options),
    list,
    async find(nameOrId, options = {}) {
      let byId: Workspace | undefined;
      for await (const workspace of list({ ...options, pageSize: PAGE_SIZE })) {
        if (workspace.name === nameOrId) return workspace;
        if (workspace.id === nameOrId) byId = workspace;
      }
      return byId;
    },
  };
}
