/**
 * The ids of rows, each a type of its own. A number becomes an id where a row is read or made, which is in this folder;
 * one that comes from elsewhere (the kernel, a file's name, another program) by the function with the id's name, once.
 */
import type { Brand } from "../lib/brand.ts";

/** Of attributes and content; st_ino. Never comes back. */
export type InodeId = number & Brand<"InodeId">;
/** Of a name in a folder; the readdir cookie. Never comes back. */
export type EntryId = number & Brand<"EntryId">;
/** Of what is known of one node of the gateway. Its id there is a text. */
export type NodeRowId = number & Brand<"NodeRowId">;
/** What the kernel calls a node id, and the local file behind it. The root's is 1. Never comes back, below 2^53. */
export type KernelNodeId = number & Brand<"KernelNodeId">;
/** Of a finished cut of a local file. */
export type SnapshotId = number & Brand<"SnapshotId">;
/** Of a request that is a row. */
export type AttemptId = number & Brand<"AttemptId">;

type Id = InodeId | EntryId | NodeRowId | KernelNodeId | SnapshotId | AttemptId;

/** An id, or in the place of one: before the first. */
export type After<Of extends Id> = Of | 0;

export const inodeId = (id: number): InodeId => id as InodeId;
export const entryId = (id: number): EntryId => id as EntryId;
export const nodeRowId = (id: number): NodeRowId => id as NodeRowId;
export const kernelNodeId = (id: number): KernelNodeId => id as KernelNodeId;
export const snapshotId = (id: number): SnapshotId => id as SnapshotId;

/** Of the row that was added. */
export function addedId<Of extends Id>({ lastInsertRowid }: { readonly lastInsertRowid: number | bigint }): Of {
  return Number(lastInsertRowid) as Of;
}
