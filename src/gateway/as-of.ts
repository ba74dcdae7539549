/** The position that a read shows: that of the path index, or that of a past moment. */
import type { Context } from "./context.ts";
import { positionAt } from "./lag.ts";

/** The position that reads by path show. With `at` (ISO 8601) it is that of the moment, but never beyond the index. */
export function shownPosition(context: Context, at?: string): number {
  const shown = context.pathLag.shown();
  return at === undefined ? shown : Math.min(shown, positionAt(context.store, Date.parse(at)));
}
