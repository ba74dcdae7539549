/** The workspaces that a token shows. */
import type { Workspace } from "../../contract/resources.ts";
import { type Context, type RequestOptions, read } from "./context.ts";
import { type Paged, paged } from "./paged.ts";

export interface WorkspaceListOptions extends RequestOptions {
  /** 1..1000; the gateway's default is 50. */
  readonly pageSize?: number | undefined;
  /** A field of the workspace; `-field` sorts in descending order. Default: name. */
  readonly orderBy?: string | undefined;
}

/** `quota` and `used` are bytes, if the gateway tells them (gateway-spec §2). Scope: account.workspace.read. */
export interface Workspaces {
  /**
   * Creates a workspace; the caller becomes its owner. "conflict": the name is taken, possibly by an earlier call whose
   * answer was lost. "invalid" (field "name"): the name looks like an id. "forbidden": the token is bound to a
   * workspace. Scope: account.workspace.create.
   */
  create(name: string, options?: RequestOptions): Promise<Workspace>;
  /** The workspaces that the token shows. */
  list(options?: WorkspaceListOptions): Paged<Workspace>;
  /** By name or id. Undefined: the token shows no such workspace. A name goes before an id. */
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
