/** Calls about the workspaces that a token shows. */
import { type Workspace, type WorkspacePage, workspace, workspacePage } from "../contract/resources.ts";
import { malformed } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { CallOptions, PageOptions } from "./client.ts";
import { pageQuery } from "./listings.ts";

const PAGE_SIZE = 200;
/** A list that is longer comes from a broken gateway, and might never end. */
const WORKSPACES_MAX = 100_000;

export function listWorkspacePage(send: Send, options: PageOptions = {}): Promise<WorkspacePage> {
  const { signal } = options;
  return askJson(send, { operation: "listWorkspaces", query: pageQuery(options), signal }, workspacePage);
}

export function createWorkspace(send: Send, name: string, { signal }: CallOptions = {}): Promise<Workspace> {
  const body = { kind: "json", value: { name } } as const;
  return askJson(send, { operation: "createWorkspace", body, signal }, workspace);
}

export async function listWorkspaces(send: Send, options: CallOptions = {}): Promise<Workspace[]> {
  // Kept by id, because a list that changes between two pages may show a workspace twice.
  const found = new Map<string, Workspace>();
  for (let pageNo = 1; ; pageNo += 1) {
    const page = await askJson(
      send,
      {
        operation: "listWorkspaces",
        query: { pageNo, pageSize: PAGE_SIZE, orderBy: "name" },
        signal: options.signal,
      },
      workspacePage,
    );
    const before = found.size;
    for (const workspace of page.items) found.set(workspace.id, workspace);
    if (found.size > WORKSPACES_MAX)
      throw malformed("listWorkspaces", { status: 200, headers: {} }, `more than ${WORKSPACES_MAX} workspaces`);
    // The gateway's pages may be smaller than requested. A gateway that knows no page numbers repeats the first page.
    if (found.size === before || pageNo * page.pageSize >= page.totalCount) return [...found.values()];
  }
}

export async function findWorkspace(
  send: Send,
  nameOrId: string,
  options: CallOptions = {},
): Promise<Workspace | undefined> {
  const workspaces = await listWorkspaces(send, options);
  return (
    workspaces.find((workspace) => workspace.name === nameOrId) ??
    workspaces.find((workspace) => workspace.id === nameOrId)
  );
}
