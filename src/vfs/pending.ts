/** What waits to be sent, in words and numbers for people. Reads only. */
import { ROOT_INODE } from "../metadata/metadata.ts";
import type { NodeRow } from "../metadata/nodes.ts";
import type { Context } from "./context.ts";
import type { PendingItem } from "./engine.ts";
import { folderOfNode } from "./from-node.ts";
import { writersOf } from "./live.ts";
import type { WriteBack } from "./writeback.ts";

/** Path in the mount; of a deletion, where it was. */
export function pathOfEntry(context: Pick<Context, "metadata">, row: NodeRow): string {
  const { entries } = context.metadata;
  const entry = row.entry === null ? undefined : entries.get(row.entry);
  if (entry !== undefined)
    return entry.parent === entry.inode ? "/" : join(pathOfFolder(context, entry.parent), entry.name);
  const folder = row.base?.parent == null ? undefined : folderOfNode(context, row.base.parent);
  const parent = folder === undefined ? "…" : pathOfFolder(context, folder);
  return join(parent, row.base?.name ?? "?");
}

function pathOfFolder(context: Pick<Context, "metadata">, folder: number): string {
  const names: string[] = [];
  let current = folder;
  while (current !== ROOT_INODE) {
    const [entry] = context.metadata.entries.ofInode(current);
    if (entry === undefined) return `…/${names.join("/")}`;
    names.unshift(entry.name);
    current = entry.parent;
  }
  return `/${names.join("/")}`;
}

function join(folder: string, name: string): string {
  return folder.endsWith("/") ? `${folder}${name}` : `${folder}/${name}`;
}

/** Content that the gateway does not have yet. */
function bytesOf(context: Context, row: NodeRow): number {
  const entry = row.entry === null ? undefined : context.metadata.entries.get(row.entry);
  const inode = entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
  if (inode === undefined || inode.kind !== "file" || inode.content === "clean") return 0;
  return inode.hash !== null && inode.hash === row.base?.hash ? 0 : inode.size;
}

export function pendingItems(context: Context, writeBack: WriteBack, limit: number): PendingItem[] {
  const { metadata, runtime } = context;
  const sent = new Map(writeBack.inFlight().map((item) => [item.node, item.sent]));
  const now = runtime.now();
  return metadata.nodes.dirty(limit).map((row) => {
    const attempt = metadata.attempts.openOf(row.id);
    const error = row.parked ?? attempt?.lastError ?? undefined;
    const waitMs = attempt !== undefined && !sent.has(row.id) ? attempt.nextAt - now : (row.due ?? now) - now;
    return {
      path: pathOfEntry(context, row),
      what: whatOf(context, row),
      state: stateOf(context, row, sent.has(row.id)),
      bytes: bytesOf(context, row),
      bytesSent: sent.get(row.id) ?? 0,
      tries: attempt?.tries ?? 0,
      ageMs: Math.max(0, now - (row.dirtySince ?? now)),
      ...(waitMs > 0 ? { nextTryMs: waitMs } : {}),
      ...(error === undefined ? {} : { error }),
    };
  });
}

function whatOf(context: Context, row: NodeRow): PendingItem["what"] {
  const entry = row.entry === null ? undefined : context.metadata.entries.get(row.entry);
  if (entry === undefined) return "delete";
  if (row.base === null) return "create";
  if ((entry.gatewayName ?? entry.name) !== row.base.name) return "move";
  return bytesOf(context, row) > 0 ? "content" : "attributes";
}

function stateOf(context: Context, row: NodeRow, isSending: boolean): PendingItem["state"] {
  if (isSending) return "sending";
  if (row.parked !== null) return "parked";
  const entry = row.entry === null ? undefined : context.metadata.entries.get(row.entry);
  const inode = entry === undefined ? undefined : context.metadata.inodes.get(entry.inode);
  return inode !== undefined && writersOf(context, inode) > 0 ? "open" : "waiting";
}
