/**
 * Link leases: files of which some names may be out of date while the mount that changed them brings them up to date.
 * One row stands for all names of a file: marking each of thousands, whenever one more is heard of, would take ever
 * longer.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare, remember, rememberAny } from "./database.ts";
import type { After, EntryId, InodeId } from "./ids.ts";

export interface LinkLease {
  readonly inode: InodeId;
  readonly endsAt: RowTime;
  /** The entry up to which its names were marked once the lease had ended. */
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
  // A removed inode takes its lease along, and its number is never used again.
  const get = remember(database, ["turn"], (inode: InodeId) => byInode.get(inode));
  return {
    /** The lease of an inode. Undefined: there is none. */
    get: (inode: InodeId): LinkLease | undefined => (isAny() ? get(inode) : undefined),
    /** Begins a lease that ends at `endsAt` (row time). A lease that has begun stays as it is. */
    begin(inode: InodeId, endsAt: RowTime): void {
      insert.run({ inode, endsAt });
    },
    /** The lease that has been over for longest. */
    ended: (now: RowTime): LinkLease | undefined => (isAny() ? ended.get(now) : undefined),
    /** When the first lease ends. */
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
