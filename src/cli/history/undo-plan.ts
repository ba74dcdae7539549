/**
 * Plans how the changes of a mount are taken back, node by node. It compares the state before the mount's first change
 * with the state after its last one. A node that others have changed since stays as it is. Pure: it knows no gateway.
 */
import type { Attributes, Author, JournalEntry } from "../../client/index.ts";
import { CHANGE_KINDS } from "../../contract/journal-kinds.ts";

/** The changes to take back: of a mount and account between two positions (inclusive), or only those of one undo. */
export interface Range {
  readonly from: number;
  readonly to: number;
  readonly mount: string;
  readonly account: string | null;
  /** The beginning of the keys of that undo. */
  readonly ofUndo?: string | undefined;
}

export interface Place {
  readonly parentId: string | null;
  readonly name: string;
}

type Action = "restore" | "move" | "delete" | "keep";

export interface Step {
  readonly nodeId: string;
  readonly isFolder: boolean;
  /** Position of the node's latest change that is taken back. Later changes are undone first. */
  readonly position: number;
  /** The change of the node's place. */
  readonly action: Action;
  /** The place of the node, or of its deletion, and the place where it belongs. */
  readonly now: Place;
  readonly target: Place;
  readonly revision: number;
  readonly head: string | null | undefined;
  /** The version whose content it gets. Undefined: its content stays. */
  readonly version: string | undefined;
  /** The attributes it gets. Undefined: they stay. */
  readonly attributes: Attributes | undefined;
  /**
   * The version whose time must become the node's mtime, because the node had no mtime of its own and its content
   * comes back as a new version (undo-run.ts). Undefined: none.
   */
  readonly timeOf: string | undefined;
}

export interface Skipped {
  readonly nodeId: string;
  readonly place: Place;
  readonly why: string;
  /** The author and the time of the later change. */
  readonly by?: Author | null | undefined;
  readonly time?: string | undefined;
}

export interface Plan {
  /** The latest changes come first. */
  readonly steps: readonly Step[];
  readonly skipped: readonly Skipped[];
}

/** Ends the key of a move to a temporary name, which is not the node's target. */
export const PARKING = "p";

const isChange = ({ kind }: JournalEntry) => CHANGE_KINDS.some((own) => own === kind);

function isInRange(entry: JournalEntry, { from, to, mount, account, ofUndo }: Range): boolean {
  const { position, by, key } = entry;
  return (
    position >= from &&
    position <= to &&
    by?.mount === mount &&
    by.account === account &&
    (ofUndo === undefined || key?.startsWith(ofUndo) === true)
  );
}

/**
 * `entries`: all entries of the workspace since the range began, in order. `own`: the beginning of this undo's keys.
 */
export function planUndo(entries: readonly JournalEntry[], range: Range, own: string): Plan {
  const byNode = new Map<string, JournalEntry[]>();
  for (const entry of entries) {
    if (!isChange(entry)) continue;
    const known = byNode.get(entry.nodeId);
    if (known === undefined) byNode.set(entry.nodeId, [entry]);
    else known.push(entry);
  }
  const steps: Step[] = [];
  const skipped: Skipped[] = [];
  for (const [nodeId, ofNode] of byNode) {
    if (!ofNode.some((entry) => isInRange(entry, range))) continue;
    const found = stepOf(nodeId, ofNode, range, own);
    if (found === undefined) continue;
    if ("why" in found) skipped.push(found);
    else steps.push(found);
  }
  return { steps: steps.sort((a, b) => b.position - a.position), skipped };
}

/** Undefined: the node is already as it was. */
function stepOf(
  nodeId: string,
  entries: readonly JournalEntry[],
  range: Range,
  own: string,
): Step | Skipped | undefined {
  const isOwn = ({ key }: JournalEntry) => key?.startsWith(own) === true;
  const isOurs = (entry: JournalEntry) => isInRange(entry, range) || isOwn(entry);
  const last = entries.at(-1);
  if (last === undefined) return undefined;
  const place = { parentId: last.parentId, name: last.name };
  const ours = entries.slice(entries.findLastIndex((entry) => !isOurs(entry)) + 1);
  const taken = ours.filter((entry) => isInRange(entry, range));
  const [first] = ours;
  const latest = taken.at(-1);
  if (first === undefined || latest === undefined) {
    return { nodeId, place, why: "changed since", by: last.by, time: last.time };
  }
  const before = first.kind === "created" ? undefined : first.before;
  if (before === null) return { nodeId, place, why: "its former state is not known any more" };
  const isThere = last.kind !== "deleted";
  const wasThere = before !== undefined && !before.isDeleted;
  const step = {
    nodeId,
    isFolder: last.head === null,
    position: latest.position,
    now: place,
    revision: last.revision,
    head: last.head,
  };
  if (!wasThere) {
    return isThere
      ? { ...step, action: "delete", target: place, version: undefined, attributes: undefined, timeOf: undefined }
      : undefined;
  }
  const target = { parentId: before.parentId, name: before.name };
  const isPlaced = ours.some((entry) => isOwn(entry) && /^(?:moved|restored)$/.test(entry.kind) && !isParked(entry));
  const isSamePlace = isPlaced || (target.parentId === place.parentId && target.name === place.name);
  const action = isThere ? (isSamePlace ? "keep" : "move") : "restore";
  const isWritten = before.head === last.head || ours.some((entry) => isOwn(entry) && entry.kind === "updated");
  const version = isWritten ? undefined : (before.head ?? undefined);
  // A move may set attributes too, in the same request.
  const attributes = ours.some(({ kind }) => kind !== "deleted") ? before.attributes : undefined;
  if (action === "keep" && version === undefined && attributes === undefined) return undefined;
  const hasOwnTime = before.head === last.head || attributes?.mtime !== undefined;
  const timeOf = hasOwnTime ? undefined : (before.head ?? undefined);
  return { ...step, action, target, version, attributes, timeOf };
}

const isParked = ({ key }: JournalEntry) => key?.endsWith(PARKING) === true;

interface Round {
  readonly steps: readonly Step[];
  /** This step must leave its name and folder first, because several steps wait for each other. */
  readonly park?: Step;
  /** The last round: no step of it can be put off. */
  readonly isLast?: true;
}

/**
 * Groups of steps that may be done at the same time. A folder comes back before the nodes in it. A node leaves a name
 * before another one gets it. A new folder is deleted after the nodes in it. Folders are moved one at a time; the
 * caller passes to `next` the steps to put off, because their target still lies inside them.
 */
export function* rounds(steps: readonly Step[]): Generator<Round, void, ReadonlySet<Step>> {
  const waiting = new Map(steps.map((step) => [step.nodeId, step]));
  const putOff = new Set<Step>();
  const placeOf = ({ parentId, name }: Place) => `${parentId}/${name}`;
  const leaving = new Map<string, Step>();
  const inside = new Map<string, Set<string>>();
  for (const step of steps) {
    if (step.action !== "move" && step.action !== "delete") continue;
    leaving.set(placeOf(step.now), step);
    const folder = step.now.parentId ?? "";
    inside.set(folder, (inside.get(folder) ?? new Set()).add(step.nodeId));
  }
  const isReady = (step: Step): boolean => {
    if (step.action === "keep") return true;
    if (step.action === "delete") return [...(inside.get(step.nodeId) ?? [])].every((id) => !waiting.has(id));
    const folder = waiting.get(step.target.parentId ?? "");
    const occupant = leaving.get(placeOf(step.target));
    const isFree = occupant === undefined || occupant === step || !waiting.has(occupant.nodeId);
    return folder?.action !== "restore" && isFree && !putOff.has(step);
  };
  while (waiting.size > 0) {
    let hasFolderMove = false;
    const ready = [...waiting.values()].filter((step) => {
      const isFolderMove = step.action === "move" && step.isFolder;
      if (!isReady(step) || (isFolderMove && hasFolderMove)) return false;
      hasFolderMove ||= isFolderMove;
      return true;
    });
    if (ready.length > 0) {
      const late = yield { steps: ready };
      for (const step of ready) {
        if (late.has(step)) putOff.add(step);
        else waiting.delete(step.nodeId);
      }
      if (hasFolderMove && late.size === 0) putOff.clear();
      continue;
    }
    const park = [...waiting.values()].find(({ action, now }) => action === "move" && leaving.has(placeOf(now)));
    if (park === undefined) {
      // The remaining steps wait for nodes that stay. The gateway's answers say which.
      yield { steps: [...waiting.values()], isLast: true };
      return;
    }
    leaving.delete(placeOf(park.now));
    putOff.clear();
    yield { steps: [], park };
  }
}
