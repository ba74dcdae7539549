/**
 * A folder that was removed here is not empty at the gateway. The refusal does not name the nodes in it, and they may
 * be gone by now. So the folder is listed, and the listed nodes come in like any other news. A new node brings the
 * folder back. Nodes that were removed here too are deleted first.
 */
import { RemoteError, type RemoteErrorCode } from "../../client/errors.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import { minus, plus } from "../../lib/clocks.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, LocalFiles, Remote, Rows, Uploads } from "../core/index.ts";
import { limitList } from "../host/index.ts";
import type { Tree } from "../tree/index.ts";
import { undeleteFolder } from "./adopt.ts";
import { observeNode } from "./observe.ts";
import { requestRelist } from "./request-relist.ts";

/** Nodes that are observed in one synchronous stretch. */
const PAGE = 200;
/** The first pause between two deletions of a folder that is not empty. It doubles. */
const FIRST_MS = 1_000;
/** Failures that are not about the folder that was listed. forbidden: a scope is missing. */
const OF_ALL: readonly RemoteErrorCode[] = ["offline", "silent", "aborted", "unauthorized", "throttled", "forbidden"];

/** The deletion of a folder was refused, because the folder is not empty at the gateway. */
export function removedFolderIsNotEmpty(context: Rows & Remote & Uploads & Host & Tree, row: NodeRow): void {
  const { metadata, runtime, notEmpty } = context;
  if (row.nodeId === null) return;
  if (row.entry !== null) {
    // The folder has come back meanwhile. A new list shows the nodes in it.
    const folder = metadata.entries.get(row.entry)?.inode;
    if (folder !== undefined) requestRelist(context, folder);
    return;
  }
  const now = runtime.now();
  const since = notEmpty.get(row.nodeId)?.since ?? now;
  // The listing has shown no reason for the whole settle time. It is not merely late: it does not show all nodes. So
  // the folder comes back.
  if (minus(now, since) >= SETTLE_MS) {
    bringBack(context, row.nodeId);
    return;
  }
  notEmpty.set(row.nodeId, { since, isAsked: true });
  metadata.nodes.update(row.id, { due: plus(now, Math.max(FIRST_MS, minus(now, since))) });
}

function bringBack(context: Rows & Remote & Uploads & Host & Tree, nodeId: string): void {
  const folder = undeleteFolder(context, nodeId);
  if (folder !== undefined) requestRelist(context, folder);
  context.notEmpty.delete(nodeId);
}

/**
 * Lists each removed folder whose deletion was refused since its last listing. Rejects with a failure that is not about
 * the folder that was listed.
 */
export async function listRemovedFolder(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  signal: AbortSignal,
): Promise<void> {
  const { metadata, notEmpty, network, log } = context;
  for (const [nodeId, { since, isAsked }] of [...notEmpty]) {
    if (network.pauseMs("listNodes") > 0) return;
    const row = metadata.nodes.ofNodeId(nodeId);
    if (row === undefined || row.entry !== null) notEmpty.delete(nodeId);
    else if (isAsked) {
      notEmpty.set(nodeId, { since, isAsked: false });
      try {
        await list(context, nodeId, signal);
      } catch (error) {
        if (error instanceof RemoteError && error.code === "notFound") metadata.rereads.add(nodeId);
        else if (!isHidden(error)) {
          if (notEmpty.has(nodeId)) notEmpty.set(nodeId, { since, isAsked: true });
          if (!isOfFolder(error)) throw error;
          network.failed(error);
        }
        log.debug({ err: error, nodeId }, "a removed folder could not be listed");
      }
    }
  }
}

/** True: the account may not list the folder, or the list is too long. The next refusal brings another try. */
function isHidden(error: unknown): boolean {
  if (!(error instanceof RemoteError)) return false;
  return error.code === "tooLarge" || (error.code === "forbidden" && error.scope === undefined);
}

/** True: the failure is about this folder. Other folders are listed and the journal is followed all the same. */
function isOfFolder(error: unknown): boolean {
  return error instanceof RemoteError && !OF_ALL.includes(error.code);
}

async function list(
  context: Rows & LocalFiles & Remote & Uploads & Host & Tree,
  nodeId: string,
  signal: AbortSignal,
): Promise<void> {
  const { client, metadata, network } = context;
  const check = limitList(`names in folder ${nodeId}`);
  let after: string | undefined;
  do {
    const page = await client.listFolder(nodeId, {
      pageSize: PAGE,
      signal,
      ...(after === undefined ? {} : { after }),
    });
    network.answered();
    check(page);
    metadata.transaction(() => {
      for (const node of page.items) observeNode(context, node);
    });
    after = page.next ?? undefined;
  } while (after !== undefined);
}
