/**
 * Finds deleted nodes that can come back: a node by the path it had, with the nodes that were deleted together with it.
 */
import type { Gateway, ListedNode } from "../../client/index.ts";
import { findNode } from "./target.ts";

/** A program removes a tree node by node. A longer pause than this, in milliseconds, begins another deletion. */
const PAUSE_MAX_MS = 30_000;

/** The node that was deleted last at this path. The folders above it may be deleted too. */
export async function findDeleted(gateway: Gateway, path: string): Promise<ListedNode | undefined> {
  if (path === "/") return undefined;
  const at = path.lastIndexOf("/");
  const above = path.slice(0, at) || "/";
  const folder = (await findNode(gateway, above)) ?? (await findDeleted(gateway, above));
  if (folder === undefined) return undefined;
  const name = path.slice(at + 1);
  const { items } = await gateway.nodes
    .list({ parentId: folder.id, deleted: true, name, orderBy: "-deletedAt", pageSize: 1 })
    .page(1);
  return items[0];
}

/** All nodes that were deleted from a deleted folder. */
export const deletedBelow = (gateway: Gateway, folder: ListedNode) =>
  gateway.nodes.list({ parentId: folder.id, deleted: true, recursive: true, pageSize: 1000 }).all();

const timeOf = ({ deletedAt }: ListedNode) => Date.parse(deletedAt ?? "");
const whose = ({ deletedBy }: ListedNode) => JSON.stringify(deletedBy ?? null);

/**
 * When the deletion of a folder began, in milliseconds since 1970. Going back from the deletion of the folder itself,
 * the nodes below it count that the same mount or program deleted, up to a pause longer than PAUSE_MAX_MS.
 */
export function beginningOf(folder: ListedNode, below: readonly ListedNode[]): number {
  const times = below.filter((one) => whose(one) === whose(folder)).map(timeOf);
  let begin = timeOf(folder);
  for (const time of times.filter((one) => one <= begin).sort((a, b) => b - a)) {
    if (begin - time > PAUSE_MAX_MS) break;
    begin = time;
  }
  return begin;
}

/** The nodes of a folder that went in the deletion that began at `begin`. Of each name only the last node. */
export function deletedWith(folder: ListedNode, below: readonly ListedNode[], begin: number): ListedNode[] {
  const latestFirst = below
    .filter((one) => whose(one) === whose(folder) && timeOf(one) >= begin && timeOf(one) <= timeOf(folder))
    .sort((a, b) => timeOf(b) - timeOf(a));
  const places = new Map<string, ListedNode>();
  for (const one of latestFirst) {
    const place = `${one.parentId}/${one.name}`;
    if (!places.has(place)) places.set(place, one);
  }
  return [...places.values()];
}
