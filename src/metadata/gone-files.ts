/** Files nobody needs any more, whose rows have gone: still to be removed. */
import { type Connection, prepare } from "./database.ts";

export type GoneKind = "live" | "generation";

export interface GoneFile {
  readonly kind: GoneKind;
  readonly id: number;
}

export function createGoneFiles(database: Connection) {
  const insert = prepare(database, "INSERT OR IGNORE INTO gone (kind, id) VALUES (@kind, @id)");
  const one = prepare(database, "SELECT 1 FROM gone WHERE kind = @kind AND id = @id");
  const some = prepare<GoneFile>(database, "SELECT kind, id FROM gone LIMIT +?");
  const remove = prepare(database, "DELETE FROM gone WHERE kind = @kind AND id = @id");
  return {
    add({ kind, id }: GoneFile): void {
      insert.run({ kind, id });
    },
    has: ({ kind, id }: GoneFile): boolean => one.get({ kind, id }) !== undefined,
    some: (limit: number): GoneFile[] => some.all(limit),
    remove({ kind, id }: GoneFile): void {
      remove.run({ kind, id });
    },
  };
}
