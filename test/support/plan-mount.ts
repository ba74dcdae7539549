/**
 * The mount as plain values, for the planner's property test: names, inodes and node rows, and what
 * src/vfs does with them (view, advance, take, observe, arrival, send, settle), without rows on disk,
 * network or clock. Hard links are left out: every inode has one name.
 */
import { type Attributes, patchAttributes, sameValue } from "../../src/contract/attributes.ts";
import type { Node } from "../../src/contract/resources.ts";
import { type Base, baseOf, type Seen } from "../../src/metadata/nodes.ts";
import { type Local, plan, type Step, type View } from "../../src/vfs/plan.ts";
import { isKeyed, type Request } from "../../src/vfs/request.ts";
import { type Answer, type Gateway, ROOT } from "./plan-gateway.ts";

export interface Inode {
  readonly kind: "file" | "folder";
  attributes: Attributes;
  state: "clean" | "open" | "dirty";
  hash: string | null;
  bytes: string;
  isCut: boolean;
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

interface Attempt {
  readonly key: string;
  readonly request: Request;
  readonly bytes: string;
  readonly inode: Inode | null;
  readonly changes: number;
  tries: number;
  /** On its way back. */
  answer: Answer | null;
}

export interface Row {
  readonly id: number;
  readonly kind: "file" | "folder";
  entry: Entry | null;
  nodeId: string | null;
  base: Base | null;
  seen: Seen | null;
  attempt: Attempt | null;
  /** The place a program moved it away from a moment ago. */
  left: { readonly parent: Entry; readonly name: string } | null;
}

type LocalStep = Extract<Step, { do: "take" | "restore" | "vanish" | "rebirth" | "conflict" }>;
/** What happens to a request: both ways whole, lost before or after its effect, or answered later. */
export type Fate = "answered" | "lost" | "answer lost" | "late";

const STEPS_MAX = 20;

export function folderInode(attributes: Attributes): Inode {
  return { ...fileInode("", attributes), kind: "folder", state: "clean", hash: null, finished: null };
}

export function fileInode(bytes: string, attributes: Attributes): Inode {
  const content = { kind: "file", state: "dirty", hash: bytes, bytes, isCut: true } as const;
  const origin = { originNode: null, originVersion: null };
  return { ...content, ...origin, attributes, changes: 0, writers: 0, finished: bytes };
}

export function inodeOfNode(node: Node): Inode {
  if (node.kind === "folder") return folderInode(node.attributes);
  const inode = fileInode(node.contentHash ?? "", node.attributes);
  return { ...inode, state: "clean", originNode: node.id, originVersion: node.head, finished: null };
}

/** `tell`: one line for each thing that happens, for whoever reads a failure. */
export function createMount(gateway: Gateway, scopes: { delete: boolean }, tell: (line: string) => void) {
  const rows = new Set<Row>();
  const entries = new Set<Entry>();
  const tombstones = new Map<string, number>();
  const arrivals = new Map<string, Node>();
  const refresh = new Set<string>();
  const keys = new Map<string, Row>();
  let ids = 0;

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
    const entry = { id: ++ids, parent, name, inode };
    entries.add(entry);
    return entry;
  }

  function addRow(row: Pick<Row, "kind" | "entry"> & Partial<Row>): Row {
    const made: Row = { id: ++ids, nodeId: null, base: null, seen: null, attempt: null, left: null, ...row };
    rows.add(made);
    return made;
  }

  const root = addEntry(null, "", folderInode({}));
  const rootNode = gateway.live(ROOT);
  if (rootNode === undefined) throw new Error("no root");
  addRow({ kind: "folder", entry: root, nodeId: ROOT, base: baseOf(rootNode, 0) });

  // --- view.ts

  function localOf(entry: Entry): Local {
    const { inode } = entry;
    const { state, hash, bytes, originNode, originVersion, isCut } = inode;
    const content = { state, hash, size: bytes.length, originNode, originVersion, isCut: isCut || hash === "" };
    return {
      parent: entry.parent === null ? null : nodeIdOf(entry.parent),
      name: entry.name,
      attributes: inode.attributes,
      content: inode.kind === "folder" ? null : content,
    };
  }

  function occupantOf(row: Row): Row | undefined {
    const local = row.entry === null ? undefined : localOf(row.entry);
    if (local === undefined || local.parent === null) return undefined;
    return rowsAt(local.parent, local.name).find((other) => other !== row);
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
      return inode.state === "clean" && inode.originNode === row.nodeId && other.base?.hash !== inode.hash;
    });
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
  function isRing(row: Row): boolean {
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
      inode.kind === "file" && inode.hash !== base.hash && (inode.state !== "clean" || inode.originVersion !== base.head);
    return isAway(row) || isContentDirty || !sameValue(inode.attributes, base.attributes);
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
      hasAttempt: row.attempt !== null,
      writers: entry?.inode.writers ?? 0,
      below: entry === null && row.kind === "folder" ? below(row).length : 0,
      cleanEntries: inner.length - dirty.length,
      dirtyEntries: dirty.length,
      isPlaceTaken: occupantOf(row) !== undefined,
      isRing: isRing(row),
      isInsideItself: row.base !== null && pathWithin(row).length > 0,
      isReferenced: entry === null && row.kind === "file" && referrersOf(row).length > 0,
      may: { create: true, update: true, delete: scopes.delete },
    };
  }

  // --- advance.ts, take.ts

  /** Carries out what happens here; the first step that needs more, or undefined when nothing is left. */
  function advance(row: Row): Extract<Step, { do: "send" | "cut" | "unring" | "wait" }> | undefined {
    for (let count = 0; count < STEPS_MAX; count += 1) {
      if (!rows.has(row)) return undefined;
      const step = plan(viewOf(row));
      if (step.do !== "nothing" && step.do !== "wait") tell(`row ${row.id} ${row.entry?.name}: ${JSON.stringify(step)}`);
      switch (step.do) {
        case "nothing":
          return undefined;
        case "forget":
          bury(row);
          rows.delete(row);
          return undefined;
        case "send":
        case "cut":
        case "unring":
        case "wait":
          return step;
        default:
          if (!carryOut(row, step)) {
            if (row.nodeId !== null) refresh.add(row.nodeId);
            return { do: "wait", for: "name" };
          }
      }
    }
    throw new Error("the plan does not settle");
  }

  function carryOut(row: Row, step: LocalStep): boolean {
    switch (step.do) {
      case "take":
        return takeNode(row, step);
      case "restore":
        return restore(row, step.node);
      case "vanish":
        if (row.entry !== null) requireKept(row.entry.inode);
        bury(row);
        rows.delete(row);
        if (row.entry !== null) entries.delete(row.entry);
        return true;
      case "rebirth":
        bury(row);
        Object.assign(row, { nodeId: null, base: null, seen: null, attempt: null, left: null });
        return true;
      case "conflict":
        return keepBoth(row, step.node);
    }
  }

  /** The inode stops showing what a program had finished writing: that must be somewhere else. */
  function requireKept({ finished }: Inode): void {
    if (finished !== null && !gateway.contents().has(finished)) throw new Error(`${finished} is lost`);
  }

  function bury(row: Row): void {
    if (row.nodeId === null) return;
    const revision = row.seen !== null && "deleted" in row.seen ? row.seen.revision : (row.base?.revision ?? 0);
    tombstones.set(row.nodeId, Math.max(revision, tombstones.get(row.nodeId) ?? 0));
  }

  function takeNode(row: Row, step: Extract<Step, { do: "take" }>): boolean {
    const { entry } = row;
    if (entry !== null) {
      if (step.isPlaceTaken && !takePlace(entry, step.node)) return false;
      const { inode } = entry;
      const taken = step.isContentTaken ? inodeOfNode(step.node) : inode;
      if (step.isContentTaken && inode.writers > 0) throw new Error("content was adopted under a writer");
      if (step.isContentTaken) requireKept(inode);
      Object.assign(inode, taken, { attributes: step.attributes, writers: inode.writers });
      if (step.isContentAgreed) {
        Object.assign(inode, { state: "clean", originNode: step.node.id, originVersion: step.node.head });
      }
    }
    row.base = baseOf(step.node, row.base?.position ?? 0);
    row.seen = null;
    return true;
  }

  function takePlace(entry: Entry, node: Node): boolean {
    const folder = node.parentId === null ? undefined : reviveFolder(node.parentId);
    if (folder === undefined) return false;
    const occupant = find(folder, node.name);
    if (occupant !== undefined && occupant !== entry) {
      const other = rowOf(occupant);
      if (other?.nodeId != null && isAtHome(other, node)) {
        refresh.add(other.nodeId);
        return false;
      }
      moveAside(occupant);
    }
    while (isInside(folder, entry)) openCircle(folder, entry);
    entry.parent = folder;
    entry.name = node.name;
    return true;
  }

  /** As far as is known it is where this one wants to be: one of the two is old. What is seen to leave is not. */
  function isAtHome({ base, seen }: Row, node: Node): boolean {
    if (base?.parent !== node.parentId || base.name !== node.name) return false;
    return seen === null || (!("deleted" in seen) && seen.node.parentId === base.parent && seen.node.name === base.name);
  }

  function openCircle(target: Entry, moved: Entry): void {
    for (let at: Entry | null = target; at !== null && at !== moved; at = at.parent) {
      const base = rowOf(at)?.base;
      const home = base?.parent == null ? undefined : folderOfNode(base.parent);
      if (base == null || home === undefined || isInside(home, moved)) continue;
      const name = find(home, base.name) === undefined ? base.name : freeName(home, base.name);
      at.parent = home;
      at.name = name;
      return;
    }
    target.name = freeName(root, target.name);
    target.parent = root;
  }

  const folderOfNode = (nodeId: string): Entry | undefined => {
    const row = rowOfNode(nodeId);
    return row?.kind === "folder" ? (row.entry ?? undefined) : undefined;
  };

  function reviveFolder(nodeId: string): Entry | undefined {
    const row = rowOfNode(nodeId);
    if (row === undefined || row.kind !== "folder" || row.base === null) return undefined;
    if (row.entry !== null) return row.entry;
    const parent = row.base.parent === null ? undefined : reviveFolder(row.base.parent);
    if (parent === undefined) return undefined;
    const name = find(parent, row.base.name) === undefined ? row.base.name : freeName(parent, row.base.name);
    row.entry = addEntry(parent, name, folderInode(row.base.attributes));
    return row.entry;
  }

  function freeName(folder: Entry, name: string): string {
    for (let number = 1; ; number += 1) {
      const candidate = `${name} (conflict ${number})`;
      if (find(folder, candidate) === undefined) return candidate;
    }
  }

  function moveAside(entry: Entry): void {
    if (entry.parent !== null) entry.name = freeName(entry.parent, entry.name);
  }

  function restore(row: Row, node: Node): boolean {
    const folder = node.parentId === null ? undefined : reviveFolder(node.parentId);
    if (folder === undefined) return false;
    const occupant = find(folder, node.name);
    if (occupant !== undefined) moveAside(occupant);
    row.entry = addEntry(folder, node.name, inodeOfNode(node));
    row.base = baseOf(node, 0);
    row.seen = null;
    return true;
  }

  function keepBoth(row: Row, node: Node): boolean {
    const { entry, base } = row;
    if (entry?.parent == null || base === null) throw new Error("a conflict without a name");
    addRow({ kind: "file", entry: addEntry(entry.parent, freeName(entry.parent, entry.name), entry.inode) });
    entry.inode = inodeOfNode(node);
    row.base = { ...base, head: node.head, hash: node.contentHash, size: node.size };
    return true;
  }

  // --- observe.ts, arrival.ts

  const revisionOf = (seen: Seen | null) =>
    seen === null ? -1 : "deleted" in seen ? seen.revision : seen.node.revision;

  function observeNode(node: Node): void {
    if (node.revision <= (tombstones.get(node.id) ?? -1)) return;
    const row = rowOfNode(node.id);
    if (row === undefined) {
      if (node.lastKey === null || keys.get(node.lastKey)?.attempt?.key !== node.lastKey) arrive(node);
      return;
    }
    if (node.revision > (row.base?.revision ?? -1) && node.revision > revisionOf(row.seen)) row.seen = { node };
    advance(row);
  }

  function observeDeletion(nodeId: string, revision: number): void {
    arrivals.delete(nodeId);
    const row = rowOfNode(nodeId);
    if (row === undefined) {
      tombstones.set(nodeId, Math.max(revision, tombstones.get(nodeId) ?? 0));
      return;
    }
    if (revision <= (row.base?.revision ?? -1) || revision <= revisionOf(row.seen)) return;
    row.seen = { deleted: true, revision };
    advance(row);
  }

  function arrive(node: Node): void {
    arrivals.delete(node.id);
    const folder = node.parentId === null ? undefined : folderOfNode(node.parentId);
    if (folder === undefined) return;
    const occupant = find(folder, node.name);
    if (occupant !== undefined && !makeWay(occupant, node)) {
      arrivals.set(node.id, node);
      return;
    }
    const entry = addEntry(folder, node.name, inodeOfNode(node));
    addRow({ kind: node.kind, entry, nodeId: node.id, base: baseOf(node, 0) });
  }

  function makeWay(occupant: Entry, node: Node): boolean {
    const row = rowOf(occupant);
    if (row === undefined || row.nodeId === null) return false;
    if (isAtHome(row, node)) {
      refresh.add(row.nodeId);
      return false;
    }
    moveAside(occupant);
    return true;
  }

  // --- writeback.ts, send.ts, settle.ts

  /** One turn of the write-back loop for this row. */
  function turn(row: Row, fate: Fate): void {
    if (!rows.has(row)) return;
    if (row.attempt === null) {
      const step = advance(row);
      if (step === undefined || step.do === "wait") return;
      if (step.do === "cut") {
        const inode = row.entry?.inode;
        if (inode !== undefined) Object.assign(inode, { state: "dirty", hash: inode.bytes, isCut: true });
        return;
      }
      prepare(row, step.do === "send" ? step.request : unring(row, step.ifRevision));
    }
    transmit(row, fate);
  }

  function unring(row: Row, ifRevision: number): Request {
    if (row.nodeId === null || row.base?.parent == null) throw new Error("a ring through an unborn node");
    return { do: "patch", nodeId: row.nodeId, ifRevision, parent: row.base.parent, name: `.moving-${++ids}` };
  }

  function prepare(row: Row, request: Request): void {
    const key = `k${++ids}`;
    const inode = row.entry?.inode ?? null;
    if ((request.do === "upload" || request.do === "content") && inode?.hash !== inode?.bytes) {
      throw new Error("content was sent that is not cut");
    }
    const attempt = { key, request, bytes: inode?.bytes ?? "", inode, changes: inode?.changes ?? 0 };
    row.attempt = { ...attempt, tries: 0, answer: null };
    keys.set(key, row);
  }

  function transmit(row: Row, fate: Fate): void {
    const { attempt } = row;
    if (attempt === null) return;
    if (attempt.answer === null) {
      if (attempt.tries > 0 && !isKeyed(attempt.request)) return settleByReading(row, attempt);
      attempt.tries += 1;
      tell(`row ${row.id}: ${attempt.key} ${attempt.request.do} ${fate}`);
      if (fate === "lost") return;
      checkOverwrite(row, attempt.request);
      attempt.answer = gateway.apply(attempt.request, attempt.key, attempt.bytes);
      if (fate === "answer lost") attempt.answer = null;
      if (fate !== "answered") return;
    }
    const { answer } = attempt;
    if (answer === null) return;
    tell(`row ${row.id}: answered ${JSON.stringify(answer)}`);
    if (answer.ok) acknowledge(row, attempt, answer.node, answer.position);
    else refused(row, attempt, answer);
  }

  /** Nothing of somebody else's is replaced that was never taken in here. */
  function checkOverwrite(row: Row, request: Request): void {
    if (!("nodeId" in request)) return;
    const now = gateway.live(request.nodeId);
    if (now === undefined || row.base === null) return;
    const isUnseenHead = now.head !== null && now.head !== row.base.head && !gateway.isOurs(now.head);
    if (request.do === "delete") {
      const isMatch = now.revision === request.ifRevision;
      if (isMatch && isUnseenHead) throw new Error("an edit nobody here saw was deleted");
      if (isMatch && referrersOf(row).length > 0) throw new Error("a version somebody here still needs was deleted");
      return;
    }
    if (request.do !== "patch" && (request.ifHead === null || request.ifHead === now.head) && isUnseenHead) {
      throw new Error("an edit nobody here saw was overwritten");
    }
    const isRefused =
      request.do === "patch" ? request.ifRevision !== now.revision : request.ifHead !== null && request.ifHead !== now.head;
    if (isRefused) return;
    for (const [key, value] of Object.entries(request.attributes ?? {})) {
      const isDirty = !sameValue(value ?? undefined, row.base.attributes[key]);
      if (key !== "mtime" && key !== "xattrs" && !isDirty && !sameValue(value ?? undefined, now.attributes[key])) {
        throw new Error(`attribute ${key}, not changed here, was put back`);
      }
    }
  }

  function settleByReading(row: Row, attempt: Attempt): void {
    const { request } = attempt;
    if (request.do !== "patch" && request.do !== "delete") throw new Error("has a key");
    const node = gateway.live(request.nodeId);
    if (node === undefined) {
      if (request.do === "delete") acknowledgeDeletion(row, (row.base?.revision ?? 0) + 1);
      else {
        row.attempt = null;
        observeDeletion(request.nodeId, gateway.revisionOf(request.nodeId));
      }
      return;
    }
    const isDone =
      request.do === "patch" &&
      (request.parent ?? node.parentId) === node.parentId &&
      (request.name ?? node.name) === node.name &&
      sameValue(patchAttributes(node.attributes, request.attributes ?? {}), node.attributes);
    if (isDone) return acknowledge(row, attempt, node, 0);
    row.attempt = null;
    observeNode(node);
  }

  function acknowledge(row: Row, attempt: Attempt, node: Node, position: number): void {
    if (attempt.request.do === "delete") return acknowledgeDeletion(row, node.revision);
    const isOnlyOurs = node.revision === (row.base?.revision ?? 0) + 1;
    const base = isOnlyOurs ? baseOf(node, position) : effectOf(row.base, attempt, node, position);
    if (row.seen === null || (!("deleted" in row.seen) && row.seen.node.revision <= node.revision)) {
      row.seen = isOnlyOurs ? null : { node };
    }
    absorb(row, node.id);
    Object.assign(row, { nodeId: node.id, base, attempt: null });
    arrivals.delete(node.id);
    const inode = row.entry?.inode;
    if ("size" in attempt.request && inode === attempt.inode && inode?.changes === attempt.changes) {
      const state = inode.writers > 0 ? "open" : "clean";
      Object.assign(inode, { state, hash: inode.bytes, originNode: node.id, originVersion: base.head });
    }
    advance(row);
  }

  /** Somebody changed the node we made before we had the answer, so that it came in as a stranger. */
  function absorb(row: Row, nodeId: string): void {
    const stranger = rowOfNode(nodeId);
    if (stranger === undefined || stranger === row) return;
    if (stranger.base !== null && stranger.base.revision > revisionOf(row.seen)) refresh.add(nodeId);
    const { entry } = stranger;
    if (entry === null || (!isDirty(stranger) && entry.inode.writers === 0 && inFolder(entry).length === 0)) {
      rows.delete(stranger);
      if (entry !== null) entries.delete(entry);
    } else Object.assign(stranger, { nodeId: null, base: null, seen: null, attempt: null, left: null });
  }

  /** Base after exactly our request, when the node shows that somebody changed it since. */
  function effectOf(before: Base | null, { request, key }: Attempt, node: Node, position: number): Base {
    const common = { ...(before ?? baseOf(node, position)), revision: node.revision, position };
    if (request.do === "delete") return common;
    const place =
      "parent" in request ? { parent: request.parent ?? common.parent, name: request.name ?? common.name } : {};
    if (request.do === "patch") {
      return { ...common, ...place, attributes: patchAttributes(common.attributes, request.attributes ?? {}) };
    }
    const { mtime: _, ...kept } = before?.attributes ?? {};
    const attributes = patchAttributes(kept, request.attributes);
    if (request.do === "folder") return { ...common, ...place, attributes };
    const isHeadOurs = request.hash === null || node.contentHash === request.hash;
    const head = isHeadOurs ? node.head : `superseded:${key}`;
    return { ...common, ...place, head, hash: request.hash ?? node.contentHash, size: request.size, attributes };
  }

  function acknowledgeDeletion(row: Row, revision: number): void {
    row.seen = { deleted: true, revision };
    bury(row);
    if (row.entry === null) {
      rows.delete(row);
      return;
    }
    Object.assign(row, { nodeId: null, base: null, seen: null, attempt: null });
    advance(row);
  }

  function refused(row: Row, attempt: Attempt, answer: Extract<Answer, { ok: false }>): void {
    const { request } = attempt;
    const { node } = answer;
    if (node?.lastKey != null && keys.get(node.lastKey) === row) {
      if (attempt.key === node.lastKey) return acknowledge(row, attempt, node, 0);
    }
    row.attempt = null;
    if (row.nodeId !== null) refresh.add(row.nodeId);
    if (answer.code === "notFound" || node === undefined) {
      if (request.do === "delete" && answer.code === "conflict") reviveFolder(request.nodeId);
      if ("parent" in request && request.parent !== undefined) refresh.add(request.parent);
    } else if ("parent" in request && node.id !== row.nodeId) nameIsTaken(row, node);
    else if (node.revision !== row.base?.revision) observeNode(node);
  }

  function nameIsTaken(row: Row, node: Node): void {
    if (rowOfNode(node.id) !== undefined) return observeNode(node);
    const { entry } = row;
    const isThere =
      entry?.parent != null && entry.name === node.name && nodeIdOf(entry.parent) === node.parentId;
    if (entry !== null && isThere && row.nodeId === null && join(row, entry, node)) return;
    if (entry !== null && isThere) moveAside(entry);
    arrive(node);
  }

  function join(row: Row, entry: Entry, node: Node): boolean {
    const { inode } = entry;
    if (inode.kind !== node.kind) return false;
    if (inode.kind === "file" && (inode.state === "open" || inode.hash !== node.contentHash)) return false;
    inode.attributes = { ...inode.attributes, ...node.attributes };
    if (inode.kind === "file") {
      Object.assign(inode, { state: "clean", originNode: node.id, originVersion: node.head });
    }
    Object.assign(row, { nodeId: node.id, base: baseOf(node, 0), seen: null });
    arrivals.delete(node.id);
    advance(row);
    return true;
  }

  /** Reads again by id what did not fit together; nodes whose folder is not known with their folders. */
  function refreshAll(): void {
    for (const id of [...refresh]) {
      refresh.delete(id);
      const chain: Node[] = [];
      for (let node = gateway.live(id); node !== undefined; node = gateway.live(node.parentId ?? "")) chain.unshift(node);
      if (chain.length === 0) observeDeletion(id, gateway.revisionOf(id));
      for (const node of chain) observeNode(node);
    }
    for (const node of [...arrivals.values()]) {
      if (rowOfNode(node.id) !== undefined) arrivals.delete(node.id);
      observeNode(node);
    }
  }

  /** The daemon dies and starts: answers are lost, nobody has a file open, what was open is looked at. */
  function crash(): void {
    for (const row of rows) if (row.attempt !== null) Object.assign(row.attempt, { answer: null, tries: row.attempt.tries + 1 });
    for (const { inode } of entries) {
      inode.writers = 0;
      if (inode.state !== "open") continue;
      if (inode.hash === null) inode.finished = inode.bytes;
      Object.assign(inode, { state: "dirty", hash: null, isCut: false });
    }
    refresh.clear();
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
    root, rows, entries, arrivals, refresh,
    rowOf, rowOfNode, rowsAt, find, inFolder, nodeIdOf, isInside,
    addEntry, addRow, advance, turn, observeNode, observeDeletion, refreshAll, crash, check, viewOf,
  };
}

export type Mount = ReturnType<typeof createMount>;
