/**
 * For gateways that count no changes (plain ones). Each told state of a node gets a revision that is made here, so that
 * news and lag are told apart as with any other gateway. Only a read by id is believed, unless a write of ours was
 * answered since that read began (core/read-order.ts). A state that a write of ours has replaced is an echo until the
 * settle time is over; then the node is read again. Never waits.
 */
import { sameValue } from "../../contract/attributes.ts";
import { SETTLE_MS } from "../../contract/features.ts";
import type { Node } from "../../contract/resources.ts";
import { plus } from "../../lib/clocks.ts";
import { withinLimits } from "../../metadata/attribute-limits.ts";
import { type Base, type NodeRow, newestRevision } from "../../metadata/nodes.ts";
import type { Host, Remote, Rows } from "../core/index.ts";

type Needs = Pick<Rows & Remote & Host, "metadata" | "runtime" | "client" | "readOrder">;

/** id: a read by id, which is never old. others: lists and refusals, which may be old. */
export type Source = "id" | "others";

/** The fields of a node that a change can alter, for a gateway that counts no changes. */
type State = Pick<Base, "parent" | "name" | "head" | "attributes">;

const stateOf = (node: Node): State => ({
  parent: node.parentId,
  name: node.name,
  head: node.head,
  attributes: node.attributes,
});

/**
 * The node with the gateway's revision, or with one that is made here, so that it may be compared and stored. Its
 * attributes are within the limits. Undefined: the told state is lag.
 */
export function withRevision(context: Needs, told: Node, source: Source): Node | undefined {
  const node = withinLimits(told);
  if (context.client.features.isFull) return node;
  const actual = context.readOrder.isOutdated(node) ? "others" : source;
  const revision = revisionHere(context, node, actual);
  return revision === undefined ? undefined : { ...node, revision };
}

function revisionHere(context: Needs, node: Node, source: Source): number | undefined {
  const { metadata } = context;
  const row = metadata.nodes.ofNodeId(node.id);
  const state = stateOf(node);
  if (row === undefined) {
    if (isEcho(context, node.id, GONE)) return undefined;
    return (metadata.tombstones.get(node.id)?.revision ?? 0) + 1;
  }
  const { base, seen } = row;
  if (seen !== null && "node" in seen && isSame(state, stateOf(seen.node))) return seen.node.revision;
  if (base !== null && isSame(state, base)) {
    // The node was seen in another state meanwhile. A read by id means that it is back in base's state; a list may be
    // old.
    return seen === null || source !== "id" ? base.revision : newestRevision(row) + 1;
  }
  if (isEcho(context, node.id, textOf(state))) return undefined;
  if (source === "id") return newestRevision(row) + 1;
  metadata.rereads.add(node.id);
  return undefined;
}

/**
 * The node as the answer to a write of ours tells it, with a revision. It is newer than every state that was heard
 * before the write was sent. A state that was heard since may be older or newer. The answer replaces it, and the node
 * is read again.
 */
export function afterWrite(context: Needs, row: NodeRow, told: Node): Node {
  const node = withinLimits(told);
  if (context.client.features.isFull) return node;
  const isNewest = context.readOrder.wrote(node.id);
  if (!isNewest && row.nodeId !== null) context.metadata.rereads.add(node.id);
  return { ...node, revision: newestRevision(row) + 1 };
}

/**
 * True: the answer shows our request and nothing else, because the node equals `expected`, which is base after exactly
 * our request. One change since base would not prove that after a lost answer: another mount may have done the same and
 * more. Nor would it if the row has seen newer content than base's, which is still to be adopted.
 */
export function isOnlyOurs(context: Needs, before: Base | null, expected: Base, node: Node): boolean {
  if (context.client.features.isFull && node.revision !== (before?.revision ?? 0) + 1) return false;
  return isSame(stateOf(node), expected);
}

/** Notes that a write of ours replaced the state `before` by `after`, or removed the node (`after` null). */
export function vacateState(context: Needs, nodeId: string, before: State | null, after: State | null): void {
  const { client, metadata, runtime } = context;
  if (client.features.isFull) return;
  if (after === null) metadata.vacatedStates.add(nodeId, GONE, runtime.now());
  else {
    if (before !== null && !isSame(before, after)) metadata.vacatedStates.add(nodeId, textOf(before), runtime.now());
    metadata.vacatedStates.remove(nodeId, textOf(after));
  }
}

/** Forgets vacated states whose settle time is over. Nodes that were told in such a state are read again. */
export function forgetEchoes(context: Needs): void {
  const { client, metadata, runtime } = context;
  if (client.features.isFull) return;
  metadata.transaction(() => {
    for (const nodeId of metadata.vacatedStates.forgetUpTo(plus(runtime.now(), -SETTLE_MS)))
      metadata.rereads.add(nodeId);
  });
}

/** Stands for every state of a node that was removed. */
const GONE = "gone";

function isEcho({ metadata, runtime }: Needs, nodeId: string, text: string): boolean {
  return metadata.vacatedStates.isHeard(nodeId, text, plus(runtime.now(), -SETTLE_MS));
}

function isSame(a: State, b: State): boolean {
  const isPlaced = a.parent === b.parent && a.name === b.name && a.head === b.head;
  return isPlaced && sameValue(a.attributes, b.attributes);
}

function textOf({ parent, name, head, attributes }: State): string {
  return JSON.stringify([parent, name, head, sorted(attributes)]);
}

/** The value with its keys in order, so that equal values have equal texts. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, sorted(inner)]);
}
