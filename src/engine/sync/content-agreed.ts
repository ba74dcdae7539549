/** Updates the rows of a file whose bytes turned out to be a version of its node. */
import type { Attempt } from "../../metadata/attempts.ts";
import { isWhole } from "../../metadata/cache-files.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { Base, NodeRow } from "../../metadata/nodes.ts";
import type { LocalFiles, Request, Rows } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import { isStandIn } from "./effect.ts";
import { knowSaves } from "./link-groups.ts";

/** The sent content is a version now. It becomes clean, unless it has changed meanwhile. */
export function adoptVersion(
  context: Rows & LocalFiles & Tree,
  row: NodeRow,
  attempt: Attempt<Request>,
  base: Base,
  nodeId: string,
): void {
  const { metadata } = context;
  const { request } = attempt;
  const inode = context.nodeRows.inodeOf(row);
  if (inode === undefined || !("size" in request)) return;
  const snapshot = attempt.snapshot === null ? undefined : metadata.snapshots.get(attempt.snapshot);
  const isNewest =
    snapshot !== undefined
      ? snapshot.inode === inode.id && snapshot.changes === inode.changes
      : "copyOf" in request
        ? inode.content !== "dirty" && inode.originVersion === request.version
        : inode.hash === request.hash && inode.content !== "open";
  // A newer head from elsewhere hides the version that our content became. That version cannot be referred to, so the
  // content stays dirty with its local bytes.
  if (!isNewest || isStandIn(base.head)) return;
  recordVersion(context, inode, nodeId, base, request.hash);
}

/** The plan found nothing to do. Content that was written again with the bytes of base becomes clean. */
export function agreeOnContent(context: Rows & LocalFiles & Tree, row: NodeRow): void {
  const { base, nodeId } = row;
  const inode = context.nodeRows.inodeOf(row);
  if (inode?.content !== "dirty" || inode.hash === null || nodeId === null || base === null) return;
  if (inode.hash === base.hash && !isStandIn(base.head)) recordVersion(context, inode, nodeId, base, inode.hash);
}

function recordVersion(
  context: Rows & LocalFiles,
  inode: Inode,
  nodeId: string,
  base: Base,
  known: string | null,
): void {
  const { metadata } = context;
  context.cancellations.delete(inode.id);
  const hash = known ?? inode.hash ?? base.hash;
  // With a writer that has not written yet, the content is "open". That mark has the file checked after a crash.
  const content = context.cacheFiles.writersOf(inode) > 0 ? "open" : "clean";
  const clean = metadata.inodes.update(inode.id, { content, originNode: nodeId, originVersion: base.head, hash });
  knowSaves(context, clean, base.attributes.link);
  context.dirtyFiles.clean(inode.kernelNodeId);
  const cacheFile = metadata.cacheFiles.get(inode.kernelNodeId);
  if (cacheFile !== undefined && (isWhole(cacheFile) || cacheFile.originVersion === null)) {
    metadata.cacheFiles.update(inode.kernelNodeId, { originNode: nodeId, originVersion: base.head, originHash: hash });
  }
}
