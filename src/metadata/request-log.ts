/**
 * The request log: requests of programs that were carried out. A row is written in the transaction of the effect, so
 * that after a takeover no request is carried out twice. While a request waits for its answer it has a place, which is
 * the key of its row. So the table is only as long as the most requests that ever waited at once.
 */
import { type Connection, prepare } from "./database.ts";
import type { KernelNodeId } from "./ids.ts";

export interface DoneRow {
  /** The kernel node id in the answer. Undefined (0 in the column): none. */
  readonly kernelNodeId: KernelNodeId | undefined;
}

export function createDone(database: Connection) {
  const put = prepare(database, "INSERT OR REPLACE INTO done (place, request, lineage) VALUES (?, ?, ?)");
  const byRequest = prepare<{ kernelNodeId: KernelNodeId | 0 }>(
    database,
    "SELECT lineage AS kernelNodeId FROM done WHERE request = ?",
  );
  const last = prepare<{ place: number | null }>(database, "SELECT max(place) AS place FROM done");
  const remove = prepare(database, "DELETE FROM done WHERE request = ?");
  const clear = prepare(database, "DELETE FROM done");
  return {
    put(place: number, request: number, kernelNodeId: KernelNodeId | undefined): void {
      put.run(place, request, kernelNodeId ?? 0);
    },
    /**
     * Removes the row of a request whose effect is undone in this transaction: after a takeover it must be carried out.
     */
    undone(request: number): void {
      remove.run(request);
    },
    of(request: number): DoneRow | undefined {
      const row = byRequest.get(request);
      return row === undefined ? undefined : { kernelNodeId: row.kernelNodeId === 0 ? undefined : row.kernelNodeId };
    },
    /** The first place that no request ever had. */
    end(): number {
      const place = last.get()?.place ?? undefined;
      return place === undefined ? 0 : place + 1;
    },
    clear(): void {
      clear.run();
    },
  };
}
