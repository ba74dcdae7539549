/**
 * How far the gateway's path index shows what was done, and the deletions that are remembered until
 * it does: before that a listing may still show the node. Knows nothing of what a listing means.
 *
 * Where the gateway has no positions, the time of the rows stands for them: what was done has the time at which it
 * was answered, and a list is as old as one can be. The wall clock would not do. Set back, it would make our own
 * writes newer than any list for as long; set ahead, each list newer than deletions it does not show yet.
 */
import { SETTLE_MS } from "../../contract/features.ts";
import type { Host, Remote, Rows } from "../core/index.ts";

type Needs = Pick<Remote & Host, "client" | "runtime">;

/** Of a write of ours that was answered now; `told`: by the gateway (0: not told, see `Base.position`). */
export function positionNow({ client, runtime }: Needs, told: number): number {
  const now = runtime.now();
  if (!client.features.positions) return now;
  return told > 0 ? told : -Math.max(1, now);
}

/** The newest position of ours, for "settled". */
export function noteWritten({ metadata }: Pick<Rows, "metadata">, position: number): void {
  const { settings } = metadata;
  if (position > settings.getNumber("written")) settings.set("written", String(position));
}

/** How far a list shows that was asked for at `begun`, of the time of the rows; `told`: by the gateway. */
export function shownUpTo({ client }: Pick<Needs, "client">, told: number, begun: number): number {
  return client.features.positions ? told : Math.max(0, begun - SETTLE_MS);
}

/** Rows of a release that had the wall clock's time for positions may lie ahead: no list would ever be new enough. */
export function positionsNotAhead({ client, metadata, runtime }: Rows & Remote & Host): void {
  const { settings, times } = metadata;
  const now = runtime.now();
  const ahead = (["cursor", "indexed", "written"] as const).filter((key) => settings.getNumber(key) > now);
  if (client.features.positions || ahead.length === 0) return;
  metadata.transaction(() => {
    for (const key of ahead) settings.set(key, String(Math.max(0, now - SETTLE_MS)));
    times.positionsNotAfter(now);
  });
}

/** A listing was complete up to this position. */
export function noteIndexWatermark({ metadata }: Pick<Rows, "metadata">, asOf: number): void {
  const { settings } = metadata;
  if (asOf > settings.getNumber("indexed")) settings.set("indexed", String(asOf));
}

/**
 * Whether the journal may have told of what came into a folder of ours after `position`: nobody here knew its node, and
 * it is not told again. Where there is no journal nothing is told but by lists, which are asked for again anyway.
 */
export function isCoveredByIndex(
  { client, metadata }: Pick<Rows & Remote, "client" | "metadata">,
  position: number,
): boolean {
  return client.features.journal && position < metadata.settings.getNumber("cursor");
}

/** Asks for the shortest listing there is. */
export async function askIndexWatermark(context: Rows & Remote & Host, signal: AbortSignal): Promise<void> {
  const begun = context.runtime.now();
  const { asOf } = await context.client.listFolder(context.workspace.rootId, { pageSize: 1, signal });
  context.network.answered();
  noteIndexWatermark(context, shownUpTo(context, asOf, begun));
}

/** Journal (`cursor`) and index are past some deletions. A listing under way may be older than all of that. */
export function forgetDeletions({ metadata, listings }: Rows & Remote): void {
  if (listings.size > 0) return;
  const { settings, tombstones } = metadata;
  tombstones.forgetUpTo(Math.min(settings.getNumber("cursor"), settings.getNumber("indexed")));
}
