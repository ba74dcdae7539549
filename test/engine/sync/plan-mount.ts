/**
 * A mount as plain values, for the planner's property test: what is sent and what its answer or silence means (as
 * src/engine/upload/write-back.ts and send.ts, and src/engine/sync/acknowledge.ts), without network or clock.
 */
import { patchAttributes, sameValue } from "../../../src/contract/attributes.ts";
import type { Node } from "../../../src/contract/resources.ts";
import type { Request } from "../../../src/engine/core/index.ts";
import { type Base, baseOf } from "../../../src/metadata/nodes.ts";
import type { Abilities, Answer, Gateway } from "./plan-gateway.ts";
import { createLocalSteps } from "./plan-local-steps.ts";
import { type Attempt, createTree, type Entry, type Row, type Scopes } from "./plan-tree.ts";

/** What happens to a request: both ways whole, lost before or after its effect, or answered later. */
export type Fate = "answered" | "lost" | "answer lost" | "late";

/** `tell`: one line for each thing that happens, for whoever reads a failure. */
export function createMount(gateway: Gateway, scopes: Scopes, features: Abilities, tell: (line: string) => void) {
  const tree = createTree(gateway, scopes, features);
  const steps = createLocalSteps(tree, gateway, tell);
  const { rows, entries, tombstones, arrivals, refresh, keys, givenUp, notEmpty } = tree;
  const { rowOfNode, nodeIdOf, inFolder, isDirty, neededBy, dropRow } = tree;
  const { advance, bury, observeNode, observeDeletion, takeOwn, arrive, moveAside, revisionOf } = steps;

  /** One turn of the write-back loop for this row. */
  function turn(row: Row, fate: Fate): void {
    if (!rows.has(row)) return;
    if (row.attempt === null) {
      const step = advance(row);
      if (step === undefined || step.do === "wait") return;
      if (step.do === "snapshot") {
        const inode = row.entry?.inode;
        if (inode !== undefined) Object.assign(inode, { state: "dirty", hash: inode.bytes, hasSnapshot: true });
        return;
      }
      prepare(row, step.do === "send" ? step.request : breakCycle(row, step.ifRevision));
    }
    transmit(row, fate);
  }

  function breakCycle(row: Row, ifRevision: number): Request {
    if (row.nodeId === null || row.base?.parent == null) throw new Error("a ring through an unborn node");
    return { do: "patch", nodeId: row.nodeId, ifRevision, parent: row.base.parent, name: `.moving-${tree.nextId()}` };
  }

  function prepare(row: Row, request: Request): void {
    const key = `k${tree.nextId()}`;
    const inode = row.entry?.inode ?? null;
    if ((request.do === "upload" || request.do === "content") && inode?.hash !== inode?.bytes) {
      throw new Error("content was sent without a snapshot");
    }
    const attempt = { key, request, bytes: inode?.bytes ?? "", inode, changes: inode?.changes ?? 0 };
    row.attempt = { ...attempt, tries: 0, answer: null };
    keys.set(key, row);
  }

  function transmit(row: Row, fate: Fate): void {
    const { attempt } = row;
    if (attempt === null) return;
    if (attempt.answer === null) {
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
    if (request.do === "exchange") return;
    const isUnseenHead = now.head !== null && now.head !== row.base.head && !gateway.isOurs(now.head);
    if (request.do === "delete") {
      const isMatch = now.revision === request.ifRevision;
      if (isMatch && isUnseenHead) throw new Error("an edit nobody here saw was deleted");
      if (isMatch && neededBy(row).length > 0) throw new Error("a version somebody here still needs was deleted");
      return;
    }
    if (request.do !== "patch" && (request.ifHead === null || request.ifHead === now.head) && isUnseenHead) {
      throw new Error("an edit nobody here saw was overwritten");
    }
    const isRefused =
      request.do === "patch"
        ? request.ifRevision !== now.revision
        : request.ifHead !== null && request.ifHead !== now.head;
    if (isRefused) return;
    if (!features.isFull && request.do !== "patch" && neededBy(row).length > 0)
      throw new Error("a version somebody here still needs was replaced");
    for (const [key, value] of Object.entries(request.attributes ?? {})) {
      const isDirty = !sameValue(value ?? undefined, row.base.attributes[key]);
      if (key !== "mtime" && key !== "xattrs" && !isDirty && !sameValue(value ?? undefined, now.attributes[key])) {
        throw new Error(`attribute ${key}, not changed here, was put back`);
      }
    }
  }

  function acknowledge(row: Row, attempt: Attempt, node: Node, position?: number): void {
    if (attempt.request.do === "delete") {
      acknowledgeDeletion(row, node.revision);
      return;
    }
    if (row.nodeId !== null && row.nodeId !== node.id) {
      if (row.seen !== null && "deleted" in row.seen) bury(row);
      else refresh.add(row.nodeId);
      Object.assign(row, { nodeId: null, base: null, seen: null });
    }
    const effect = effectOf(row.base, attempt, node, position);
    const isPlaced = node.parentId === effect.parent && node.name === effect.name && node.head === effect.head;
    const isAsked = isPlaced && sameValue(node.attributes, effect.attributes);
    const isOnlyOurs = node.revision === (row.base?.revision ?? 0) + 1 && isAsked;
    const base = isOnlyOurs ? baseOf(node, position) : effect;
    if (row.seen === null || (!("deleted" in row.seen) && row.seen.node.revision <= node.revision)) {
      row.seen = isOnlyOurs ? null : { node };
    }
    absorb(row, node.id);
    Object.assign(row, { nodeId: node.id, base, attempt: null });
    if (attempt.request.do === "exchange") otherHasMoved(attempt.request, position);
    arrivals.delete(node.id);
    const inode = row.entry?.inode;
    const isKnown = base.head?.startsWith("superseded:") !== true;
    if (isKnown && "size" in attempt.request && inode === attempt.inode && inode?.changes === attempt.changes) {
      const state = inode.writers > 0 ? "open" : "clean";
      Object.assign(inode, { state, hash: inode.bytes, originNode: node.id, originVersion: base.head });
    }
    advance(row);
  }

  function otherHasMoved(request: Extract<Request, { do: "exchange" }>, position?: number): void {
    const row = rowOfNode(request.with);
    if (row?.base?.revision !== request.withRevision) {
      refresh.add(request.with);
      return;
    }
    const revision = request.withRevision + 1;
    row.base = { ...row.base, parent: request.withParent, name: request.withName, revision, position };
    if (revisionOf(row.seen) <= revision) row.seen = null;
    advance(row);
  }

  /** Somebody changed the node we made before we had the answer, so that it came in as a stranger. */
  function absorb(row: Row, nodeId: string): void {
    const stranger = rowOfNode(nodeId);
    if (stranger === undefined || stranger === row) return;
    gateway.forgetPlacing(nodeId);
    if (stranger.base !== null && stranger.base.revision > revisionOf(row.seen)) refresh.add(nodeId);
    const { entry } = stranger;
    if (entry === null || (!isDirty(stranger) && entry.inode.writers === 0 && inFolder(entry).length === 0)) {
      rows.delete(stranger);
      if (entry !== null) entries.delete(entry);
    } else Object.assign(stranger, { nodeId: null, base: null, seen: null, attempt: null, left: null });
  }

  /** Base after exactly our request, when the node shows that somebody changed it since. */
  function effectOf(before: Base | null, { request, key }: Attempt, node: Node, position?: number): Base {
    const common = { ...(before ?? baseOf(node, position)), revision: node.revision, position };
    if (request.do === "delete") return common;
    const place =
      "parent" in request ? { parent: request.parent ?? common.parent, name: request.name ?? common.name } : {};
    if (request.do === "exchange") return { ...common, ...place };
    if (request.do === "patch") {
      const patched = patchAttributes(common.attributes, request.attributes ?? {});
      return { ...common, ...place, attributes: features.attributes ? patched : {} };
    }
    const { mtime: _, ...kept } = before?.attributes ?? {};
    const attributes = features.attributes ? patchAttributes(kept, request.attributes) : {};
    if (request.do === "folder") return { ...common, ...place, attributes };
    const isHeadOurs = request.hash === null || node.contentHash === request.hash;
    const head = isHeadOurs ? node.head : `superseded:${key}`;
    return { ...common, ...place, head, hash: request.hash ?? node.contentHash, size: request.size, attributes };
  }

  function acknowledgeDeletion(row: Row, revision: number): void {
    row.seen = { deleted: true, revision };
    bury(row);
    row.attempt = null;
    if (row.entry === null) {
      dropRow(row);
      return;
    }
    Object.assign(row, { nodeId: null, base: null, seen: null });
    advance(row);
  }

  function refused(row: Row, attempt: Attempt, answer: Extract<Answer, { ok: false }>): void {
    const { request } = attempt;
    const { node } = answer;
    const isOther = request.do === "exchange" && node?.id === request.with;
    if (!isOther && node?.lastKey != null && keys.get(node.lastKey) === row) {
      if (attempt.key === node.lastKey) {
        acknowledge(row, attempt, node);
        return;
      }
    }
    row.attempt = null;
    if (node?.lastKey != null && takeOwn(node)) return;
    if (row.nodeId !== null) refresh.add(row.nodeId);
    if (answer.code === "notFound" || node === undefined) {
      if (request.do === "delete" && answer.code === "conflict" && row.entry === null) notEmpty.add(request.nodeId);
      if (request.do === "exchange") refresh.add(request.with);
      if ("parent" in request && request.parent !== undefined) refresh.add(request.parent);
    } else if ("parent" in request && node.id !== row.nodeId) nameIsTaken(row, node);
    else if (node.revision !== row.base?.revision) observeNode(node);
  }

  function nameIsTaken(row: Row, told: Node): void {
    const waiting = arrivals.get(told.id);
    const node = waiting !== undefined && waiting.revision > told.revision ? waiting : told;
    if (rowOfNode(node.id) !== undefined || node.revision <= (tombstones.get(node.id) ?? -1)) {
      observeNode(node);
      return;
    }
    const { entry } = row;
    const isThere = entry?.parent != null && entry.name === node.name && nodeIdOf(entry.parent) === node.parentId;
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
    Object.assign(row, { nodeId: node.id, base: baseOf(node), seen: null });
    arrivals.delete(node.id);
    advance(row);
    return true;
  }

  /** Reads again by id what did not fit together; nodes whose folder is not known with their folders. */
  function refreshAll(): void {
    for (const id of [...refresh]) {
      refresh.delete(id);
      const chain: Node[] = [];
      for (let node = gateway.live(id); node !== undefined; node = gateway.live(node.parentId ?? ""))
        chain.unshift(node);
      if (chain.length === 0) observeDeletion(id, gateway.revisionOf(id));
      for (const node of chain) observeNode(node);
    }
    for (const id of [...notEmpty]) {
      notEmpty.delete(id);
      for (const node of gateway.children(id)) observeNode(node);
    }
    for (const node of [...arrivals.values()]) {
      if (rowOfNode(node.id) !== undefined) arrivals.delete(node.id);
      observeNode(node);
    }
  }

  /**
   * A writer came while the content was being sent (src/engine/files/cancel-upload.ts). The request has arrived, or
   * may still do so.
   */
  function giveUp(row: Row): void {
    const { attempt } = row;
    if (attempt === null || (attempt.request.do !== "upload" && attempt.request.do !== "content")) return;
    const { key, request, bytes } = attempt;
    tell(`row ${row.id}: ${key} given up`);
    givenUp.set(key, { row, key, request, bytes, isUnderWay: attempt.answer === null });
    row.attempt = null;
  }

  /** One that was given up reaches the gateway after all, or never will. */
  function endGivenUp(key: string, arrives: boolean): void {
    const given = givenUp.get(key);
    if (given === undefined || !given.isUnderWay) return;
    given.isUnderWay = false;
    if (!arrives) return;
    tell(`row ${given.row.id}: ${key} arrives late: ${JSON.stringify(gateway.apply(given.request, key, given.bytes))}`);
  }

  /** So long ago that none of them can arrive any more. */
  function forgetAbandoned(): void {
    for (const key of givenUp.keys()) endGivenUp(key, false);
    givenUp.clear();
  }

  /** The daemon dies and starts: answers are lost, nobody has a file open, what was open is looked at. */
  function crash(): void {
    for (const row of rows)
      if (row.attempt !== null) Object.assign(row.attempt, { answer: null, tries: row.attempt.tries + 1 });
    for (const { inode } of entries) {
      inode.writers = 0;
      if (inode.state !== "open") continue;
      if (inode.hash === null) inode.finished = inode.bytes;
      Object.assign(inode, { state: "dirty", hash: null, hasSnapshot: false });
    }
    for (const one of [...tree.overtaken]) {
      const { inode } = one;
      inode.writers = 0;
      if (inode.hash === null) Object.assign(inode, { state: "dirty", finished: inode.bytes });
      tree.nameOvertaken(one);
    }
    refresh.clear();
  }

  return {
    ...tree,
    advance,
    observeNode,
    observeDeletion,
    turn,
    refreshAll,
    crash,
    giveUp,
    endGivenUp,
    forgetAbandoned,
  };
}

export type Mount = ReturnType<typeof createMount>;
