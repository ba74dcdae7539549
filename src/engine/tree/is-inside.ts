/** The shape of the tree as the mount shows it. */
import type { InodeId } from "../../metadata/ids.ts";
import type { Rows } from "../core/index.ts";

/** True: `folder` is below `ancestor`, or is the same. Places are those that the mount shows. */
export function isInside(context: Pick<Rows, "metadata">, folder: InodeId, ancestor: InodeId): boolean {
  let current = folder;
  while (current !== ancestor) {
    const [entry] = context.metadata.entries.ofInode(current);
    if (entry === undefined || entry.parent === current) return false;
    current = entry.parent;
  }
  return true;
}
