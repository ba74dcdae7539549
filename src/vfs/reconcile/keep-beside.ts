/** Local content goes on beside its name as a new node, under a name that says why. Runs inside the caller's transaction. */
import type { Entry } from "../../metadata/entries.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import type { Context } from "../context/context.ts";
import type { KeptFor } from "../names/conflict-name.ts";
import { createUnborn } from "../names/identity.ts";
import { leaveGroup } from "../names/links.ts";
import { freeConflictName } from "../names/make-room.ts";

/** The new name of what the entry showed. The caller gives the entry another inode. */
export function keepBeside(context: Context, entry: Entry, row: NodeRow, why: KeptFor): string {
  const name = freeConflictName(context, entry.parent, entry.gatewayName ?? entry.name, why);
  const copy = context.metadata.entries.create(entry.parent, name, entry.inode);
  createUnborn(context, copy.id, "file", row.dirtySince);
  leaveGroup(context, entry.inode);
  return name;
}
