/**
 * Which reads of a node by its id are older than a write of ours that was answered since: a read says what was there
 * when it was asked for or later, and its answer may be looked at long after. And which answers to writes may be older
 * than a read: they say what was there when the write was carried out, maybe long ago, for a write that is sent again
 * gets its first answer. Never waits.
 */
import type { Node } from "../../contract/resources.ts";

/** Nodes of which anything is remembered: many more than are written while one read, or one write, is under way. */
const NODES_MAX = 10_000;

export interface ReadOrder {
  /** Before a node is asked for: what `answered` is given. */
  asking(): number;
  answered(node: Node, asked: number): void;
  /** A write of ours to the node is sent for the first time. */
  writing(nodeId: string): void;
  /** It was answered. False: the node was read since it was sent, or that is not known; the answer may be older. */
  wrote(nodeId: string): boolean;
  /** A write of ours was answered since the node was asked for: it may show what was before. */
  isOutdated(node: Node): boolean;
}

export function createReadOrder(): ReadOrder {
  let writes = 0;
  /** By node, the oldest first. */
  const written = new Map<string, number>();
  const asked = new WeakMap<Node, number>();
  /** Nodes that a write of ours was sent to, and that were not read since. */
  const unread = new Set<string>();
  return {
    asking: () => writes,
    answered(node, before) {
      asked.set(node, before);
      unread.delete(node.id);
    },
    writing(nodeId) {
      unread.add(nodeId);
      forgetOldest(unread);
    },
    wrote(nodeId) {
      writes += 1;
      written.delete(nodeId);
      written.set(nodeId, writes);
      forgetOldest(written);
      return unread.delete(nodeId);
    },
    isOutdated(node) {
      return (written.get(node.id) ?? 0) > (asked.get(node) ?? Number.POSITIVE_INFINITY);
    },
  };
}

function forgetOldest(nodes: Set<string> | Map<string, unknown>): void {
  const [oldest] = nodes.keys();
  if (nodes.size > NODES_MAX && oldest !== undefined) nodes.delete(oldest);
}
