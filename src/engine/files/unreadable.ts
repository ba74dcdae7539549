/**
 * Unreadable content: it is to be sent and cannot be read, because missing bytes cannot be fetched or the disk fails.
 * It is tried again, with ever longer pauses. If the gateway still does not have the missing bytes after several tries,
 * the row is parked with the reason: a person may have it tried again, or remove the name.
 */
import { RemoteError } from "../../client/errors.ts";
import { hasCode } from "../../lib/system-error.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";
import type { Unreadable } from "./file-state.ts";
import type { LocalFiles } from "./room.ts";

/** These tries take half a minute at least, because a gateway may for a moment not find a version that it has. */
const GONE_TRIES = 5;

/**
 * The inode is given as it was at the try. Returns how many tries to read its present content have failed, by which the
 * next pause is chosen: none, if it has other content by now. Undefined: the row was parked.
 */
export function couldNotRead(
  context: Rows & LocalFiles & Uploads & Host,
  row: NodeRow,
  { id, kernelNodeId }: Inode,
  error: unknown,
): number | undefined {
  const { fileState, metadata } = context;
  // The failure says nothing about content that has taken its place meanwhile.
  if (metadata.inodes.get(id)?.kernelNodeId !== kernelNodeId) return 0;
  const { tries, why } = noteUnreadable(context, id, kernelNodeId, error);
  if (tries < GONE_TRIES || !isGone(error) || metadata.nodes.get(row.id)?.dirtySince == null) return tries;
  fileState.unreadable.delete(kernelNodeId);
  metadata.nodes.update(row.id, { parked: `the missing bytes of its content cannot be had: ${why}`, due: null });
  return undefined;
}

/** Notes a failure, so that the queue can say why the content is not sent. */
export function noteUnreadable(
  context: LocalFiles & Uploads & Host,
  inode: InodeId,
  kernelNodeId: KernelNodeId,
  error: unknown,
): Unreadable {
  const { fileState, log, activity } = context;
  const before = fileState.unreadable.get(kernelNodeId)?.tries ?? 0;
  // A lack of descriptors says nothing about the content and passes soon, so the pause does not grow.
  const tries = hasCode(error, "ENFILE", "EMFILE") ? Math.max(before, 1) : before + 1;
  const why = error instanceof Error ? error.message : String(error);
  const noted = { tries, why };
  fileState.unreadable.set(kernelNodeId, noted);
  log.warn({ err: error, inode, tries }, "the content could not be read for sending, it is tried again");
  activity.progressed();
  return noted;
}

/** True: if the gateway does not find the content at this try either, the content counts as gone. */
export function isLastTry({ fileState }: LocalFiles, kernelNodeId: KernelNodeId): boolean {
  return (fileState.unreadable.get(kernelNodeId)?.tries ?? 0) + 1 >= GONE_TRIES;
}

/** Forgets earlier failures of the inode's content: the content is removed, or a person wants it tried again. */
export function forgetFailures(
  { fileState, network }: Pick<LocalFiles & Remote, "fileState" | "network">,
  inode: Inode,
): void {
  fileState.unreadable.delete(inode.kernelNodeId);
  if (inode.originVersion !== null) network.forgetReference(inode.originVersion);
}

/** True: the gateway answered that it does not have the content, or does not give it. */
function isGone(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof RemoteError && (cause.code === "notFound" || cause.code === "forbidden");
}
