/** Conflict copies and recovered copies: local content goes on as a new node. Runs inside the caller's transaction. */
import type { Entry } from "../../metadata/entries.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Host, Rows } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import type { KeptFor } from "./conflict-name.ts";
import { leaveGroup } from "./link-groups.ts";
import { freeConflictName } from "./name-conflicts.ts";

/** Gives the entry's inode a second name in the folder, and returns it. The caller gives the entry another inode. */
export function keepCopy(context: Rows & Host & Tree, entry: Entry, row: NodeRow, why: KeptFor): string {
  const name = freeConflictName(context, entry.parent, entry.gatewayName ?? entry.name, why);
  const copy = context.metadata.entries.create(entry.parent, name, entry.inode);
  context.names.createUnborn(copy.id, "file", row.dirtySince);
  leaveGroup(context, entry.inode);
  return name;
}
