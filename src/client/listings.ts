/** Lists in pages of one position, or by number: the nodes of a folder, the versions of a file. */
import { type NodePage, nodePage, type VersionPage, versionPage } from "../contract/resources.ts";
import { askJson, type Call, type Send } from "./call.ts";
import type { ListOptions, NodeListOptions, PageOptions, VersionListOptions } from "./client.ts";

/** The query for a page. `after=` (empty for the first page) asks for pages of one position. */
export function pageQuery(options: PageOptions) {
  const { pageNo, pageSize, orderBy } = options;
  return { after: options.after ?? (pageNo === undefined ? "" : undefined), pageNo, pageSize, orderBy };
}

/** False is left out, because an absent flag means false. */
export const flag = (value: boolean | undefined) => (value === true ? "true" : undefined);

export function listFolder(send: Send, parentId: string, options: ListOptions = {}): Promise<NodePage> {
  // An intermediate cache that ignores the query would return another folder's nodes.
  return listNodes(send, { ...options, parentId }, ({ items }) =>
    items.every((node) => node.parentId === parentId) ? undefined : "the answer holds nodes of another folder",
  );
}

export function listNodes(
  send: Send,
  options: NodeListOptions = {},
  faultOf?: (page: NodePage) => string | undefined,
): Promise<NodePage> {
  const { path, parentId, workspace, name, recursive, at, branch, deleted, signal } = options;
  const flags = { recursive: flag(recursive), deleted: flag(deleted) };
  const query = { path, parentId, workspace, name, at, branch, ...flags, ...pageQuery(options) };
  const call: Call = { operation: "listNodes", query, signal };
  return askJson(send, call, nodePage, faultOf);
}

export function listVersions(send: Send, nodeId: string, options: VersionListOptions = {}): Promise<VersionPage> {
  const { branch, signal } = options;
  const query = { branch, ...pageQuery(options) };
  return askJson(
    send,
    { operation: "listVersions", parameters: { nodeId }, query, signal },
    versionPage,
    ({ items }) =>
      items.every((version) => version.nodeId === nodeId) ? undefined : "the answer holds versions of another node",
  );
}
