/**
 * Known folders are listed again: those that are marked (list-again.ts), and, by poll.ts, those of a gateway without
 * a journal. Until then programs are shown what is known: no folder becomes unreadable while nobody answers.
 */
import { RemoteError } from "../../client/errors.ts";
import type { InodeId } from "../../metadata/ids.ts";
import { FsError } from "../api/index.ts";
import type { Context, Remote } from "../core/index.ts";
import { rowOfFolder } from "../tree/index.ts";
import { relistFolder } from "./listing.ts";

/** A folder that could not be listed, or may not be, waits so long. */
const FAILED_MS = 60_000;
/** The same where the gateway did not answer, so that all else that is asked of it has its turn. */
const UNANSWERED_MS = 10_000;

/** Lists the marked ones; where it was broken off, also by a crash, it goes on. Rejects when the gateway does not answer. */
export async function listMarked(context: Context, signal: AbortSignal): Promise<void> {
  const { metadata, runtime, listings, network } = context;
  for (;;) {
    const relist = metadata.relists.next(runtime.now());
    if (relist === undefined || signal.aborted || network.pauseMs("listNodes") > 0) return;
    const isOlder = listings.isRunning(relist.folder);
    const postpone = (milliseconds: number) => metadata.relists.postpone(relist, runtime.now() + milliseconds);
    try {
      const isListed = await relistKnown(context, relist.folder, signal);
      if (signal.aborted) return;
      if (isOlder) continue;
      if (isListed) metadata.relists.done(relist);
      else postpone(FAILED_MS);
    } catch (error) {
      postpone(UNANSWERED_MS);
      throw error;
    }
  }
}

/** False: it could not be listed. Rejects when the gateway does not answer. */
export async function relistKnown(context: Context, folder: InodeId, signal: AbortSignal): Promise<boolean> {
  try {
    await relistFolder(context, folder, signal);
    return true;
  } catch (error) {
    if (!isOfFolder(context, error)) throw error;
    const nodeId = error.code === "ENOENT" ? rowOfFolder(context, folder)?.nodeId : undefined;
    if (nodeId != null) context.metadata.rereads.add(nodeId);
    context.log.debug({ err: error, folder }, "a folder could not be listed");
    return false;
  }
}

/** One folder that cannot be listed must not keep the others from it. */
function isOfFolder({ network }: Remote, error: unknown): error is FsError {
  if (!(error instanceof FsError) || !network.isOnline || network.loginNeeded !== undefined) return false;
  return !(error.cause instanceof RemoteError) || error.cause.code !== "throttled";
}
