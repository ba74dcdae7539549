/**
 * The drawer of what we know: every table behind one object, and transactions over them. Knows
 * nothing of bytes on disk and of the network.
 */
import { createAttempts, createGenerations, createTombstones } from "./attempts.ts";
import { type Connection, despiteDisk, openDatabase } from "./database.ts";
import { createEntries } from "./entries.ts";
import { createGoneFiles } from "./gone-files.ts";
import { createInodes } from "./inodes.ts";
import { createLiveRows } from "./live-rows.ts";
import { createNodes } from "./nodes.ts";
import { createRecount } from "./recount.ts";
import { createRereads } from "./rereads.ts";
import { createArrivals, createSettings } from "./settings.ts";
import { createTimes } from "./times.ts";
import { createVacated } from "./vacated.ts";

export const ROOT_INODE = 1;
/** Entry ids up to here are never shown: the root's own, "." and "..". */
export const FIRST_COOKIE = 15;
const ROOT_ENTRY = 3;

/** `parseRequest` checks a stored request of an attempt. */
export function createMetadata<Request>(database: Connection, parseRequest: (value: unknown) => Request) {
  let depth = 0;
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const rollback = database.prepare("ROLLBACK");

  function once<T>(change: () => T): T {
    begin.run();
    depth += 1;
    try {
      const result = change();
      commit.run();
      return result;
    } catch (error) {
      if (database.inTransaction) rollback.run();
      throw error;
    } finally {
      depth -= 1;
    }
  }

  return {
    settings: createSettings(database),
    inodes: createInodes(database),
    entries: createEntries(database),
    nodes: createNodes(database),
    attempts: createAttempts(database, parseRequest),
    generations: createGenerations(database),
    tombstones: createTombstones(database),
    arrivals: createArrivals(database),
    vacated: createVacated(database),
    rereads: createRereads(database),
    lives: createLiveRows(database),
    gone: createGoneFiles(database),
    times: createTimes(database),
    recount: createRecount(database),

    /**
     * All of `change` or nothing. Nested calls belong to the outermost. Must not await. Where the disk
     * did not take it and may now, it runs again: what it does to memory must bear that.
     */
    transaction<T>(change: () => T): T {
      return depth > 0 ? change() : despiteDisk(database, () => once(change));
    },

    /** Copies what the write-ahead log holds into the database file. */
    checkpoint(): void {
      database.pragma("wal_checkpoint(PASSIVE)");
    },

    /** The root's entry: its own parent, without a name. */
    createRootEntry(): number {
      database
        .prepare("INSERT INTO entry (id, parent, name, inode) VALUES (?, ?, '', ?)")
        .run(ROOT_ENTRY, ROOT_INODE, ROOT_INODE);
      return ROOT_ENTRY;
    },

    close(): void {
      database.close();
    },
  };
}

export type Metadata<Request> = ReturnType<typeof createMetadata<Request>>;

export { openDatabase };
