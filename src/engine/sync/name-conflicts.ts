/** New names for entries that leave theirs to a remote node. Runs inside the caller's transaction. */
import { nameProblem } from "../../contract/names.ts";
import type { Entry } from "../../metadata/entries.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Host, Rows, Uploads } from "../core/index.ts";
import { conflictName, type KeptFor } from "./conflict-name.ts";

type Needs = Pick<Rows & Uploads & Host, "metadata" | "runtime" | "settings" | "activity">;

interface Shown {
  readonly name: string;
  readonly gatewayName: string | null;
}

/**
 * The name of a node's entry. If no file can have the node's name, the entry gets a name that no program can give, and
 * is in no listing. With an entry the node has a place in the rows, so that nodes in it and later changes of it are
 * known.
 */
export function shownNameOf({ log }: Pick<Host, "log">, nodeId: string, name: string): Shown {
  const problem = nameProblem(name);
  if (problem === undefined) return { name, gatewayName: null };
  log.warn({ nodeId, name, problem }, "a node whose name no file can have is not shown");
  return { name: `//${nodeId}`, gatewayName: name };
}

/** A free name in the folder that says on which machine, when and why the copy was made. */
export function freeConflictName(
  context: Pick<Needs, "metadata" | "runtime" | "settings">,
  folder: InodeId,
  name: string,
  why: KeptFor = "conflict",
): string {
  return conflictName(
    name,
    context.settings.hostName,
    context.runtime.wallClock(),
    (candidate) => context.metadata.entries.find(folder, candidate) !== undefined,
    why,
  );
}

/** The entry goes on under a conflict name, together with its node. */
export function moveToConflictName(context: Rows & Host, entry: Entry): void {
  const { metadata } = context;
  const name = entry.gatewayName ?? entry.name;
  metadata.entries.move(entry.id, entry.parent, freeConflictName(context, entry.parent, name));
  const row = metadata.nodes.ofEntry(entry.id);
  if (row !== undefined) context.queue.setNodeDirty(row);
}

/**
 * The gateway has moved or removed the node, and that will be carried out here. Until then the entry has a name that is
 * not in use (no program can give a name with "/").
 */
export function moveToTemporaryName(context: Rows, entry: Entry): void {
  const { metadata } = context;
  metadata.entries.move(entry.id, entry.parent, `/${entry.id}`, entry.gatewayName ?? entry.name);
  context.queue.enqueue(metadata.nodes.ofEntry(entry.id));
}

/** The entry stays after all: a temporary name becomes its own name again, or a conflict name if that is not free. */
export function moveBack(context: Needs, entry: Entry): void {
  if (!entry.name.startsWith("/")) return;
  const { metadata } = context;
  const name = entry.gatewayName ?? entry.name.slice(1);
  const isFree = nameProblem(name) === undefined && metadata.entries.find(entry.parent, name) === undefined;
  metadata.entries.move(entry.id, entry.parent, isFree ? name : freeConflictName(context, entry.parent, name));
}
