/**
 * How far the gateway's path index shows what was done, and the deletions that are remembered until
 * it does: before that a listing may still show the node. Knows nothing of what a listing means.
 */
import type { Context } from "./context.ts";

/** A listing was complete up to this position. */
export function noteIndexed({ metadata }: Pick<Context, "metadata">, asOf: number): void {
  const { settings } = metadata;
  if (asOf > settings.getNumber("indexed")) settings.set("indexed", String(asOf));
}

/** Asks for the shortest listing there is. */
export async function askIndexed(context: Context, signal: AbortSignal): Promise<void> {
  const { asOf } = await context.client.listFolder(context.workspace.rootId, { pageSize: 1, signal });
  context.network.answered();
  noteIndexed(context, asOf);
}

/** Journal (`cursor`) and index are past some deletions. A listing under way may be older than all of that. */
export function forgetDeletions({ metadata, listings }: Context): void {
  if (listings.size > 0) return;
  const { settings, tombstones } = metadata;
  tombstones.forgetUpTo(Math.min(settings.getNumber("cursor"), settings.getNumber("indexed")));
}
