/** The names entries have beside remote nodes, and leave to them. Runs inside the caller's transaction. */
import { nameProblem } from "../../contract/names.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import { enqueue, type Host, type Rows, setNodeDirty, type Uploads } from "../core/index.ts";
import { conflictName, type KeptFor } from "./conflict-name.ts";

type Needs = Pick<Rows & Uploads & Host, "metadata" | "runtime" | "settings" | "activity">;

interface Shown {
  readonly name: string;
  readonly gatewayName: string | null;
}

/**
 * What a node's entry is called. Where no file can have the node's name, it has one that no program can give: it is
 * in no listing, but where the node is is known, so that what is in it, and what becomes of it, is known too.
 */
export function shownNameOf({ log }: Pick<Host, "log">, nodeId: string, name: string): Shown {
  const problem = nameProblem(name);
  if (problem === undefined) return { name, gatewayName: null };
  log.warn({ nodeId, name, problem }, "a node whose name no file can have is not shown");
  return { name: `//${nodeId}`, gatewayName: name };
}

/** A free name in the folder that says whose copy this is and since when. */
export function freeConflictName(context: Needs, folder: InodeId, name: string, why: KeptFor = "conflict"): string {
  return conflictName(
    name,
    context.settings.hostName,
    context.runtime.wallClock(),
    (candidate) => context.metadata.entries.find(folder, candidate) !== undefined,
    why,
  );
}

/** The entry, node and all, goes on under a conflict name. */
export function moveToConflictName(context: Needs, entry: Entry): void {
  const { metadata } = context;
  const name = entry.gatewayName ?? entry.name;
  metadata.entries.move(entry.id, entry.parent, freeConflictName(context, entry.parent, name));
  const row = metadata.nodes.ofEntry(entry.id);
  if (row !== undefined) setNodeDirty(context, row);
}

/**
 * The gateway has moved or removed it, and what that means is about to be carried out: until then,
 * a name nobody uses ("/" is in no name a program can give).
 */
export function moveToTemporaryName(context: Needs, entry: Entry): void {
  const { metadata } = context;
  metadata.entries.move(entry.id, entry.parent, `/${entry.id}`, entry.gatewayName ?? entry.name);
  enqueue(context, metadata.nodes.ofEntry(entry.id));
}

/** It stays after all: under its name, if that is still free. */
export function moveBack(context: Needs, entry: Entry): void {
  if (!entry.name.startsWith("/")) return;
  const { metadata } = context;
  const name = entry.gatewayName ?? entry.name.slice(1);
  const isFree = nameProblem(name) === undefined && metadata.entries.find(entry.parent, name) === undefined;
  metadata.entries.move(entry.id, entry.parent, isFree ? name : freeConflictName(context, entry.parent, name));
}
