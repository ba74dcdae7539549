/**
 * The index watermark, and the deletions that are remembered until it shows them: before that, a listing may still show
 * the node. Knows nothing of what a listing means.
 *
 * Where the gateway has no positions, row time stands for them. A change of ours has the time at which it was answered,
 * and a list counts as old as a list can be. The wall clock would not do. If it is set back, our own writes would be
 * newer than any list for as long. If it is set ahead, each list would be newer than deletions that it does not show
 * yet.
 */
import { SETTLE_MS } from "../../contract/features.ts";
import { millisecondsOf, type RowTime } from "../../lib/clocks.ts";
import type { WritePosition } from "../../metadata/nodes.ts";
import type { Host, Remote, Rows } from "../core/index.ts";

type Needs = Pick<Remote & Host, "client" | "runtime">;

/** The position of a write of ours that was answered now. `told`: by the gateway (absent or 0: not told). */
export function positionNow({ client, runtime }: Needs, told?: number): WritePosition {
  const now = runtime.now();
  return client.features.isFull ? told || { unconfirmedSince: now } : millisecondsOf(now);
}

/** Notes the position, if it is known, of our newest write. "Settled" needs it. */
export function noteWritten({ metadata }: Pick<Rows, "metadata">, position: WritePosition): void {
  const { settings } = metadata;
  if (typeof position === "number" && position > settings.getNumber("written"))
    settings.set("written", String(position));
}

/**
 * Up to which position a list shows everything. `told`: by the gateway. `begun`: the row time at which the list was
 * asked for.
 */
export function shownUpTo({ client }: Pick<Needs, "client">, told: number, begun: RowTime): number {
  return client.features.isFull ? told : oldest(begun);
}

/** The position of a list that was asked for at `begun`, where row time stands for positions. */
const oldest = (begun: RowTime): number => Math.max(0, millisecondsOf(begun) - SETTLE_MS);

/**
 * An earlier release took the wall clock's time for positions. Such rows may lie ahead, and then no list would ever be
 * new enough.
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
 * True: the journal may have told already of changes in a folder of ours that came after `position`. The folder's node
 * was not known here then, and the journal does not tell them again. Without a journal only lists tell of changes, and
 * they are asked for again anyway.
 */
export function isCoveredByIndex(
  { client, metadata }: Pick<Rows & Remote, "client" | "metadata">,
  position: WritePosition,
): boolean {
  return client.features.isFull && (typeof position === "object" || position < metadata.settings.getNumber("cursor"));
}

/**
 * Asks for the shortest listing there is, and notes the watermark it tells. Rejects with the RemoteError of the list.
 */
export async function askIndexWatermark(context: Rows & Remote & Host, signal: AbortSignal): Promise<void> {
  const begun = context.runtime.now();
  const { asOf } = await context.client.listFolder(context.workspace.rootId, { pageSize: 1, signal });
  context.network.answered();
  noteIndexWatermark(context, shownUpTo(context, asOf, begun));
}

/**
 * Forgets deletions that the journal (`cursor`) and the index have passed. A listing under way may be older than both,
 * so nothing is forgotten then.
 */
export function forgetDeletions({ metadata, listings, treeListings }: Rows & Remote): void {
  if (listings.size > 0 || treeListings.count > 0) return;
  const { settings, tombstones } = metadata;
  tombstones.forgetUpTo(Math.min(settings.getNumber("cursor"), settings.getNumber("indexed")));
}
