/**
 * Which requests of programs were carried out: a row is written in the transaction of the effect, so that a
 * daemon that takes over from one that died does nothing twice. A request has a place for as long as it waits
 * for its answer, and its row that place: the table is as long as ever many waited at once.
 */
import { type Connection, prepare } from "./database.ts";
import type { KernelNodeId } from "./ids.ts";

export interface DoneRow {
  /** What the answer is about; undefined: nothing. The column has 0 then. */
  readonly lineage: KernelNodeId | undefined;
}

export function createDone(database: Connection) {
  const put = prepare(database, "INSERT OR REPLACE INTO done (place, request, lineage) VALUES (?, ?, ?)");
  const byRequest = prepare<{ lineage: KernelNodeId | 0 }>(database, "SELECT lineage FROM done WHERE request = ?");
  const last = prepare<{ place: number | null }>(database, "SELECT max(place) AS place FROM done");
  const remove = prepare(database, "DELETE FROM done WHERE request = ?");
  const clear = prepare(database, "DELETE FROM done");
  return {
    put(place: number, request: number, lineage: KernelNodeId | undefined): void {
      put.run(place, request, lineage ?? 0);
    },
    /** What it did is undone, in this transaction: a successor is to do it. */
    undone(request: number): void {
      remove.run(request);
    },
    of(request: number): DoneRow | undefined {
      const row = byRequest.get(request);
      return row === undefined ? undefined : { lineage: row.lineage === 0 ? undefined : row.lineage };
    },
    /** The first place nobody had. */
    end: (): number => (last.get()?.place ?? -1) + 1,
    clear(): void {
      clear.run();
    },
  };
}
