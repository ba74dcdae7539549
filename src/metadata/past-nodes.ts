/**
 * The state of the history folder: a number for each of its places, and past lists that were read. Numbers are rows,
 * because after a takeover the daemon must know the numbers that the former daemon gave out. Lists are rows, so that
 * they can also be shown without a gateway.
 */
import type { RowTime } from "../lib/clocks.ts";
import { type Connection, prepare } from "./database.ts";
import { inodeId, type KernelNodeId, kernelNodeId } from "./ids.ts";

/** Far above the numbers of all rows, and above the stand-ins of a replay (2^52 and 2^52 + 1). */
const FIRST = 2 ** 52 + 2 ** 20;

/** True if the kernel node id belongs to the history folder. */
export const isPastNode = (id: KernelNodeId): boolean => id >= FIRST && id < Number.MAX_SAFE_INTEGER;
/** The st_ino of a place is its kernel node id. */
export const inodeOfPastNode = (id: KernelNodeId) => inodeId(id);

export function createPastNodes(database: Connection) {
  const insert = prepare(database, "INSERT OR IGNORE INTO past_node (place) VALUES (?)");
  const find = prepare<{ id: number }>(database, "SELECT id FROM past_node WHERE place = ?");
  const get = prepare<{ place: string }>(database, "SELECT place FROM past_node WHERE id = ?");
  const remove = prepare(database, "DELETE FROM past_node WHERE id = ?");
  const removeAll = prepare(database, "DELETE FROM past_node");
  const keep = prepare(
    database,
    "INSERT OR REPLACE INTO past_list (list, items, read_at) VALUES (@list, @items, @readAt)",
  );
  const kept = prepare<{ items: string }>(database, "SELECT items FROM past_list WHERE list = ?");
  const thin = prepare(
    database,
    "DELETE FROM past_list WHERE list IN (SELECT list FROM past_list ORDER BY read_at DESC LIMIT -1 OFFSET +?)",
  );

  return {
    /** The number of a place. It stays the same until the kernel forgets it, and is never used again. */
    idOf(place: string): KernelNodeId {
      insert.run(place);
      const id = find.get(place)?.id;
      if (id === undefined) throw new Error("a place of the history folder has no row");
      return kernelNodeId(FIRST + id);
    },
    placeOf: (id: KernelNodeId): string | undefined => get.get(id - FIRST)?.place,
    /** Records that the kernel has forgotten the number. */
    forget(id: KernelNodeId): void {
      remove.run(id - FIRST);
    },
    /** Must be called when a mount begins: the kernel knows none of the numbers. */
    forgetAll(): void {
      removeAll.run();
    },
    /** Keeps a list for times without a gateway. Of all lists, the `most` that were read last stay. */
    keepList(list: string, items: string, readAt: RowTime, most: number): void {
      keep.run({ list, items, readAt });
      thin.run(most);
    },
    list: (list: string): string | undefined => kept.get(list)?.items,
  };
}
