/** The part of a workspace that a mount shows: all of it or one folder, as it is or as it was at a moment. */
import type { Client } from "../../client/client.ts";
import { RemoteError } from "../../client/errors.ts";
import type { Node, Workspace } from "../../contract/resources.ts";
import { StartError } from "../api/index.ts";

export interface View {
  /** The folder that is the root of the mount, as a path in the workspace. Absent: all of the workspace. */
  readonly path?: string | undefined;
  /** The moment (ISO 8601, UTC) at which everything is shown. Absent: now. */
  readonly at?: string | undefined;
}

export const WHOLE: View = {};

/**
 * The view that a state dir is for; undefined: all of the workspace, as it is. All moments share one state dir, because
 * lists and contents of the past never change.
 */
export function viewKey({ path, at }: View): string | undefined {
  if (path === undefined && at === undefined) return undefined;
  return `${at === undefined ? "now" : "past"} ${path ?? "/"}`;
}

/**
 * The folder that is the root of the mount. Throws a StartError if there is none, or if the gateway keeps no history
 * and a moment was asked for. Rejects with the RemoteError of the request.
 */
export async function findRoot(
  client: Pick<Client, "features" | "getNode" | "getNodeByPath">,
  workspace: Workspace,
  { path, at }: View,
): Promise<Node> {
  if (at === undefined && path === undefined) return client.getNode(workspace.rootId);
  if (at !== undefined && !client.features.isFull) {
    throw new StartError("--at: this gateway keeps no history that can be read");
  }
  const where = `workspace "${workspace.name}"`;
  const missing = (cause?: unknown) => {
    const what = path === undefined ? where : `folder ${path} in ${where}`;
    return new StartError(at === undefined ? `there is no ${what}` : `there was no ${what} at ${at}`, 1, { cause });
  };
  let node: Node;
  try {
    node = await client.getNodeByPath(path ?? "/", { workspace: workspace.id, at });
  } catch (error) {
    throw error instanceof RemoteError && error.code === "notFound" ? missing(error) : error;
  }
  if (node.kind !== "folder") throw new StartError(`--path: ${path} in ${where} is a file, expected a folder`);
  // For a moment before its creation, a gateway shows a workspace as an empty one.
  if (at !== undefined && Date.parse(at) < Date.parse(node.createdAt)) throw missing();
  return node;
}
