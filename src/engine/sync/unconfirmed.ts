/**
 * Unconfirmed writes of ours: they were carried out, as a refusal or a read by id showed, and no answer told their
 * position. So the index watermark does not show whether lists contain them. The journal may still tell the position.
 * Else a list that shows the node is an upper bound of the position. After the settle time every list shows them.
 */
import { SETTLE_MS } from "../../contract/features.ts";
import type { JournalEntry, NodePage } from "../../contract/resources.ts";
import { plus } from "../../lib/clocks.ts";
import type { Base, NodeRow } from "../../metadata/nodes.ts";
import type { Host, Remote, Rows } from "../core/index.ts";
import { limitList } from "../host/index.ts";
import { noteIndexWatermark, noteWritten } from "./index-watermark.ts";

const PAGE = 1000;
/** If one folder has at least this many unconfirmed writes, the whole folder is listed once the first one is shown. */
const FEW = 20;

/** At most `limit` rows with unconfirmed writes, the longest waiting first. */
function unconfirmedRows({ metadata, runtime }: Pick<Rows & Host, "metadata" | "runtime">, limit: number): NodeRow[] {
  return metadata.nodes.unconfirmed(plus(runtime.now(), -SETTLE_MS), limit);
}

/** True while lists may not show an unconfirmed write. */
export function isAnyUnconfirmed(context: Pick<Rows & Host, "metadata" | "runtime">): boolean {
  return unconfirmedRows(context, 1).length > 0;
}

/**
 * Asks lists for the unconfirmed writes one after the other, and stops at the first that is not shown. So while lists
 * are late, this is one request. Returns whether lists show all of them. Rejects with the RemoteError of a list.
 */
export async function areConfirmed(context: Rows & Remote & Host, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const rows = unconfirmedRows(context, FEW);
    const [first] = rows;
    if (first === undefined) return true;
    const place = placeOf(first);
    if (place === undefined) {
      positionIs(context, first, undefined);
      continue;
    }
    const { parent, name } = place;
    const { listFolder } = context.client;
    showing(context, await listFolder(parent, { name, signal }));
    if (isUnconfirmed(context.metadata.nodes.get(first.id))) return false;
    if (rows.length < FEW || rows.some((row) => placeOf(row)?.parent !== parent)) continue;
    const check = limitList(`names in folder ${parent}`);
    let after: string | null | undefined;
    do {
      const page = await listFolder(parent, { pageSize: PAGE, signal, ...(after == null ? {} : { after }) });
      check(page);
      showing(context, page);
      after = page.next;
    } while (after != null);
  }
}

/** The place at which a list can show the node. Undefined: no list ever shows it, because it is the root or is gone. */
function placeOf({ base, seen }: NodeRow): { parent: string; name: string } | undefined {
  if (seen !== null && "deleted" in seen) return undefined;
  const parent = seen === null ? base?.parent : seen.node.parentId;
  const name = seen === null ? base?.name : seen.node.name;
  return parent == null || name === undefined ? undefined : { parent, name };
}

/**
 * Confirms the writes that the list shows: nodes as they were after our write, or newer. The position of such a write
 * is at most the one up to which the list is complete.
 */
function showing(context: Rows & Remote, { items, asOf }: NodePage): void {
  const { metadata, network } = context;
  network.answered();
  metadata.transaction(() => {
    noteIndexWatermark(context, asOf);
    for (const node of items) {
      const row = metadata.nodes.ofNodeId(node.id);
      if (!isUnconfirmed(row) || node.revision < row.base.revision) continue;
      noteWritten(context, asOf);
      // The position of the list is not stored for the node, because it would hide earlier changes of the node.
      positionIs(context, row, undefined);
    }
  });
}

/** The journal tells of the change, or of a later one. */
export function confirmByJournal(context: Rows, { nodeId, revision, position }: JournalEntry): void {
  const row = context.metadata.nodes.ofNodeId(nodeId);
  if (!isUnconfirmed(row) || revision < row.base.revision) return;
  noteWritten(context, position);
  positionIs(context, row, position);
}

const isUnconfirmed = (row: NodeRow | undefined): row is NodeRow & { readonly base: Base } =>
  typeof row?.base?.position === "object";

function positionIs({ metadata }: Pick<Rows, "metadata">, { id, base }: NodeRow, position: number | undefined): void {
  if (base !== null) metadata.nodes.update(id, { base: { ...base, position } });
}
