/** Lists in pages of one snapshot, or by number: the nodes of a folder, the versions of a file. */
import { type NodePage, nodePage, type VersionPage, versionPage } from "../contract/resources.ts";
import { malformed } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { ListOptions, NodeListOptions, PageOptions, VersionListOptions } from "./client.ts";

/** Which page, as the query says it: `after=` (empty for the first) makes pages of one snapshot. */
export function pageQuery(options: PageOptions) {
  const { pageNo, pageSize, orderBy } = options;
  return { after: options.after ?? (pageNo === undefined ? "" : undefined), pageNo, pageSize, orderBy };
}

export async function listFolder(send: Send, parentId: string, options: ListOptions = {}): Promise<NodePage> {
  const page = await listNodes(send, { ...options, parentId });
  // A cache between us that ignores the query would show one folder as another.
  if (!page.items.every((node) => node.parentId === parentId)) {
    throw malformed("listNodes", 200, "the answer holds nodes of another folder");
  }
  return page;
}

export function listNodes(send: Send, options: NodeListOptions = {}): Promise<NodePage> {
  const { path, parentId, workspace, name, recursive, at, branch, signal } = options;
  const which = { path, parentId, workspace, name, at, branch, recursive: recursive === true ? "true" : undefined };
  return askJson(send, { operation: "listNodes", query: { ...which, ...pageQuery(options) }, signal }, nodePage);
}

export async function listVersions(send: Send, nodeId: string, options: VersionListOptions = {}): Promise<VersionPage> {
  const { branch, signal } = options;
  const page = await askJson(
    send,
    { operation: "listVersions", parameters: { nodeId }, query: { branch, ...pageQuery(options) }, signal },
    versionPage,
  );
  if (!page.items.every((version) => version.nodeId === nodeId)) {
    throw malformed("listVersions", 200, "the answer holds versions of another node");
  }
  return page;
}
