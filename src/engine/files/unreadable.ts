/**
 * Content that is to be sent and cannot be read: part of it is still to be fetched, or the disk fails. It is tried
 * again ever more seldom. Content that the gateway goes on not to have is parked with the reason: a person may know
 * better, and the name can be removed.
 */
import { RemoteError } from "../../client/errors.ts";
import { hasCode } from "../../lib/system-error.ts";
import type { InodeId, KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";
import type { Unreadable } from "./file-state.ts";
import type { LocalFiles } from "./room.ts";

/** Tries take half a minute at least, because a gateway may for a moment not find what it has. */
const GONE_TRIES = 5;

/**
 * `inode`: as it was at the try. Returns how many tries have failed, which says how long the content waits now; 0: it
 * is other content by now; undefined: the row is parked.
 */
export function couldNotRead(
  context: Rows & LocalFiles & Uploads & Host,
  row: NodeRow,
  { id, lineage }: Inode,
  error: unknown,
): number | undefined {
  const { fileState, metadata } = context;
  // The failure says nothing about content that came in its place meanwhile.
  if (metadata.inodes.get(id)?.lineage !== lineage) return 0;
  const { tries, why } = noteUnreadable(context, id, lineage, error);
  if (tries < GONE_TRIES || !isGone(error) || metadata.nodes.get(row.id)?.dirtySince == null) return tries;
  fileState.unreadable.delete(lineage);
  metadata.nodes.update(row.id, { parked: `what is missing of its content cannot be had: ${why}`, due: null });
  return undefined;
}

/** Notes the failure, for those who ask why the content is not sent. */
export function noteUnreadable(
  context: LocalFiles & Uploads & Host,
  inode: InodeId,
  lineage: KernelNodeId,
  error: unknown,
): Unreadable {
  const { fileState, log, activity } = context;
  const before = fileState.unreadable.get(lineage)?.tries ?? 0;
  // A lack of descriptors says nothing about the content and passes in a moment. So the wait does not grow.
  const tries = hasCode(error, "ENFILE", "EMFILE") ? Math.max(before, 1) : before + 1;
  const why = error instanceof Error ? error.message : String(error);
  const noted = { tries, why };
  fileState.unreadable.set(lineage, noted);
  log.warn({ err: error, inode, tries }, "the content could not be read for sending, it is tried again");
  activity.progressed();
  return noted;
}

/** If the gateway does not find the content at this try, it is gone, as far as can be known. */
export function isLastTry({ fileState }: LocalFiles, lineage: KernelNodeId): boolean {
  return (fileState.unreadable.get(lineage)?.tries ?? 0) + 1 >= GONE_TRIES;
}

/**
 * Earlier failures of the inode's content do not count any more: the content goes, or a person wants it tried again.
 */
export function forgetFailures(
  { fileState, network }: Pick<LocalFiles & Remote, "fileState" | "network">,
  inode: Inode,
): void {
  fileState.unreadable.delete(inode.lineage);
  if (inode.originVersion !== null) network.forgetReference(inode.originVersion);
}

/** The gateway answers and refuses. */
function isGone(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof RemoteError && (cause.code === "notFound" || cause.code === "forbidden");
}
