/**
 * Orders reads of a node and our writes to it, for gateways that count no changes. Never waits.
 * - A read shows the node as it was when the read was sent, or later. The answer may be looked at long after that, so
 *   it may be older than a write that was answered meanwhile.
 * - The answer to a write shows the node as it was when the write was carried out. That may be long ago, because a
 *   write that is sent again gets its first answer. So the answer may be older than a read.
 */
import type { Node } from "../../contract/resources.ts";

/** How many nodes are remembered: many more than are written while one read or one write is under way. */
const NODES_MAX = 10_000;

export interface ReadOrder {
  /** Call it before a read is sent, and give the result to `answered` with each node of the answer. */
  asking(): number;
  answered(node: Node, asked: number): void;
  /** Call it when a write of ours to the node is sent for the first time. */
  writing(nodeId: string): void;
  /**
   * Call it when the write was answered. False: the node was read since the write was sent, or may have been, so the
   * answer may be older than that read.
   */
  wrote(nodeId: string): boolean;
  /** True: a write of ours was answered since this read was sent, so `node` may be the state before the write. */
  isOutdated(node: Node): boolean;
}

export function createReadOrder(): ReadOrder {
  let writes = 0;
  /** By node: the number of its last write, the oldest first. */
  const written = new Map<string, number>();
  const asked = new WeakMap<Node, number>();
  /** Nodes to which a write of ours was sent, and which were not read since. */
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
      const [write, read] = [written.get(node.id), asked.get(node)];
      return write !== undefined && read !== undefined && write > read;
    },
  };
}

function forgetOldest(nodes: Set<string> | Map<string, unknown>): void {
  const [oldest] = nodes.keys();
  if (nodes.size > NODES_MAX && oldest !== undefined) nodes.delete(oldest);
}
