/**
 * Lists known folders again: those that are marked (request-relist.ts), and all in turn for a gateway without a journal
 * (poll.ts). Until then programs see the known names, so no folder becomes unreadable while the gateway does not
 * answer.
 */
import { RemoteError } from "../../client/errors.ts";
import { plus } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import { FsError } from "../api/index.ts";
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { UNREAD_MS } from "./follow.ts";
import { relistFolder } from "./listing.ts";

/** A folder that failed to be listed, or may not be listed, waits so long. */
const FAILED_MS = 60_000;

/**
 * Lists the marked folders. After an interruption, also by a crash, the rest is still marked. Rejects with an FsError
 * when the gateway does not answer.
 */
export async function listMarked(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  signal: AbortSignal,
): Promise<void> {
  const { metadata, runtime, listings, network } = context;
  for (;;) {
    const relist = metadata.relists.next(runtime.now());
    if (relist === undefined || signal.aborted || network.pauseMs("listNodes") > 0) return;
    const isOlder = listings.isRunning(relist.folder);
    const postpone = (milliseconds: number) => metadata.relists.postpone(relist, plus(runtime.now(), milliseconds));
    try {
      const isListed = await relistKnown(context, relist.folder, signal);
      if (signal.aborted) return;
      if (isOlder) continue;
      if (isListed) metadata.relists.done(relist);
      else postpone(FAILED_MS);
    } catch (error) {
      postpone(UNREAD_MS);
      throw error;
    }
  }
}

/** Lists the folder. False: it could not be listed. Rejects with an FsError when the gateway does not answer. */
export async function relistKnown(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  folder: InodeId,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await relistFolder(context, folder, signal);
    return true;
  } catch (error) {
    if (!isOfFolder(context, error)) throw error;
    const nodeId = error.code === "ENOENT" ? context.nodeRows.ofFolder(folder)?.nodeId : undefined;
    if (nodeId != null) context.metadata.rereads.add(nodeId);
    context.log.debug({ err: error, folder }, "a folder could not be listed");
    return false;
  }
}

/** True: the failure is about this one folder, so the others are listed all the same. */
function isOfFolder({ network }: Remote, error: unknown): error is FsError {
  if (!(error instanceof FsError) || !network.isOnline || network.loginNeeded !== undefined) return false;
  return !(error.cause instanceof RemoteError) || error.cause.code !== "throttled";
}
