/**
 * The gateway's own database: opened, migrated, its statements prepared once, its commits shared.
 * Synchronous, so a flow between two awaits is atomic. Plain SQL rather than a query builder:
 * kysely's execution is asynchronous, which would let requests interleave inside a transaction.
 *
 * A commit costs as much as a small change, so all changes of one turn of the event loop share one
 * where `turn` is given. One that fails leaves the others alone: each is a savepoint of its own, or one of
 * those that are `queued` to the end of the turn. These share a savepoint, which costs each of them a copy
 * of every page it changes otherwise; when one of them fails after it changed something, which no refusal
 * does, all of them are undone and done again, each in its own.
 * Invariant: nothing that was read or written goes out as an answer before `committed` resolves; if
 * the commit fails it rejects for everybody of the turn, and nothing of them happened.
 */
import { type Deferred, deferred } from "../lib/deferred.ts";
import { type Logger, SILENT } from "../lib/log.ts";
import { type Connection, openSqlite, type Statement } from "../lib/sqlite/index.ts";
import { migrate } from "./schema.ts";

export interface Store {
  /** The statement of this text, prepared at its first use. */
  prepare<Row = unknown>(sql: string): Statement<unknown[], Row>;
  /** All or nothing. Flows never nest it. */
  transaction<T>(body: () => T): T;
  /** As `transaction`, at the end of the turn, and settled with its commit. The body may be called twice: the first time is undone then. */
  queued<T>(body: () => T): Promise<T>;
  /** Undefined when nothing waits for a commit; else resolves or rejects with it. */
  committed(): Promise<void> | undefined;
  /** Commits now what waits. Throws when that fails. */
  flush(): void;
  /** Whether a flow is within `transaction`. */
  isChanging(): boolean;
  /** Done within each commit. */
  beforeCommit(work: () => void): void;
  /** Done after each commit; one that fails is logged, and keeps nobody else from being told. */
  afterCommit(work: () => void): void;
  /** Done when changes were undone after their flows had ended. As after a commit. */
  afterRollback(work: () => void): void;
  /** How often that was. What was read before may never have been, though its positions are taken again. */
  rollbacks(): number;
  readonly database: Connection;
}

export function openDatabase(path: string): Connection {
  const database = openSqlite(path);
  database.pragma("journal_mode = WAL");
  // A committed change survives the death of this process; after power loss the last ones may be
  // missing, but the store is never damaged.
  database.pragma("synchronous = NORMAL");
  database.pragma("cache_size = -65536");
  // Rows beyond the cache are read where the system keeps them, not copied page by page.
  database.pragma("mmap_size = 4294967296");
  // In pages of 4 KiB: what the checkpoint thread could not keep up with.
  database.pragma("wal_autocheckpoint = 65536");
  database.pragma("temp_store = MEMORY");
  return database;
}

/** `turn`: calls back at the end of the event loop's turn; without it each transaction is committed by itself. */
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
        log.error({ err: error }, "what follows a commit or its undoing failed");
      }
    }
  }

  function abandon(error: unknown): void {
    const failed = group;
    group = undefined;
    // Those that were not begun fail with it.
    queue = [];
    rollbacks += 1;
    if (database.inTransaction) rollback.run();
    tell(undone);
    failed?.reject(error);
  }

  /** What went wrong, if anything did; whoever waits has been told. */
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
      abandon(error);
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
        // What is before it stays: the savepoint begins anew.
        release.run();
        savepoint.run();
      }
    }
    release.run();
  }

  /** Whether it is done, or refused without a change. Throws when SQLite has undone everything. */
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
        // SQLite undoes everything by itself when the disk is full or fails.
        if (!database.inTransaction) abandon(error);
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
