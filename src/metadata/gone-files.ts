/** Files whose rows are removed, and which must still be removed themselves. */
import { type Connection, prepare } from "./database.ts";
import type { KernelNodeId, SnapshotId } from "./ids.ts";

export type GoneFile =
  | { readonly kind: "live"; readonly id: KernelNodeId }
  | { readonly kind: "generation"; readonly id: SnapshotId };

export function createGoneFiles(database: Connection) {
  const insert = prepare(database, "INSERT OR IGNORE INTO gone (kind, id) VALUES (@kind, @id)");
  const one = prepare(database, "SELECT 1 FROM gone WHERE kind = @kind AND id = @id");
  const some = prepare<GoneFile>(
    database,
    "SELECT kind, id FROM gone WHERE (kind, id) > (@kind, @id) ORDER BY kind, id LIMIT +@limit",
  );
  const remove = prepare(database, "DELETE FROM gone WHERE kind = @kind AND id = @id");
  return {
    add({ kind, id }: GoneFile): void {
      insert.run({ kind, id });
    },
    has: ({ kind, id }: GoneFile): boolean => one.get({ kind, id }) !== undefined,
    /** The first files, or those after `last`. */
    some: (limit: number, last?: GoneFile): GoneFile[] => some.all({ ...(last ?? { kind: "", id: 0 }), limit }),
    remove({ kind, id }: GoneFile): void {
      remove.run({ kind, id });
    },
  };
}
