/**
 * What is open, written down outside of this process before the kernel is told of it, so that a daemon that
 * takes over goes on with the same numbers (resume.ts). Where it lies is not known here.
 */
import { type HandleId, handleId, type KernelNodeId } from "./filesystem.ts";

export interface KeptHandle {
  readonly id: HandleId;
  /** The request it was opened by; 0: nobody will ask again. */
  readonly request: number;
  readonly lineage: KernelNodeId;
  readonly kind: "file" | "folder";
  readonly write: boolean;
  readonly append: boolean;
  /** The kernel reads and writes it under this id; 0: we serve it. */
  readonly backing: number;
}

export interface HandleTable {
  /** A number that never comes back on this connection. The handle is written down when this returns. */
  add(handle: Omit<KeptHandle, "id">): HandleId;
  remove(id: HandleId): void;
  /** Those a daemon before this one left open, by the request that opened them. */
  openedBy(request: number): KeptHandle | undefined;
}

/** Numbers, and nothing that outlives us. */
export function countHandles(): HandleTable {
  let last = 0;
  return {
    add() {
      last += 1;
      return handleId(last);
    },
    remove() {},
    openedBy: () => undefined,
  };
}
