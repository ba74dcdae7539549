/**
 * What a mount does by itself, as values, for the planner's property test: carries out the plan's
 * steps (as src/engine/sync/advance.ts and take.ts) and takes in what is heard (observe.ts, arrival.ts).
 */
import type { Node } from "../../../src/contract/resources.ts";
import { plan, type Step } from "../../../src/engine/sync/plan.ts";
import { baseOf, type Seen } from "../../../src/metadata/nodes.ts";
import type { Gateway } from "./plan-gateway.ts";
import { type Entry, folderInode, type Inode, inodeOfNode, type Row, type Tree } from "./plan-tree.ts";

type LocalStep = Extract<Step, { do: "adopt" | "adoptPlace" | "undelete" | "removeLocal" | "recreate" | "conflict" }>;
export type Pending = Extract<Step, { do: "send" | "snapshot" | "breakCycle" | "wait" }>;

const STEPS_MAX = 20;

export function createLocalSteps(tree: Tree, gateway: Gateway, tell: (line: string) => void) {
  const { root, rows, entries, tombstones, arrivals, refresh, keys, givenUp } = tree;
  const { rowOf, rowOfNode, find, freeName, isInside, addEntry, addRow, dropRow, viewOf } = tree;

  /** Carries out what happens here; the first step that needs more, or undefined when nothing is left. */
  function advance(row: Row): Pending | undefined {
    for (let count = 0; count < STEPS_MAX; count += 1) {
      if (!rows.has(row)) return undefined;
      const step = plan(viewOf(row));
      if (step.do !== "nothing" && step.do !== "wait")
        tell(`row ${row.id} ${row.entry?.name}: ${JSON.stringify(step)}`);
      switch (step.do) {
        case "nothing":
          return undefined;
        case "forget":
          bury(row);
          dropRow(row);
          return undefined;
        case "send":
        case "snapshot":
        case "breakCycle":
        case "wait":
          return step;
        default:
          if (!carryOut(row, step)) {
            if (row.nodeId !== null) refresh.add(row.nodeId);
            return { do: "wait", for: "name" };
          }
      }
    }
    throw new Error("the steps of the plan do not end");
  }

  function carryOut(row: Row, step: LocalStep): boolean {
    switch (step.do) {
      case "adopt":
        return takeNode(row, step);
      case "adoptPlace":
        return follow(row, step.node);
      case "undelete":
        return restore(row, step.node);
      case "removeLocal":
        if (row.entry !== null) leave(row.entry, true);
        bury(row);
        if (row.entry !== null) entries.delete(row.entry);
        dropRow(row);
        return true;
      case "recreate":
        bury(row);
        Object.assign(row, { nodeId: null, base: null, seen: null, attempt: null, left: null });
        return true;
      case "conflict":
        return keepBoth(row, step.node);
    }
  }

  /** The name goes on without this content. A program that has it open for writing keeps it: it has written nothing. */
  function leave({ inode, parent, name }: Entry, isRemoved: boolean): void {
    if (inode.kind === "file" && inode.writers > 0 && inode.hash === null) throw new Error("a writer lost its name");
    requireKept(inode);
    if (inode.kind === "folder" || inode.writers === 0 || parent === null) return;
    tree.overtaken.add({ inode: { ...inode, finished: null }, folder: parent, name, isRemoved });
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

  function takeNode(row: Row, step: Extract<Step, { do: "adopt" }>): boolean {
    const { entry } = row;
    if (entry !== null) {
      if (step.isPlaceAdopted && gateway.isPlacedByUs(step.node))
        throw new Error("our own move came back as a remote one");
      if (step.isPlaceAdopted && !takePlace(entry, step.node)) return false;
      const { inode } = entry;
      if (step.isContentAdopted) leave(entry, false);
      Object.assign(inode, step.isContentAdopted ? inodeOfNode(step.node) : {}, { attributes: step.attributes });
      if (step.isContentAgreed) {
        const state = inode.writers > 0 ? "open" : "clean";
        Object.assign(inode, { state, originNode: step.node.id, originVersion: step.node.head });
      }
    }
    row.base = baseOf(step.node, row.base?.position);
    row.seen = null;
    return true;
  }

  /** The place alone; what else is new stays to be judged. */
  function follow(row: Row, node: Node): boolean {
    if (row.entry === null || row.base === null || !takePlace(row.entry, node)) return false;
    row.base = { ...row.base, parent: node.parentId, name: node.name };
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
  function isAtHome(row: Row, node: Node): boolean {
    return row.base?.parent === node.parentId && row.base.name === node.name && !tree.isSeenAway(row);
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

  /** Bases may for a while form a circle, as long as one move of two is known. */
  function reviveFolder(nodeId: string, inside: readonly string[] = []): Entry | undefined {
    const row = rowOfNode(nodeId);
    if (row === undefined || row.kind !== "folder" || row.base === null || inside.includes(nodeId)) return undefined;
    if (row.entry !== null) return row.entry;
    const parent = row.base.parent === null ? undefined : reviveFolder(row.base.parent, [...inside, nodeId]);
    if (parent === undefined) return undefined;
    const occupant = find(parent, row.base.name);
    if (occupant !== undefined) moveAside(occupant);
    row.entry = addEntry(parent, row.base.name, folderInode(row.base.attributes));
    return row.entry;
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
    row.base = baseOf(node);
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
      if ((node.lastKey === null || keys.get(node.lastKey)?.attempt?.key !== node.lastKey) && !takeOwn(node))
        arrive(node);
      return;
    }
    const isNews = node.revision > (row.base?.revision ?? -1) && node.revision > revisionOf(row.seen);
    if (isNews && takeOwn(node)) return;
    if (isNews) row.seen = { node };
    advance(row);
  }

  /** As src/engine/sync/own-writes.ts. */
  function takeOwn(node: Node): boolean {
    const given = node.lastKey === null ? undefined : givenUp.get(node.lastKey);
    if (given === undefined || !rows.has(given.row)) return false;
    const { row, key } = given;
    if (row.nodeId === node.id && node.revision <= (row.base?.revision ?? -1)) return false;
    const known = rowOfNode(node.id);
    if (known !== undefined && known !== row) return false;
    givenUp.delete(key);
    if ((arrivals.get(node.id)?.revision ?? 0) <= node.revision) arrivals.delete(node.id);
    const request = row.nodeId === null ? row.attempt?.request : undefined;
    const isOtherPlace =
      request !== undefined && "parent" in request && (request.parent !== node.parentId || request.name !== node.name);
    if (isOtherPlace || (row.nodeId !== null && row.nodeId !== node.id)) {
      addRow({ kind: node.kind, entry: null, nodeId: node.id, base: baseOf(node) });
      return true;
    }
    Object.assign(row, { nodeId: node.id, base: baseOf(node), seen: null });
    advance(row);
    return true;
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
    if (node.lastKey !== null && keys.has(node.lastKey)) throw new Error("what we sent came back as somebody else's");
    // Something new is in it: a folder that was to be deleted lives.
    const folder = node.parentId === null ? undefined : (folderOfNode(node.parentId) ?? reviveFolder(node.parentId));
    if (folder === undefined) return;
    const occupant = find(folder, node.name);
    if (occupant !== undefined && !makeWay(occupant, node)) {
      arrivals.set(node.id, node);
      return;
    }
    const entry = addEntry(folder, node.name, inodeOfNode(node));
    addRow({ kind: node.kind, entry, nodeId: node.id, base: baseOf(node) });
  }

  function makeWay(occupant: Entry, node: Node): boolean {
    const row = rowOf(occupant);
    if (row === undefined) return false;
    if (row.nodeId === null) {
      if (row.kind === node.kind || !isHeldBack(row)) return false;
    } else if (isAtHome(row, node)) {
      refresh.add(row.nodeId);
      return false;
    }
    moveAside(occupant);
    return true;
  }

  function isHeldBack(row: Row): boolean {
    const step = plan(viewOf(row));
    return step.do === "wait" && (step.for === "quota" || step.for === "scope");
  }

  return { advance, bury, observeNode, observeDeletion, takeOwn, arrive, moveAside, revisionOf };
}

export type LocalSteps = ReturnType<typeof createLocalSteps>;
