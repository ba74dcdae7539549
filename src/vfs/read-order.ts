/**
 * Which reads of a node by its id are older than a write of ours that was answered since: a read says what was there
 * when it was asked for or later, and its answer may be looked at long after. Never waits.
 */
import type { Node } from "../contract/resources.ts";

/** Nodes whose last write is remembered: many more than are written while one read is under way. */
const WRITES_MAX = 10_000;

export interface ReadOrder {
  /** Before a node is asked for: what `answered` is given. */
  asking(): number;
  answered(node: Node, asked: number): void;
  /** A write of ours to the node was answered. */
  wrote(nodeId: string): void;
  /** A write of ours was answered since the node was asked for: it may show what was before. */
  isOvertaken(node: Node): boolean;
}

export function createReadOrder(): ReadOrder {
  let writes = 0;
  /** By node, the oldest first. */
  const written = new Map<string, number>();
  const asked = new WeakMap<Node, number>();
  return {
    asking: () => writes,
    answered(node, before) {
      asked.set(node, before);
    },
    wrote(nodeId) {
      writes += 1;
      written.delete(nodeId);
      written.set(nodeId, writes);
      const [oldest] = written.keys();
      if (written.size > WRITES_MAX && oldest !== undefined) written.delete(oldest);
    },
    isOvertaken(node) {
      return (written.get(node.id) ?? 0) > (asked.get(node) ?? Number.POSITIVE_INFINITY);
    },
  };
}
