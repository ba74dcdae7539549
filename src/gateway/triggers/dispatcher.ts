/**
 * Starts engines by triggers. The place of a trigger (the position of its last entry, the next due time) advances in
 * the transaction that queues the execution, whose key is the trigger and that place. So whenever the gateway dies, an
 * entry or a time has either started its one execution, or is still to come.
 *
 * A trigger handles its entries in their order. When its engine cannot be started, it tries the same entry again; an
 * execution that failed is not run again. Both cause a pause, longer each time, until an execution succeeds. When
 * several executions run, only one is watched at a time, so that those of one burst do not count one by one.
 *
 * Each workspace with enabled triggers has a loop; other workspaces have none.
 */
import type { JournalEntry } from "../../contract/resources.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/log.ts";
import { sleep } from "../../lib/runtime.ts";
import { HOUR_MS } from "../../lib/time.ts";
import { shownAuthor } from "../access.ts";
import type { Context } from "../context.ts";
import { endOf, findExecution, originOf, queueTriggered } from "../engines/index.ts";
import { entriesBetween } from "../journal.ts";
import { ProblemError } from "../problems.ts";
import { STORE_RETRY_MS } from "../store.ts";
import { conditionOf, isMeant } from "./condition.ts";
import { enabledTriggersOf, findTrigger, type TriggerRow } from "./rows.ts";
import type { Schedule } from "./schedule.ts";

interface Dispatcher {
  /** Goes on from the state that the gateway stored before it ended. */
  begin(): void;
  /** Looks at a workspace whose trigger was created or changed, within or after the transaction of that change. */
  look(workspace: string): void;
}

const PAUSES = { firstMs: 1000, maxMs: HOUR_MS };
/** Longest wait when only news can end it. */
const IDLE_MS = HOUR_MS;
/**
 * The interval of checks of the clock while a due time is awaited: the clock of the machine may be set, and the machine
 * may sleep.
 */
const CLOCK_MS = 30_000;
/** Number of executions queued before requests come in between. */
const STARTS = 50;
const BATCH = 200;
/** A place is stored after this many positions without a match. */
const PASSED = 1000;
/** A longer chain of executions that led to one another counts as endless. */
const CHAIN_MAX = 100;

/** The reason for an execution, and the place of the trigger after it. */
interface Occasion {
  readonly key: string;
  readonly entry?: JournalEntry;
  readonly scheduledFor?: number;
  readonly position: number;
  readonly dueAt: number | null;
}

export function createDispatcher(context: Context, log: Logger): Dispatcher {
  const { store, clock, news } = context;
  const active = new Set<string>();
  /** The position up to which the entries of a trigger were checked without a match, while it is not stored yet. */
  const passed = new Map<string, number>();
  // Positions that are rolled back are used again.
  store.afterRollback(() => passed.clear());

  async function run(workspace: string): Promise<void> {
    while (!news.ended) {
      let wait: number | undefined;
      try {
        wait = round(workspace);
        // There is no await in between: a trigger that comes later begins a loop of its own.
        if (wait === undefined) return void active.delete(workspace);
        const pending = store.committed();
        await pending;
        clock.step("gateway: triggers looked at");
        // Meanwhile there may be news.
        if (pending !== undefined) wait = 0;
      } catch (error) {
        if (news.ended) return;
        log.error({ err: error, workspace }, "triggers could not be looked at");
        await sleep(clock, STORE_RETRY_MS);
        continue;
      }
      if (wait > 0) await news.wait(clock, wait, workspace, () => {});
      else await sleep(clock, 0);
    }
  }

  /** Returns how long to wait for the next round at most; undefined: no trigger is enabled. */
  function round(workspace: string): number | undefined {
    const rows = enabledTriggersOf(store, workspace);
    if (rows.length === 0) return undefined;
    // Most triggers are at the same place.
    const read = new Map<number, JournalEntry[]>();
    const entriesAfter = (position: number) => {
      const known = read.get(position) ?? entriesBetween(store, workspace, position, Number.MAX_SAFE_INTEGER, BATCH);
      read.set(position, known);
      return known;
    };
    const waits = rows.map((row) => {
      try {
        return dispatch(row, entriesAfter);
      } catch (error) {
        // One trigger must not block the others.
        log.error({ err: error, trigger: row.id }, "a trigger could not be looked at");
        return STORE_RETRY_MS;
      }
    });
    return Math.min(IDLE_MS, ...waits);
  }

  /** Starts due executions, a few at a time. Returns the time to wait then; 0: there may be more. */
  function dispatch(given: TriggerRow, entriesAfter: (position: number) => readonly JournalEntry[]): number {
    const row = judge(given);
    const now = clock.wallClock();
    const pause = row.retryAt === null ? 0 : row.retryAt - now;
    // A pause longer than any was made before the clock was set back.
    if (pause > 0 && pause <= PAUSES.maxMs) return Math.min(pause, CLOCK_MS);
    const condition = conditionOf(row.condition);
    return "schedule" in condition ? keepTime(row, condition.schedule, now) : follow(row, condition, entriesAfter);
  }

  function keepTime(row: TriggerRow, schedule: Schedule, now: number): number {
    if (row.dueAt === null) return IDLE_MS;
    if (row.dueAt > now) {
      // If the clock was set back, times come again. Each of them has its execution already, and its key makes no
      // other.
      const next = Math.min(row.dueAt, schedule.next(now) ?? row.dueAt);
      if (next < row.dueAt) {
        store.transaction(() => store.prepare("UPDATE engine_trigger SET due_at = ? WHERE id = ?").run(next, row.id));
      }
      return Math.min(next - now, CLOCK_MS);
    }
    // Only the latest of several missed times starts an execution.
    const scheduledFor = schedule.latest(row.dueAt, now);
    const dueAt = schedule.next(scheduledFor) ?? null;
    return start(row, { key: `${row.id}@${scheduledFor}`, scheduledFor, position: row.position, dueAt });
  }

  function follow(
    row: TriggerRow,
    condition: Parameters<typeof isMeant>[1],
    entriesAfter: (position: number) => readonly JournalEntry[],
  ): number {
    const from = Math.max(row.position, passed.get(row.id) ?? 0);
    const entries = entriesAfter(from);
    let left = STARTS;
    for (const entry of entries) {
      const { position } = entry;
      if (isMeant(store, condition, entry) && !isOwn(row.id, entry)) {
        if (left === 0) return 0;
        left -= 1;
        const wait = start(row, { key: `${row.id}.${position}`, entry, position, dueAt: row.dueAt });
        if (wait > 0) return wait;
      }
      passed.set(row.id, position);
    }
    const last = entries.at(-1)?.position ?? from;
    if (left === STARTS && last - row.position > PASSED) {
      store.transaction(() => store.prepare("UPDATE engine_trigger SET position = ? WHERE id = ?").run(last, row.id));
    }
    return left < STARTS || entries.length === BATCH ? 0 : IDLE_MS;
  }

  /**
   * True if an entry was made by an execution that the trigger started, or by one that such an execution led to: by a
   * call of its own, or by a file it wrote that another trigger acted on. If such entries started executions, that
   * would go on for ever.
   */
  function isOwn(trigger: string, { by }: JournalEntry): boolean {
    let execution = by?.execution ?? null;
    for (let length = 0; execution !== null; length += 1) {
      const origin = originOf(context, execution);
      if (origin === undefined) return false;
      if (origin.trigger === trigger || length === CHAIN_MAX) return true;
      ({ execution } = origin);
    }
    return false;
  }

  /** Returns how long to wait then; 0: it is started. */
  function start(row: TriggerRow, { key, entry, scheduledFor, position, dueAt }: Occasion): number {
    try {
      store.transaction(() => {
        const execution = queueTriggered(context, {
          ...{ workspace: row.workspace, engine: row.engine, input: JSON.parse(row.input), account: row.account },
          ...{ by: shownAuthor(row.by), triggerId: row.id, key },
          ...(entry === undefined ? {} : { entry }),
          ...(scheduledFor === undefined ? {} : { scheduledFor }),
        });
        clock.step("gateway: execution queued by a trigger");
        store
          .prepare(
            `UPDATE engine_trigger SET position = ?, due_at = ?, retry_at = NULL, last_execution = ?,
               watched = coalesce(watched, ?) WHERE id = ?`,
          )
          .run(position, dueAt, execution, execution, row.id);
        clock.step("gateway: trigger moved on");
      });
      return 0;
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      // The engine is requested by its id, but people know it by its name.
      const detail = error.message.replaceAll(row.engine, row.engineName);
      return store.transaction(() => noteFailure(row.id, detail));
    }
  }

  /** Checks how the watched execution has ended, if it has. */
  function judge(row: TriggerRow): TriggerRow {
    if (row.watched === null) return row;
    const execution = findExecution(store, row.watched);
    const end = execution === undefined ? "succeeded" : endOf(context, row.watched);
    if (end === undefined) return row;
    store.transaction(() => {
      store.prepare("UPDATE engine_trigger SET watched = NULL WHERE id = ?").run(row.id);
      if (end === "failed") {
        noteFailure(row.id, `The execution ${row.watched} did not succeed: ${execution?.detail ?? execution?.state}`);
      } else {
        store
          .prepare("UPDATE engine_trigger SET failures = 0, retry_at = NULL, detail = NULL WHERE id = ?")
          .run(row.id);
      }
    });
    return findTrigger(store, row.id) ?? row;
  }

  /** Within a transaction. Returns how long the trigger pauses. */
  function noteFailure(trigger: string, detail: string): number {
    const failures = (findTrigger(store, trigger)?.failures ?? 0) + 1;
    const pause = backoff(PAUSES, failures);
    store
      .prepare("UPDATE engine_trigger SET failures = ?, retry_at = ?, detail = ? WHERE id = ?")
      .run(failures, Math.floor(clock.wallClock()) + pause, detail, trigger);
    return pause;
  }

  function look(workspace: string): void {
    if (active.has(workspace)) return;
    active.add(workspace);
    // Within a transaction the trigger does not exist yet.
    clock.soon(() => void run(workspace));
  }

  return {
    begin() {
      const workspaces = store
        .prepare<string>("SELECT DISTINCT workspace FROM engine_trigger WHERE enabled = 1")
        .pluck();
      for (const workspace of workspaces.all()) look(workspace);
    },
    look,
  };
}
