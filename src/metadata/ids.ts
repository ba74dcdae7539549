/**
 * The ids of rows, each a type of its own. In this folder, a number becomes an id where a row is read or made. A number
 * from elsewhere (the kernel, a file's name, another program) becomes an id once, by the function with the id's name.
 */
import type { Brand } from "../lib/brand.ts";

/** Attributes and content; st_ino. Never used again. */
export type InodeId = number & Brand<"InodeId">;
/** A name in a folder; the readdir cookie. Never used again. */
export type EntryId = number & Brand<"EntryId">;
/** A node row. The gateway's own id of a node is a text. */
export type NodeRowId = number & Brand<"NodeRowId">;
/** The kernel's node id, and the number of the cache file behind it. The root has 1. Never used again, below 2^53. */
export type KernelNodeId = number & Brand<"KernelNodeId">;
/** A snapshot of a cache file. */
export type SnapshotId = number & Brand<"SnapshotId">;
/** A request that is a row. */
export type AttemptId = number & Brand<"AttemptId">;

type Id = InodeId | EntryId | NodeRowId | KernelNodeId | SnapshotId | AttemptId;

/** An id, or 0 for "before the first". */
export type After<Of extends Id> = Of | 0;

export const inodeId = (id: number): InodeId => id as InodeId;
export const entryId = (id: number): EntryId => id as EntryId;
export const nodeRowId = (id: number): NodeRowId => id as NodeRowId;
export const kernelNodeId = (id: number): KernelNodeId => id as KernelNodeId;
export const attemptId = (id: number): AttemptId => id as AttemptId;
export const snapshotId = (id: number): SnapshotId => id as SnapshotId;

/** The id of the row that was added. */
export function addedId<Of extends Id>({ lastInsertRowid }: { readonly lastInsertRowid: number | bigint }): Of {
  return Number(lastInsertRowid) as Of;
}
