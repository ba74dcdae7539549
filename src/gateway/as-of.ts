/** Which position a read shows: what the path index has reached, or a moment of the past. */
import type { Context } from "./context.ts";
import { positionAt } from "./lag.ts";

/** The position reads by path show; of `at` (ISO 8601), where given, but never beyond the index. */
export function shownPosition(context: Context, at?: string): number {
  const shown = context.pathLag.shown();
  return at === undefined ? shown : Math.min(shown, positionAt(context.store, Date.parse(at)));
}
