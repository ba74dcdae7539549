/** A local entry leaves its name to a remote node. Runs inside the caller's transaction. */
import type { Entry } from "../metadata/entries.ts";
import { lookAgain, markNode } from "./changes.ts";
import { conflictName, type KeptFor } from "./conflict-name.ts";
import type { Context } from "./context.ts";

type Needs = Pick<Context, "metadata" | "runtime" | "settings" | "activity">;

/** A free name in the folder that says whose copy this is and since when. */
export function freeConflictName(context: Needs, folder: number, name: string, why: KeptFor = "conflict"): string {
  return conflictName(
    name,
    context.settings.hostName,
    context.runtime.wallClock(),
    (candidate) => context.metadata.entries.find(folder, candidate) !== undefined,
    why,
  );
}

/** The entry, node and all, goes on under a conflict name. */
export function moveAside(context: Needs, entry: Entry): void {
  const { metadata } = context;
  const name = entry.gatewayName ?? entry.name;
  metadata.entries.move(entry.id, entry.parent, freeConflictName(context, entry.parent, name));
  const row = metadata.nodes.ofEntry(entry.id);
  if (row !== undefined) markNode(context, row);
}

/**
 * The gateway has moved or removed it, and what that means is about to be carried out: until then,
 * a name nobody uses ("/" is in no name a program can give).
 */
export function stepAside(context: Needs, entry: Entry): void {
  const { metadata } = context;
  metadata.entries.move(entry.id, entry.parent, `/${entry.id}`, entry.gatewayName ?? entry.name);
  lookAgain(context, metadata.nodes.ofEntry(entry.id));
}

/** It stays after all: under its name, if that is still free. */
export function stepBack(context: Needs, entry: Entry): void {
  if (!entry.name.startsWith("/")) return;
  const { metadata } = context;
  const name = entry.gatewayName ?? entry.name.slice(1);
  const isFree = metadata.entries.find(entry.parent, name) === undefined;
  metadata.entries.move(entry.id, entry.parent, isFree ? name : freeConflictName(context, entry.parent, name));
}
