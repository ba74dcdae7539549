/**
 * The drawer of what we know: every table behind one object, and transactions over them. Knows
 * nothing of bytes on disk and of the network.
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
import { createOvertaken } from "./detached-files.ts";
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
import { createSupersededStates } from "./superseded-states.ts";
import { createTimes } from "./times.ts";
import { createWriters } from "./writers.ts";

export const ROOT_INODE = inodeId(1);
/** Entry ids up to here are never shown: the root's own, "." and "..". */
export const FIRST_COOKIE = 15;
const ROOT_ENTRY = entryId(3);
/** More than are given out between two copies of the database. */
const NUMBERS_GAP = 10_000_000;

/** A part failed where parts are not kept apart yet: all of it is undone, and done again with parts that are. */
class NotApart extends Error {}

/** What became of a part of a transaction. */
export type Part<T> = { readonly value: T } | { readonly error: unknown };

/** `parseRequest` checks a stored request of an attempt. */
export function createMetadata<Request>(database: Connection, parseRequest: (value: unknown) => Request) {
  let depth = 0;
  let isApart = false;
  /** Whoever catches it on its way here, what was done so far is not committed. */
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
        writers.told();
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

  /** To undo a part, SQLite keeps each page it changes as it was: only where one has failed. */
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

  /** Of these no part fails alone: all of it is tried again, or fails. */
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
  // What was made just now has nothing yet: nobody need look.
  const inodes = createInodes(database, changed, ({ id, lineage }) => {
    entries.noneOfInode(id);
    snapshots.noneOfKernelNodeId(lineage);
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
    supersededStates: createSupersededStates(database),
    rereads: createRereads(database),
    relists: createRelists(database),
    linkLeases: createLinkLeases(database),
    detachedFiles: createOvertaken(database),
    cacheFiles: createCacheFileRows(database),
    gone: createGoneFiles(database),
    times: createTimes(database),
    recount: createRecount(database),
    done: createDone(database),
    past: createPastNodes(database),

    /**
     * All of `change` or nothing. Nested calls belong to the outermost. Must not await. Where the disk
     * did not take it and may now, it runs again: what it does to memory must bear that.
     */
    transaction<T>(change: () => T): T {
      return depth > 0 ? change() : outermost(change);
    },

    /** Within a transaction: done once, and only if what it belongs to is committed. Must not throw. */
    afterCommit(effect: () => void): void {
      afterCommit.push(effect);
    },

    /** From now on part of each transaction that changes anything, at its end. */
    beforeCommit(change: () => void): void {
      committing.push(change);
    },

    /**
     * The rows are older than what was done by them: no number they may have given out meanwhile is
     * given out again, neither those that files have (`lineage`, `generation`) nor any other.
     */
    skipNumbers(seen: { readonly lineage: After<KernelNodeId>; readonly generation: After<SnapshotId> }): void {
      for (const [table, least] of [
        ["inode", 0],
        ["entry", 0],
        ["lineage", seen.lineage],
        ["generation", seen.generation],
      ]) {
        skip.run({ table, least, gap: NUMBERS_GAP });
        addSkip.run({ table, least, gap: NUMBERS_GAP });
      }
      forgetRead(database);
    },

    /**
     * Within a transaction, which goes on whatever becomes of it: all of `change` or nothing. Not within
     * another part. Throws what the whole transaction fails with.
     */
    part<T>(change: () => T): Part<T> {
      return isApart ? apart(change) : undivided(change);
    },

    /** As `checkpoint` of database.ts. */
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
