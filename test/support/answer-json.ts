/** The JSON of any answer: all fields any of them has, for tests that know which one they asked for. */
import type { JournalEntry, Node, Problem, Version, Workspace, WrittenNode } from "../../src/contract/resources.ts";

type Item = Omit<Node, "kind"> & Version & Workspace & JournalEntry;

export type AnswerJson = Omit<WrittenNode, "kind"> &
  Omit<Problem, "node"> &
  Omit<JournalEntry, "kind"> & {
    readonly kind: string;
    readonly node: Node;
    readonly items: readonly Item[];
    readonly totalCount: number;
    readonly pageNo: number;
    readonly pageSize: number;
    readonly asOf: number;
    readonly next: string | null;
  };
