/**
 * The handle table: open handles, kept outside of this process. A handle is written before the kernel hears of it, so
 * that after a takeover the next daemon goes on with the same numbers (start/resume.ts). The place of the table is not
 * known here.
 */
import type { HandleId, KernelNodeId } from "./filesystem.ts";
import type { BackingId } from "./passthrough.ts";

/** A handle as the table keeps it. */
export interface KeptHandle {
  readonly id: HandleId;
  /** The request that opened it; undefined: that request is never resent. */
  readonly request: number | undefined;
  readonly kernelNodeId: KernelNodeId;
  readonly kind: "file" | "folder";
  readonly write: boolean;
  readonly append: boolean;
  /** Backing id under which the kernel reads and writes the file; undefined: no passthrough. */
  readonly backing: BackingId | undefined;
}

export interface HandleTable {
  /** Returns a number that is never used again on this connection. The handle is written when this returns. */
  add(handle: Omit<KeptHandle, "id">): HandleId;
  remove(id: HandleId): void;
  /** The handle that this request opened at an earlier daemon; undefined: there is none. */
  openedBy(request: number): KeptHandle | undefined;
}
