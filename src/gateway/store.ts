/**
 * The gateway's own database: opened, migrated, its statements prepared once, its commits shared. It is synchronous, so
 * a flow between two awaits is atomic. It uses plain SQL rather than a query builder: kysely's execution is
 * asynchronous, which would let requests interleave inside a transaction.
 *
 * A commit costs as much as a small change, so with `turn` all changes of one turn of the event loop share one commit.
 * A failing change leaves the others alone: each has a savepoint of its own, or is `queued` to the end of the turn.
 * Queued changes share a savepoint, because a savepoint costs each of them a copy of every page it changes. When one of
 * them fails after it changed something, which no refusal does, all of them are rolled back and done again, each in its
 * own savepoint.
 *
 * Invariant: nothing that was read or written is sent as an answer before `committed` resolves. When the commit fails,
 * it rejects for the whole turn, and none of the changes happened.
 */
import { type Deferred, deferred } from "../lib/deferred.ts";
import { type Logger, SILENT } from "../lib/log.ts";
import { type Connection, openSqlite, type Statement } from "../lib/sqlite/index.ts";
import { migrate } from "./schema.ts";

/** Work in the background that failed unexpectedly, for example at a full disk, is tried again after this time. */
export const STORE_RETRY_MS = 1000;

export interface Store {
  /** Returns the statement of this text, prepared at its first use. */
  prepare<Row = unknown>(sql: string): Statement<unknown[], Row>;
  /** Does all or nothing. Flows never nest it. */
  transaction<T>(body: () => T): T;
  /**
   * Like `transaction`, but at the end of the turn; settles with its commit. The body may be called twice: then the
   * first call is rolled back.
   */
  queued<T>(body: () => T): Promise<T>;
  /** Undefined when nothing waits for a commit; otherwise resolves or rejects with it. */
  committed(): Promise<void> | undefined;
  /** Commits the waiting changes now. Throws when that fails. */
  flush(): void;
  /** True if a flow is within `transaction`. */
  isChanging(): boolean;
  /** Registers work done within each commit. */
  beforeCommit(work: () => void): void;
  /** Registers work done after each commit. A failure is logged, and the rest is still done. */
  afterCommit(work: () => void): void;
  /**
   * Registers work done when changes were rolled back after their flows had ended. Failures are treated as after a
   * commit.
   */
  afterRollback(work: () => void): void;
  /**
   * Returns the number of such rollbacks. Changes that were read before one may never have existed, although their
   * positions are used again.
   */
  rollbacks(): number;
  readonly database: Connection;
}

export function openDatabase(path: string): Connection {
  const database = openSqlite(path);
  database.pragma("journal_mode = WAL");
  // A committed change survives the death of this process. After a power loss the last changes may be missing, but the
  // store is never damaged.
  database.pragma("synchronous = NORMAL");
  database.pragma("cache_size = -65536");
  // Rows beyond the cache are read from the memory of the system, not copied page by page.
  database.pragma("mmap_size = 4294967296");
  // In pages of 4 KiB. It is reached only if the checkpoint thread cannot keep up.
  database.pragma("wal_autocheckpoint = 65536");
  database.pragma("temp_store = MEMORY");
  return database;
}

/** `turn`: calls back at the end of the turn of the event loop. Without it each transaction is committed by itself. */
export function createStore(database: Connection, turn?: (callback: () => void) => void, log: Logger = SILENT): Store {
  migrate(database);
  const statements = new Map<string, Statement<unknown[], unknown>>();
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const rollback = database.prepare("ROLLBACK");
  const savepoint = database.prepare("SAVEPOINT flow");
  const release = database.prepare("RELEASE flow");
  const undo = database.prepare("ROLLBACK TO flow");
  const changeCount = database.prepare("SELECT total_changes()").pluck();
  const committing: (() => void)[] = [];
  const committed: (() => void)[] = [];
  const undone: (() => void)[] = [];
  let group: Deferred<void> | undefined;
  let queue: (() => void)[] = [];
  let isChanging = false;
  let rollbacks = 0;

  function tell(hooks: readonly (() => void)[]): void {
    for (const work of hooks) {
      try {
        work();
      } catch (error) {
        log.error({ err: error }, "a callback after a commit or rollback failed");
      }
    }
  }

  function failGroup(error: unknown): void {
    const failed = group;
    group = undefined;
    // Flows that have not begun fail with the group.
    queue = [];
    rollbacks += 1;
    if (database.inTransaction) rollback.run();
    tell(undone);
    failed?.reject(error);
  }

  /** Returns the error, if any; the promise of every waiting flow has rejected with it. */
  function end(): { readonly error: unknown } | undefined {
    if (group === undefined) return undefined;
    const done = group;
    const flows = queue;
    queue = [];
    try {
      if (!database.inTransaction) throw new Error("The changes of this turn have been undone.");
      if (flows.length > 0) runAll(flows);
      for (const work of committing) work();
      commit.run();
    } catch (error) {
      failGroup(error);
      return { error };
    }
    group = undefined;
    done.resolve();
    tell(committed);
    return undefined;
  }

  function runAll(flows: readonly (() => void)[]): void {
    savepoint.run();
    if (!flows.every(runClean)) {
      undo.run();
      for (const flow of flows) {
        if (!runClean(flow)) undo.run();
        // Earlier changes stay: the savepoint begins anew.
        release.run();
        savepoint.run();
      }
    }
    release.run();
  }

  /**
   * True if the flow is done, or was refused without a change. Throws when SQLite has rolled back everything.
   */
  function runClean(flow: () => void): boolean {
    const before = changeCount.get();
    isChanging = true;
    try {
      flow();
      return true;
    } catch (error) {
      if (!database.inTransaction) throw error;
      return changeCount.get() === before;
    } finally {
      isChanging = false;
    }
  }

  function open(): Deferred<void> {
    if (group !== undefined) return group;
    begin.run();
    group = deferred();
    turn?.(() => void end());
    return group;
  }

  const store: Store = {
    database,
    prepare<Row>(sql: string) {
      let statement = statements.get(sql);
      if (statement === undefined) {
        statement = database.prepare<unknown[], unknown>(sql);
        statements.set(sql, statement);
      }
      return statement as Statement<unknown[], Row>;
    },
    transaction(body) {
      if (isChanging) throw new Error("Transactions do not nest.");
      open();
      savepoint.run();
      isChanging = true;
      let result: ReturnType<typeof body>;
      try {
        result = body();
        release.run();
      } catch (error) {
        // SQLite rolls back everything by itself when the disk is full or fails.
        if (!database.inTransaction) failGroup(error);
        else {
          undo.run();
          release.run();
          if (turn === undefined) end();
        }
        throw error;
      } finally {
        isChanging = false;
      }
      const failed = turn === undefined ? end() : undefined;
      if (failed !== undefined) throw failed.error;
      return result;
    },
    async queued<T>(body: () => T) {
      if (turn === undefined) return store.transaction(body);
      const { promise } = open();
      const last: { outcome?: { readonly value: T } | { readonly error: unknown } } = {};
      queue.push(() => {
        try {
          last.outcome = { value: body() };
        } catch (error) {
          last.outcome = { error };
          throw error;
        }
      });
      await promise;
      if (last.outcome === undefined) throw new Error("A change was committed that was not begun.");
      if ("error" in last.outcome) throw last.outcome.error;
      return last.outcome.value;
    },
    committed: () => group?.promise,
    flush() {
      const failed = end();
      if (failed !== undefined) throw failed.error;
    },
    isChanging: () => isChanging,
    beforeCommit: (work) => void committing.push(work),
    afterCommit: (work) => void committed.push(work),
    afterRollback: (work) => void undone.push(work),
    rollbacks: () => rollbacks,
  };
  return store;
}
