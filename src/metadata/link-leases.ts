/**
 * Link leases. Some names of a hard linked file may be out of date while the mount that changed the file brings them up
 * to date. One row stands for all names of the file: a file may have thousands, and the news of each would mark all of
 * them again.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare, remember, rememberAny } from "./database.ts";
import type { After, EntryId, InodeId } from "./ids.ts";

export interface LinkLease {
  readonly inode: InodeId;
  readonly endsAt: RowTime;
  /** After the end of the lease: the entry up to which the names of the inode are marked. */
  readonly reached: After<EntryId>;
}

export function createLinkLeases(database: Connection) {
  const byInode = prepare<LinkLease>(database, "SELECT inode, ends_at AS endsAt, reached FROM turn WHERE inode = ?");
  const insert = prepare(database, "INSERT OR IGNORE INTO turn (inode, ends_at) VALUES (@inode, @endsAt)");
  const ended = prepare<LinkLease>(
    database,
    "SELECT inode, ends_at AS endsAt, reached FROM turn WHERE ends_at <= ? ORDER BY ends_at, inode LIMIT 1",
  );
  const next = prepare<{ at: RowTime | null }>(database, "SELECT min(ends_at) AS at FROM turn");
  const reach = prepare(database, "UPDATE turn SET reached = @reached WHERE inode = @inode");
  const remove = prepare(database, "DELETE FROM turn WHERE inode = ?");
  const isAny = rememberAny(database, "turn");
  // Removing an inode removes its lease in the table only. Its answer may stay: the number is never used again.
  const get = remember(database, ["turn"], (inode: InodeId) => byInode.get(inode));
  return {
    /** The lease of an inode. Undefined: there is none. */
    get: (inode: InodeId): LinkLease | undefined => (isAny() ? get(inode) : undefined),
    /** Begins a lease that ends at `endsAt` (row time). A lease that has begun stays as it is. */
    begin(inode: InodeId, endsAt: RowTime): void {
      insert.run({ inode, endsAt });
    },
    /** The lease that ended first, if it is over at `now` (row time). */
    ended: (now: RowTime): LinkLease | undefined => (isAny() ? ended.get(now) : undefined),
    /** The time when the first lease ends, in row time. */
    nextEnd: (): RowTime | undefined => (isAny() ? (next.get()?.at ?? undefined) : undefined),
    /** Records that the names of the inode up to this entry are marked. */
    reached(inode: InodeId, entry: EntryId): void {
      reach.run({ inode, reached: entry });
    },
    /** Ends the lease: all names of the inode are marked. */
    done(inode: InodeId): void {
      remove.run(inode);
    },
  };
}
