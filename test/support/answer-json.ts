/** The JSON of any answer: all fields any of them has, for tests that know which one they asked for. */

import type { ApiKey, CreatedApiKey } from "../../src/contract/api-keys.ts";
import type {
  AccountStatus,
  JournalEntry,
  Node,
  Problem,
  Version,
  Workspace,
  WrittenNode,
} from "../../src/contract/resources.ts";
import type { Trigger } from "../../src/contract/triggers.ts";

type Item = Omit<Node, "kind"> & Version & Workspace & JournalEntry & Pick<ApiKey, "expiresAt" | "lastUsedAt">;

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
    readonly nextAt: Trigger["nextAt"];
    readonly rootId: Workspace["rootId"];
    readonly key: CreatedApiKey["key"] | null;
    readonly expiresAt: AccountStatus["expiresAt"];
    readonly workspaces: AccountStatus["workspaces"];
  };
