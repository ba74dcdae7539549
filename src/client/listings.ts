/** Lists in keyset pages: the children of a folder, the versions of a file, the journal. */
import {
  type JournalPage,
  journalPage,
  type NodePage,
  nodePage,
  type VersionPage,
  versionPage,
} from "../contract/resources.ts";
import { malformed } from "./answers.ts";
import { askJson, type Send } from "./call.ts";
import type { CallOptions, ListOptions } from "./client.ts";

export async function listFolder(send: Send, parentId: string, options: ListOptions = {}): Promise<NodePage> {
  const { after = "", pageSize, name, signal } = options;
  const page = await askJson(
    send,
    { operation: "listNodes", query: { parentId, after, pageSize, name }, signal },
    nodePage,
  );
  // A cache between us that ignores the query would show one folder as another.
  if (!page.items.every((node) => node.parentId === parentId)) {
    throw malformed("listNodes", 200, "the answer holds nodes of another folder");
  }
  return page;
}

export async function listVersions(send: Send, nodeId: string, options: ListOptions = {}): Promise<VersionPage> {
  const { after = "", pageSize, signal } = options;
  const page = await askJson(
    send,
    { operation: "listVersions", parameters: { nodeId }, query: { after, pageSize }, signal },
    versionPage,
  );
  if (!page.items.every((version) => version.nodeId === nodeId)) {
    throw malformed("listVersions", 200, "the answer holds versions of another node");
  }
  return page;
}

export function readJournal(
  send: Send,
  workspaceId: string,
  position: number,
  options: CallOptions & { pageSize?: number } = {},
): Promise<JournalPage> {
  const { pageSize, signal } = options;
  return askJson(
    send,
    // A token bound to this workspace may name it, an unbound one must.
    { operation: "readJournal", query: { workspace: workspaceId, after: position, pageSize }, signal },
    journalPage,
  );
}
