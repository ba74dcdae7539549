/**
 * The index watermark, and the tombstones, which are kept until it has passed them: before that, a listing may still
 * show the deleted node. Knows nothing of the meaning of a listing.
 *
 * Where the gateway has no positions, row time stands in for them. A change of ours has the time at which it was
 * answered, and a list counts as the oldest that it can be (the settle time). The wall clock would not do. Set back, it
 * would make our own writes newer than any list for as long. Set ahead, it would make each list newer than deletions
 * that it does not show yet.
 */
import { SETTLE_MS } from "../../contract/features.ts";
import { millisecondsOf, type RowTime } from "../../lib/clocks.ts";
import type { WritePosition } from "../../metadata/nodes.ts";
import type { Host, Remote, Rows } from "../core/index.ts";

type Needs = Pick<Remote & Host, "client" | "runtime">;

/** The position of a write of ours that was answered now. `position`: the one in the answer. Undefined: none. */
export function positionNow({ client, runtime }: Needs, position?: number): WritePosition {
  const now = runtime.now();
  return client.features.isFull ? (position ?? { unconfirmedSince: now }) : millisecondsOf(now);
}

/** Notes the position of a write of ours, if it is known. The newest one must be shown before all is settled. */
export function noteWritten({ metadata }: Pick<Rows, "metadata">, position: WritePosition): void {
  const { settings } = metadata;
  if (typeof position === "number" && position > settings.getNumber("written"))
    settings.set("written", String(position));
}

/**
 * The position up to which a list shows everything. `asOf`: the position in the answer. `begun`: the row time at which
 * the list was asked for.
 */
export function shownUpTo({ client }: Pick<Needs, "client">, asOf: number, begun: RowTime): number {
  return client.features.isFull ? asOf : oldest(begun);
}

/** The position up to which a list shows everything, where row time stands in for positions. */
const oldest = (begun: RowTime): number => Math.max(0, millisecondsOf(begun) - SETTLE_MS);

/**
 * Sets positions that lie ahead of row time back to it. An earlier release wrote wall clock times as positions. With
 * those, no list would ever be new enough.
 */
export function positionsNotAhead({ client, metadata, runtime }: Rows & Remote & Host): void {
  const { settings, times } = metadata;
  const now = runtime.now();
  const ahead = (["cursor", "indexed", "written"] as const).filter(
    (key) => settings.getNumber(key) > millisecondsOf(now),
  );
  if (client.features.isFull || ahead.length === 0) return;
  metadata.transaction(() => {
    for (const key of ahead) settings.set(key, String(oldest(now)));
    times.positionsNotAfter(now);
  });
}

/** A listing was complete up to this position. */
export function noteIndexWatermark({ metadata }: Pick<Rows, "metadata">, asOf: number): void {
  const { settings } = metadata;
  if (asOf > settings.getNumber("indexed")) settings.set("indexed", String(asOf));
}

/**
 * True: the journal may have told already of changes in a folder that we created at `position`. The folder's node was
 * not known here then, and the journal does not tell them again. Without a journal only lists tell of changes, and all
 * lists are repeated anyway.
 */
export function isCoveredByIndex(
  { client, metadata }: Pick<Rows & Remote, "client" | "metadata">,
  position: WritePosition,
): boolean {
  return client.features.isFull && (typeof position === "object" || position < metadata.settings.getNumber("cursor"));
}

/** Asks for a listing of one item, and notes the watermark that it tells. Rejects with the RemoteError of the list. */
export async function askIndexWatermark(context: Rows & Remote & Host, signal: AbortSignal): Promise<void> {
  const begun = context.runtime.now();
  const { asOf } = await context.client.listFolder(context.workspace.rootId, { pageSize: 1, signal });
  context.network.answered();
  noteIndexWatermark(context, shownUpTo(context, asOf, begun));
}

/**
 * Forgets tombstones that the journal (`cursor`) and the index have passed. While a listing is under way nothing is
 * forgotten, because it may be older than both.
 */
export function forgetDeletions({ metadata, listings, treeListings }: Rows & Remote): void {
  if (listings.size > 0 || treeListings.count > 0) return;
  const { settings, tombstones } = metadata;
  tombstones.forgetUpTo(Math.min(settings.getNumber("cursor"), settings.getNumber("indexed")));
}
