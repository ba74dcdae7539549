/** The conditions of triggers: checked when they are set, and compared with journal entries. */
import { LRUCache } from "lru-cache";
import { EXECUTION_KIND } from "../../contract/journal-kinds.ts";
import type { JournalEntry } from "../../contract/resources.ts";
import { type TriggerCondition, triggerCondition } from "../../contract/triggers.ts";
import { pathOf } from "../node-rows.ts";
import { invalid } from "../problems.ts";
import type { Store } from "../store.ts";
import { matchesPattern, type PathPattern, parsePattern } from "./path-pattern.ts";
import { checkSchedule, type Schedule, scheduleOf } from "./schedule.ts";

type Condition =
  | { readonly kinds: ReadonlySet<string> | undefined; readonly pattern: PathPattern | undefined }
  | { readonly schedule: Schedule };

/** Throws a 400 that names the field. `now`: milliseconds since the epoch. */
export function checkCondition(on: TriggerCondition, now: number): void {
  if ("schedule" in on) checkSchedule(on.schedule, now);
  else if (on.journal.path !== undefined && parsePattern(on.journal.path) === undefined) {
    throw invalid("on.journal.path", `on.journal.path: expected a pattern like "/inbox/**", got ${on.journal.path}`);
  }
}

const known = new LRUCache<string, Condition>({ max: 1000 });

/** Returns a stored condition: JSON of a condition that was checked. */
export function conditionOf(stored: string): Condition {
  const made = known.get(stored) ?? compile(triggerCondition.parse(JSON.parse(stored)));
  known.set(stored, made);
  return made;
}

function compile(on: TriggerCondition): Condition {
  if ("schedule" in on) return { schedule: scheduleOf(on.schedule.cron, on.schedule.timeZone) };
  const { kinds, path } = on.journal;
  return {
    kinds: kinds === undefined ? undefined : new Set(kinds),
    pattern: path === undefined ? undefined : parsePattern(path),
  };
}

/**
 * True if an entry matches, by its kind and by the place of the node at that time. Entries that executions write about
 * themselves match only when the trigger names their kind; otherwise each execution of another engine would start
 * three, for queued, running and its end.
 */
export function isMeant(
  store: Store,
  { kinds, pattern }: Exclude<Condition, { schedule: Schedule }>,
  { kind, parentId, name, position }: JournalEntry,
): boolean {
  if (kinds === undefined ? kind.startsWith(EXECUTION_KIND) : !kinds.has(kind)) return false;
  return pattern === undefined || matchesPattern(pattern, pathOf(store, { parent: parentId, name }, position));
}
