/**
 * Copies a folder with all below it. It is read in pieces, and written in pieces if it is large, so that other requests
 * are answered in between. Readers see the whole copy or nothing.
 *
 * A small copy is written in one transaction. A large one is staged: its nodes are made below a root that has no place
 * yet, so that no path, list or entry shows them. Then one small transaction gives the root its place, with its entry,
 * the key's answer and the quota. The entries of the other nodes follow in pieces. If the gateway dies in between, the
 * rest is finished or removed when it opens again (copied.ts).
 *
 * The copy shows the authoritative store, not the path index, at one moment while the request was carried out.
 */
import type { Attributes } from "../contract/attributes.ts";
import { type Author, COPY_NODES_MAX } from "../contract/resources.ts";
import { beginChange, createNodeRow } from "./changes.ts";
import type { Context } from "./context.ts";
import { beginCopy, copiesLeft, copyIsPlaced, dropSome, findCopy, tellSome } from "./copied.ts";
import { lastChange } from "./lag.ts";
import { attributesOf, type NodeRow, type Written } from "./node-rows.ts";
import { isDiskFull, tooLarge, tryAgain } from "./problems.ts";
import { addUsed, requireQuota } from "./quota.ts";
import { pause, readTree, type SourceNode } from "./source-trees.ts";
import { createTreeRows, type NewTreeRow } from "./tree-rows.ts";

/** Nodes written without a pause. A copy of at most this many is written at once. */
const SLICE = 250;
/** The number of times that the reading begins again because changes that were read were undone. */
const ATTEMPTS = 4;

/** The place of a copy, and its author. */
interface CopyPlace {
  readonly workspace: string;
  readonly parent: string;
  readonly name: string;
  /** The attributes of the folder itself. Undefined: those of the source. */
  readonly attributes: Attributes | undefined;
  readonly key: string | null | undefined;
  readonly by: Author | null;
  readonly journaled: boolean;
}

/** A copy that was read, and staged if it is large. */
export interface PreparedCopy {
  readonly source: string;
  /** The store's number of rollbacks when the reading began. */
  readonly rollbacks: number;
  /** The copy's root. Its parent, name and attributes come from the request. */
  readonly root: NewTreeRow;
  /** The rows below it; made again at each call. */
  readonly below: () => Iterable<readonly NewTreeRow[]>;
  /** Bytes of content. */
  readonly size: number;
  readonly isStaged: boolean;
}

/** Thrown by an effect that needs a prepared copy of this folder. */
class CopyNeeded extends Error {
  readonly source: NodeRow;
  readonly place: CopyPlace;

  constructor(source: NodeRow, place: CopyPlace) {
    super(`Folder ${source.id} is to be read first.`);
    this.name = "CopyNeeded";
    this.source = source;
    this.place = place;
  }
}

/** Runs an effect in a transaction, again until it has the copy that it needs. */
export async function withCopy<T>(context: Context, effect: (copy: PreparedCopy | undefined) => T): Promise<T> {
  const reading = { position: lastChange(context.store).position };
  context.copying.add(reading);
  try {
    return await tryWithCopy(context, effect);
  } finally {
    // By now rows refer to the contents that were read, or nothing does.
    context.copying.delete(reading);
  }
}

async function tryWithCopy<T>(context: Context, effect: (copy: PreparedCopy | undefined) => T): Promise<T> {
  const { store } = context;
  let needed: CopyNeeded | undefined;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const copy = needed === undefined ? undefined : await prepare(context, needed);
    try {
      const result = store.transaction(() => effect(copy));
      if (copy?.isStaged === true) await store.committed();
      return result;
    } catch (error) {
      if (!(error instanceof CopyNeeded)) throw error;
      needed = error;
    } finally {
      if (copy?.isStaged === true) await finishCopy(context, copy.root.id);
    }
  }
  throw tryAgain();
}

/** Called within the transaction of the effect. */
export function placeCopy(
  context: Context,
  copy: PreparedCopy | undefined,
  source: NodeRow,
  place: CopyPlace,
): Written {
  if (copy === undefined || copy.source !== source.id) throw new CopyNeeded(source, place);
  const { root, size, isStaged } = copy;
  const { workspace, parent, name, key, by, journaled } = place;
  const attributes = place.attributes ?? root.attributes;
  if (!isStaged) {
    if (copy.rollbacks !== context.store.rollbacks()) throw new CopyNeeded(source, place);
    const rows = [{ ...root, parent, name, attributes }, ...[...copy.below()].flat()];
    const position = createTreeRows(context, beginChange(context, { by, key, journaled }), workspace, rows);
    for (const { id } of rows) context.births.note(id);
    return { id: root.id, position };
  }
  requireQuota(context, workspace, size);
  const change = beginChange(context, { by, key, journaled });
  const made = createNodeRow(context, change, { workspace, kind: "folder", parent, name, attributes, id: root.id });
  addUsed(context.store, workspace, size);
  copyIsPlaced(context, root.id);
  return made;
}

const tooMany = () =>
  tooLarge(`copyOf: the folder holds more than ${COPY_NODES_MAX - 1} nodes; copy its parts`, "copyOf");

async function prepare(context: Context, { source, place }: CopyNeeded): Promise<PreparedCopy> {
  const { store } = context;
  const rollbacks = store.rollbacks();
  const [first, ...others] = await readTree(context, source, COPY_NODES_MAX, tooMany);
  if (first === undefined) throw new Error(`The tree of ${source.id} is empty.`);
  const ids = new Map<string, string>();
  const root = rowOf(context, ids, first);
  const copy = {
    ...{ source: source.id, rollbacks, root },
    size: others.reduce((sum, { size }) => sum + (size ?? 0), 0),
    *below() {
      for (let start = 0; start < others.length; start += SLICE) {
        yield others.slice(start, start + SLICE).map((node) => rowOf(context, ids, node));
      }
    },
  };
  // If changes that were read have been undone, nothing is written and the reading begins again.
  const isStaged = others.length >= SLICE && rollbacks === store.rollbacks();
  if (isStaged) await stage(context, copy, place);
  return { ...copy, isStaged };
}

/** `ids`: the ids of the copies made so far, by their sources. */
function rowOf({ newId }: Context, ids: Map<string, string>, node: SourceNode): NewTreeRow {
  const id = newId();
  ids.set(node.id, id);
  const { kind, name, content, size, hash, mimeType } = node;
  // A link belongs to the node that it was made for.
  const { link: _, ...attributes } = attributesOf(node);
  return {
    ...{ id, kind, name, attributes },
    parent: ids.get(node.parent ?? "") ?? "",
    head: kind === "file" ? newId() : null,
    content:
      content === null || size === null || hash === null || mimeType === null
        ? undefined
        : { content, size, hash, mimeType },
  };
}

async function stage(
  context: Context,
  { root, below, size }: Pick<PreparedCopy, "root" | "below" | "size">,
  { workspace, key, by, journaled }: CopyPlace,
): Promise<void> {
  const { store, clock } = context;
  requireQuota(context, workspace, size);
  try {
    store.transaction(() => beginCopy(context, root.id, journaled));
    for (const rows of below()) {
      store.transaction(() => {
        const change = beginChange(context, { by, key, journaled: false });
        createTreeRows(context, change, workspace, rows, { root: root.id, journaled });
        for (const { id } of rows) context.births.note(id);
      });
      clock.step("gateway: copy staged in part");
      // The rows must be committed before the root gets its place.
      await store.committed();
      await pause();
    }
  } catch (error) {
    await finishCopy(context, root.id);
    throw error;
  }
}

/** Appends the remaining entries of a copy that has its place. Removes a copy that has none. */
async function finishCopy(context: Context, root: string): Promise<void> {
  const { store, clock } = context;
  try {
    while (finishSome(context, root)) {
      clock.step("gateway: copy finished in part");
      await store.committed();
      await pause();
    }
    await store.committed();
  } catch (error) {
    // The disk is full: the rest is left for later. The request itself is done or not.
    if (!isDiskFull(error)) throw error;
  }
}

/** True if more is left to do. */
function finishSome(context: Context, root: string): boolean {
  const { store } = context;
  return store.transaction(() => {
    const copy = findCopy(store, root);
    if (copy === undefined) return false;
    return copy.placed === 1
      ? tellSome(context, beginChange(context, { by: null }).time, root)
      : dropSome(context, root);
  });
}

/** Finishes all copies that the gateway before left, before any request is answered. */
export function finishCopies(context: Context): void {
  for (const { root } of copiesLeft(context.store)) while (finishSome(context, root));
}

/** Appends the entries of copies for which the disk had no room before. */
export async function finishPlaced(context: Context): Promise<void> {
  for (const { root, placed } of copiesLeft(context.store)) if (placed === 1) await finishCopy(context, root);
}
