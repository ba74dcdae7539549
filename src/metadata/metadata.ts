/**
 * Every table behind one object, and transactions over them. This file knows neither bytes on the disk nor the network.
 */
import { createAttempts, createSnapshots, createTombstones } from "./attempts.ts";
import { createCacheFileRows } from "./cache-files.ts";
import { createChanged } from "./changed.ts";
import { isDamage } from "./damage.ts";
import {
  type Connection,
  checkpoint,
  despiteDisk,
  forgetRead,
  isDiskFailure,
  noticingDamage,
  openDatabase,
  prepare,
  wantedTransaction,
} from "./database.ts";
import { createDetachedFiles } from "./detached-files.ts";
import { createEntries } from "./entries.ts";
import { createGoneFiles } from "./gone-files.ts";
import { type After, type EntryId, entryId, inodeId, type KernelNodeId, type SnapshotId } from "./ids.ts";
import { createInodes } from "./inodes.ts";
import { createLinkLeases } from "./link-leases.ts";
import { createNodes } from "./nodes.ts";
import { createPastNodes } from "./past-nodes.ts";
import { createRecount } from "./recount.ts";
import { createRelists } from "./relists.ts";
import { createDone } from "./request-log.ts";
import { createRereads } from "./rereads.ts";
import { createArrivals, createSettings } from "./settings.ts";
import { createTimes } from "./times.ts";
import { createVacatedStates } from "./vacated-states.ts";
import { createWriters } from "./writers.ts";

export const ROOT_INODE = inodeId(1);
/** Entry ids up to this one are never shown: they are the root's own, "." and "..". */
export const FIRST_COOKIE = 15;
const ROOT_ENTRY = entryId(3);
/** More than the numbers that are given out between two backups of the database. */
const NUMBERS_GAP = 10_000_000;

/**
 * A part failed in a run in which parts cannot be rolled back alone. The whole transaction is rolled back, and run
 * again with parts that can be.
 */
class NotApart extends Error {}

/** The result of a part of a transaction. */
export type Part<T> = { readonly value: T } | { readonly error: unknown };

/** `parseRequest` checks the JSON of an attempt's request. It throws when the JSON is no request. */
export function createMetadata<Request>(database: Connection, parseRequest: (value: unknown) => Request) {
  let depth = 0;
  let isApart = false;
  /** Set when a part has failed. Code in between may catch the error, but the changes must not be committed. */
  let failed: NotApart | undefined;
  let afterCommit: (() => void)[] = [];
  const changed = createChanged(database);
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const rollback = database.prepare("ROLLBACK");
  const beginPart = database.prepare("SAVEPOINT part");
  const endPart = database.prepare("RELEASE part");
  const undoPart = database.prepare("ROLLBACK TO part");

  const skip = database.prepare("UPDATE sqlite_sequence SET seq = max(seq, @least) + @gap WHERE name = @table");
  const addSkip = database.prepare(
    "INSERT INTO sqlite_sequence (name, seq) SELECT @table, @least + @gap WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = @table)",
  );

  const wanted = wantedTransaction(database);
  const writers = createWriters(database);
  const committing: (() => void)[] = [];

  function beginWanted(): void {
    begin.run();
    wanted.begin = undefined;
  }

  function once<T>(change: () => T): T {
    wanted.begin = beginWanted;
    depth += 1;
    failed = undefined;
    afterCommit = [];
    try {
      const result = change();
      if (failed !== undefined) throw failed;
      if (wanted.begin === undefined) {
        writers.tellEnded();
        for (const change of committing) change();
        commit.run();
        writers.committed();
      }
      return result;
    } catch (error) {
      if (database.inTransaction) rollback.run();
      forgetRead(database);
      changed.drop();
      throw error;
    } finally {
      wanted.begin = undefined;
      depth -= 1;
    }
  }

  /**
   * For a part that can be rolled back alone, SQLite copies each page before its change. So parts are kept apart only
   * in a second run, after one failed.
   */
  function inParts<T>(change: () => T): T {
    try {
      return once(change);
    } catch (error) {
      if (!(error instanceof NotApart)) throw error;
    }
    isApart = true;
    try {
      return once(change);
    } finally {
      isApart = false;
    }
  }

  function outermost<T>(change: () => T): T {
    const result = noticingDamage(database, () => despiteDisk(database, () => inParts(change)));
    const effects = afterCommit;
    afterCommit = [];
    changed.tell();
    for (const effect of effects) effect();
    return result;
  }

  /** With these errors the whole transaction is tried again or fails, not the part alone. */
  const isOfAll = (error: unknown) => isDiskFailure(error) || isDamage(error);

  function undivided<T>(change: () => T): Part<T> {
    try {
      return { value: change() };
    } catch (cause) {
      if (isOfAll(cause)) throw cause;
      failed = new NotApart("a part failed", { cause });
      throw failed;
    }
  }

  function apart<T>(change: () => T): Part<T> {
    wanted.begin?.();
    beginPart.run();
    const before = afterCommit.length;
    try {
      return { value: change() };
    } catch (error) {
      if (database.inTransaction) undoPart.run();
      afterCommit.length = before;
      forgetRead(database);
      if (isOfAll(error)) throw error;
      return { error };
    } finally {
      if (database.inTransaction) endPart.run();
    }
  }

  const nodes = createNodes(database, changed);
  const snapshots = createSnapshots(database);
  // A new inode has no entries and no snapshots yet: no query is needed.
  const inodes = createInodes(database, changed, ({ id, kernelNodeId }) => {
    entries.noneOfInode(id);
    snapshots.noneOfKernelNodeId(kernelNodeId);
  });
  const entries = createEntries(database, changed, nodes, inodes);

  return {
    changed,
    settings: createSettings(database),
    inodes,
    writers,
    entries,
    nodes,
    attempts: createAttempts(database, parseRequest),
    snapshots,
    tombstones: createTombstones(database),
    arrivals: createArrivals(database),
    vacatedStates: createVacatedStates(database),
    rereads: createRereads(database),
    relists: createRelists(database),
    linkLeases: createLinkLeases(database),
    detachedFiles: createDetachedFiles(database),
    cacheFiles: createCacheFileRows(database),
    gone: createGoneFiles(database),
    times: createTimes(database),
    recount: createRecount(database),
    done: createDone(database),
    past: createPastNodes(database),

    /**
     * Commits all of `change` or nothing. A nested call belongs to the outermost one. `change` must not await. It may
     * run again, when the disk failed or a part did, so its effects on memory must be repeatable. Throws the error of
     * `change`, of the disk (`onDiskFailure`) or of the database.
     */
    transaction<T>(change: () => T): T {
      return depth > 0 ? change() : outermost(change);
    },

    /** Within a transaction: `effect` runs once after the commit, and not after a rollback. It must not throw. */
    afterCommit(effect: () => void): void {
      afterCommit.push(effect);
    },

    /** From now on `change` is the last part of each transaction that changes anything. */
    beforeCommit(change: () => void): void {
      committing.push(change);
    },

    /**
     * Must be called when the rows are older than the files. The lost later rows gave out further numbers, those of
     * files (`kernelNodeId`, `snapshot`) and others. None of these is given out again.
     */
    skipNumbers(found: { readonly kernelNodeId: After<KernelNodeId>; readonly snapshot: After<SnapshotId> }): void {
      for (const [table, least] of [
        ["inode", 0],
        ["entry", 0],
        ["lineage", found.kernelNodeId],
        ["generation", found.snapshot],
      ]) {
        skip.run({ table, least, gap: NUMBERS_GAP });
        addSkip.run({ table, least, gap: NUMBERS_GAP });
      }
      forgetRead(database);
    },

    /**
     * Within a transaction, and not within another part: does all of `change` or nothing. The transaction goes on in
     * both cases. Throws only when the whole transaction must fail or run again; the caller must pass that error on.
     */
    part<T>(change: () => T): Part<T> {
      return isApart ? apart(change) : undivided(change);
    },

    /** Like `checkpoint` of database.ts. */
    checkpoint(): void {
      checkpoint(database);
    },

    /** The root's entry: its own parent, without a name. */
    createRootEntry(): EntryId {
      const insert = prepare(database, "INSERT INTO entry (id, parent, name, inode) VALUES (?, ?, '', ?)");
      insert.run(ROOT_ENTRY, ROOT_INODE, ROOT_INODE);
      return ROOT_ENTRY;
    },

    close(): void {
      database.close();
    },
  };
}

export type Metadata<Request> = ReturnType<typeof createMetadata<Request>>;

export { openDatabase };
