/**
 * The names, inodes and node rows of a mount as plain values, and the view the plan has of them (as
 * src/engine/sync/view.ts), for the planner's property test. Hard links are left out: an inode has one name.
 */
import { type Attributes, sameValue } from "../../../src/contract/attributes.ts";
import type { Node } from "../../../src/contract/resources.ts";
import type { Request } from "../../../src/engine/core/index.ts";
import type { Local, LocalContent, View } from "../../../src/engine/sync/plan.ts";
import { type Base, baseOf, type Seen } from "../../../src/metadata/nodes.ts";
import { type Abilities, type Answer, type Gateway, ROOT } from "./plan-gateway.ts";

/** What the token may do. */
export type Scopes = View["may"] & {
  /** There is no room in the workspace but what removals make. */
  readonly isTight: boolean;
};

export interface Inode {
  readonly kind: "file" | "folder";
  attributes: Attributes;
  state: "clean" | "open" | "dirty";
  hash: string | null;
  bytes: string;
  hasSnapshot: boolean;
  originNode: string | null;
  originVersion: string | null;
  changes: number;
  writers: number;
  /** What a program had written when it closed the file last. */
  finished: string | null;
}

export interface Entry {
  readonly id: number;
  parent: Entry | null;
  name: string;
  inode: Inode;
}

/** A program has it open for writing, and its name has gone on without it (src/engine/sync/detached-files.ts). */
export interface Overtaken {
  readonly inode: Inode;
  readonly folder: Entry;
  readonly name: string;
  readonly isRemoved: boolean;
}

export interface Attempt {
  readonly key: string;
  readonly request: Request;
  readonly bytes: string;
  readonly inode: Inode | null;
  readonly changes: number;
  tries: number;
  /** On its way back. */
  answer: Answer | null;
}

/** A request that was given up for a newer snapshot. */
export interface GivenUp {
  readonly row: Row;
  readonly key: string;
  readonly request: Request;
  readonly bytes: string;
  /** It may still reach the gateway. */
  isUnderWay: boolean;
}

export interface Row {
  readonly id: number;
  readonly kind: "file" | "folder";
  entry: Entry | null;
  nodeId: string | null;
  base: Base | null;
  seen: Seen | null;
  /** What was seen has waited long for the writers. */
  waitedFor: Seen | null;
  attempt: Attempt | null;
  /** The place a program moved it away from a moment ago. */
  left: { readonly parent: Entry; readonly name: string } | null;
}

export function folderInode(attributes: Attributes): Inode {
  return { ...fileInode("", attributes), kind: "folder", state: "clean", hash: null, finished: null };
}

export function fileInode(bytes: string, attributes: Attributes): Inode {
  const content = { kind: "file", state: "dirty", hash: bytes, bytes, hasSnapshot: true } as const;
  const origin = { originNode: null, originVersion: null };
  return { ...content, ...origin, attributes, changes: 0, writers: 0, finished: bytes };
}

export function inodeOfNode(node: Node): Inode {
  if (node.kind === "folder") return folderInode(node.attributes);
  const inode = fileInode(node.contentHash ?? "", node.attributes);
  return { ...inode, state: "clean", originNode: node.id, originVersion: node.head, finished: null };
}

export function createTree(gateway: Gateway, scopes: Scopes, features: Abilities) {
  const rows = new Set<Row>();
  const entries = new Set<Entry>();
  const overtaken = new Set<Overtaken>();
  const tombstones = new Map<string, number>();
  const arrivals = new Map<string, Node>();
  const refresh = new Set<string>();
  const keys = new Map<string, Row>();
  const givenUp = new Map<string, GivenUp>();
  /** Folders removed here that were not empty at the gateway when that was asked. */
  const notEmpty = new Set<string>();
  let ids = 0;
  const nextId = () => ++ids;

  const rowOf = (entry: Entry) => [...rows].find((row) => row.entry === entry);
  const rowOfNode = (nodeId: string) => [...rows].find((row) => row.nodeId === nodeId);
  const rowsAt = (parent: string, name: string) =>
    [...rows].filter((row) => row.base?.parent === parent && row.base.name === name);
  const find = (parent: Entry, name: string) => [...entries].find((e) => e.parent === parent && e.name === name);
  const inFolder = (parent: Entry) => [...entries].filter((entry) => entry.parent === parent);
  const nodeIdOf = (folder: Entry) => rowOf(folder)?.nodeId ?? null;
  const isInside = (folder: Entry | null, ancestor: Entry) => {
    for (let at = folder; at !== null; at = at.parent) if (at === ancestor) return true;
    return false;
  };

  function addEntry(parent: Entry | null, name: string, inode: Inode): Entry {
    if (parent !== null && find(parent, name) !== undefined) throw new Error(`two entries named ${name}`);
    const entry = { id: nextId(), parent, name, inode };
    entries.add(entry);
    return entry;
  }

  function addRow(row: Pick<Row, "kind" | "entry"> & Partial<Row>): Row {
    const made: Row = {
      id: nextId(),
      nodeId: null,
      base: null,
      seen: null,
      waitedFor: null,
      attempt: null,
      left: null,
      ...row,
    };
    rows.add(made);
    return made;
  }

  const hasGivenUpBirth = (row: Row) =>
    [...givenUp.values()].some((given) => given.row === row && "parent" in given.request);

  /** As src/engine/tree/abandoned-requests.ts. */
  function dropRow(row: Row): void {
    if (!hasGivenUpBirth(row)) rows.delete(row);
    else Object.assign(row, { entry: null, nodeId: null, base: null, seen: null, attempt: null, left: null });
  }

  /** What programs wrote to it has a name from here on; what they did not goes. Folders are not made anew here. */
  function nameOvertaken(one: Overtaken): void {
    overtaken.delete(one);
    const { inode, name, isRemoved } = one;
    if (inode.finished === null) return;
    const folder = entries.has(one.folder) ? one.folder : root;
    const isFree = isRemoved && find(folder, name) === undefined;
    addRow({ kind: "file", entry: addEntry(folder, isFree ? name : freeName(folder, name), inode) });
  }

  function freeName(folder: Entry, name: string): string {
    for (let number = 1; ; number += 1) {
      const candidate = `${name} (conflict ${number})`;
      if (find(folder, candidate) === undefined) return candidate;
    }
  }

  const root = addEntry(null, "", folderInode({}));
  const rootNode = gateway.live(ROOT);
  if (rootNode === undefined) throw new Error("no root");
  addRow({ kind: "folder", entry: root, nodeId: ROOT, base: baseOf(rootNode) });

  function localOf(entry: Entry): Local {
    const { inode } = entry;
    const { state, hash, bytes, originNode, originVersion, hasSnapshot } = inode;
    const common = { state, size: bytes.length, originNode, originVersion };
    const content: LocalContent =
      hash === "" || (hash !== null && state === "dirty" && hasSnapshot)
        ? { ...common, hash, isReady: true }
        : { ...common, hash, isReady: false };
    return {
      parent: entry.parent === null ? null : nodeIdOf(entry.parent),
      name: entry.name,
      attributes: inode.attributes,
      content: inode.kind === "folder" ? null : content,
    };
  }

  /** The gateway said it is no longer where it is in base. */
  const isSeenAway = ({ base, seen }: Row) =>
    seen !== null && ("deleted" in seen || seen.node.parentId !== base?.parent || seen.node.name !== base.name);

  function occupantOf(row: Row): Row | undefined {
    const local = row.entry === null ? undefined : localOf(row.entry);
    if (local === undefined || local.parent === null) return undefined;
    return rowsAt(local.parent, local.name).find((other) => other !== row && !isSeenAway(other));
  }

  /** By another node in base, or by one that a request of ours may have put there. */
  function isPlaceOccupied(row: Row): boolean {
    const local = row.entry === null ? undefined : localOf(row.entry);
    if (local === undefined || local.parent === null) return false;
    const { parent, name } = local;
    if (row.base?.parent === parent && row.base.name === name) return false;
    if (occupantOf(row) !== undefined) return true;
    return [...rows].some((other) => {
      const request = other === row ? undefined : other.attempt?.request;
      return request !== undefined && "parent" in request && request.parent === parent && request.name === name;
    });
  }

  const hasAttempt = (row: Row) =>
    row.attempt !== null ||
    [...rows].some(({ attempt }) => attempt?.request.do === "exchange" && attempt.request.with === row.nodeId);

  /** The node that is where this one wants to be, and wants to be where this one is. */
  function partnerOf(row: Row): View["partner"] {
    const other = !features.exchanges || row.base === null || !isPlaceOccupied(row) ? undefined : occupantOf(row);
    if (other?.nodeId == null || other.base === null || other.seen !== null || other.entry === null) return null;
    const place = localOf(other.entry);
    if (place.parent !== row.base?.parent || place.name !== row.base.name) return null;
    if (pathWithin(row).length > 0 || pathWithin(other).length > 0) return null;
    return { nodeId: other.nodeId, revision: other.base.revision, hasAttempt: hasAttempt(other) };
  }

  /** From the folder it wants to be in up to itself, in base; empty where that is not below it. */
  function pathWithin(row: Row): Row[] {
    const path: Row[] = [];
    let at = row.entry?.parent == null ? undefined : rowOf(row.entry.parent);
    while (at?.base != null && at !== row && !path.includes(at)) {
      path.push(at);
      at = at.base.parent === null ? undefined : rowOfNode(at.base.parent);
    }
    return at === row ? path : [];
  }

  const isAway = (row: Row) => {
    const local = row.entry === null ? null : localOf(row.entry);
    return local === null || local.parent !== row.base?.parent || local.name !== row.base.name;
  };

  function referrersOf(row: Row): Row[] {
    return [...rows].filter((other) => {
      const inode = other.entry?.inode;
      if (other === row || inode === undefined || inode.kind === "folder" || row.nodeId === null) return false;
      const isVersion = inode.state === "clean" || (inode.state === "open" && inode.hash !== null);
      return isVersion && inode.originNode === row.nodeId && other.base?.hash !== inode.hash;
    });
  }

  function fits(row: Row): boolean {
    const { inode } = row.entry ?? {};
    if (!scopes.isTight || inode?.kind !== "file" || inode.bytes.length <= (row.base?.size ?? 0)) return true;
    return ![...rows].some((other) => other.entry === null && other.nodeId !== null && other.kind === "file");
  }

  /** Those that do not wait for the room its removal makes (src/engine/sync/view.ts). */
  function neededBy(row: Row): Row[] {
    return referrersOf(row).filter((other) => !features.isFull || fits(other) || hasAttempt(other));
  }

  /** In it at the gateway, as agreed or as asked for and not answered. */
  const below = (row: Row) =>
    row.nodeId === null
      ? []
      : [...rows].filter((other) => {
          const request = other.attempt?.request;
          const wanted = request !== undefined && "parent" in request ? request.parent : undefined;
          return other !== row && (other.base?.parent === row.nodeId || wanted === row.nodeId);
        });

  /** What has to happen first, before the row can move, be born or go. */
  function blockersOf(row: Row): Row[] {
    if (row.entry === null) return [...below(row), ...referrersOf(row)];
    if (row.entry.parent === null || (row.base !== null && !isAway(row))) return [];
    const parent = rowOf(row.entry.parent);
    const occupant = occupantOf(row);
    return [
      ...(parent !== undefined && parent.nodeId === null ? [parent] : []),
      ...pathWithin(row).filter(isAway),
      ...(occupant === undefined ? [] : [occupant]),
    ];
  }

  /** Who waits for its name is waited for by itself; of several in one circle the first opens it. */
  function isCycle(row: Row): boolean {
    if (row.base === null) return false;
    const visited = new Set<Row>();
    const walk = (at: Row, holders: Row[]): boolean => {
      if (occupantOf(at) === row) return holders.every((holder) => holder.id >= row.id);
      if (visited.has(at)) return false;
      visited.add(at);
      return blockersOf(at).some((next) => walk(next, occupantOf(at) === next ? [...holders, next] : holders));
    };
    return walk(row, []);
  }

  function isDirty(row: Row): boolean {
    const { entry, base } = row;
    if (entry === null || base === null || row.attempt !== null) return true;
    const { inode } = entry;
    const isContentDirty =
      inode.kind === "file" &&
      inode.hash !== base.hash &&
      (inode.state !== "clean" || inode.originVersion !== base.head);
    return isAway(row) || isContentDirty || (features.attributes && !sameValue(inode.attributes, base.attributes));
  }

  function viewOf(row: Row): View {
    const { entry } = row;
    const inner = entry?.inode.kind === "folder" && row.seen !== null && "deleted" in row.seen ? inFolder(entry) : [];
    const dirty = inner.filter((child) => {
      const childRow = rowOf(child);
      return childRow === undefined || isDirty(childRow);
    });
    return {
      kind: row.kind,
      isRoot: entry === root,
      nodeId: row.nodeId,
      base: row.base,
      seen: row.seen,
      local: entry === null ? null : localOf(entry),
      hasAttempt: hasAttempt(row),
      hasAbandoned: entry === null && row.nodeId === null && hasGivenUpBirth(row),
      isFollower: false,
      linkOrder: null,
      hasOtherNames: false,
      mayHaveWritten: false,
      hasWaited: row.seen !== null && row.waitedFor === row.seen,
      writers: entry?.inode.writers ?? 0,
      below: entry === null && row.kind === "folder" ? below(row).length : 0,
      cleanEntries: inner.length - dirty.length,
      dirtyEntries: dirty.length,
      isPlaceOccupied: isPlaceOccupied(row),
      partner: partnerOf(row),
      isCycle: isCycle(row),
      isInsideItself: row.base !== null && pathWithin(row).length > 0,
      isReferenced: (entry === null || !features.isFull) && row.kind === "file" && neededBy(row).length > 0,
      fits: fits(row),
      features,
      mayRefer: features.references,
      may: { create: scopes.create, update: scopes.update, refer: scopes.refer, delete: scopes.delete },
    };
  }

  /** Every entry reaches the root and has one row; every name is there once. */
  function check(): void {
    for (const entry of entries) {
      if (!isInside(entry, root)) throw new Error(`${entry.name} does not reach the root`);
      for (let at: Entry | null = entry; at !== null; at = at.parent) {
        if (!entries.has(at)) throw new Error(`${entry.name} is in a folder that is gone`);
      }
      if ([...rows].filter((row) => row.entry === entry).length !== 1) throw new Error(`${entry.name} without one row`);
      if ([...entries].some((e) => e !== entry && e.parent === entry.parent && e.name === entry.name)) {
        throw new Error(`${entry.name} is there twice`);
      }
    }
  }

  return {
    root,
    rows,
    entries,
    overtaken,
    nameOvertaken,
    freeName,
    tombstones,
    arrivals,
    refresh,
    keys,
    givenUp,
    notEmpty,
    hasGivenUpBirth,
    dropRow,
    nextId,
    rowOf,
    rowOfNode,
    rowsAt,
    find,
    inFolder,
    nodeIdOf,
    isInside,
    addEntry,
    addRow,
    isDirty,
    isSeenAway,
    neededBy,
    viewOf,
    check,
  };
}

export type Tree = ReturnType<typeof createTree>;
