/**
 * Branches: places and attributes are common to all, content has one head per branch. A branch
 * without a head of its own shows main's; writing on it makes one. A branch's head is its latest
 * version, so the versions alone tell what it was at any position.
 */
import { MAIN } from "./changes.ts";
import { attributesOf, type NodeRow } from "./node-rows.ts";
import type { Store } from "./store.ts";

interface BranchHead {
  readonly head: string;
  readonly mimeType: string;
  readonly size: number;
  readonly hash: string;
  readonly headTime: number;
  readonly mtime: string | null;
}

/** The row with the branch's content as of the position instead of main's; no branch is main. */
export function onBranch(store: Store, row: NodeRow, branch: string | undefined, asOf: number): NodeRow {
  if (branch === undefined || branch === MAIN || row.kind !== "file") return row;
  const found = store
    .prepare<BranchHead>(
      `SELECT id AS head, mime_type AS mimeType, size, hash, created_at AS headTime, mtime FROM version
       WHERE node = ? AND branch = ? AND branch <> 'main' AND position <= ? ORDER BY number DESC LIMIT 1`,
    )
    .get(row.id, branch, asOf);
  if (found === undefined) return row;
  const { mtime, ...content } = found;
  const { mtime: _, ...attributes } = attributesOf(row);
  return {
    ...row,
    ...content,
    attributes: JSON.stringify(mtime === null ? attributes : { ...attributes, mtime }),
  };
}
