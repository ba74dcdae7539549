/**
 * Decides which part of the past a gateway keeps, by a policy for each workspace. Without a policy it keeps everything.
 * A policy is applied once a day, and when its owner requests it. Only one prune runs at a time.
 */

import { DAY_MS } from "../../lib/time.ts";
import { collectBlobs } from "../collect-blobs.ts";
import { invalid, notFound, ProblemError, thinned } from "../problems.ts";
import type { Store } from "../store.ts";
import { inOneSpelling, KEEP_ALL, type PolicyWords, policyWords, readPolicy } from "./policy.ts";
import { type Pruned, type PruneNeeds, prune } from "./prune.ts";

/** A version whose content was removed has this instead of the number of a content row. */
export const THINNED_CONTENT = 0;

export interface WorkspacePolicy extends PolicyWords {
  /** Name of the workspace. */
  readonly workspace: string;
}

export interface PolicyChange {
  readonly versions?: string | undefined;
  readonly deleted?: string | undefined;
}

export interface PruneReport {
  readonly workspaces: readonly (Pruned & { readonly workspace: string })[];
  /** Number of files of the blob store that no row named any more: they were left by a gateway that died. */
  readonly orphans: number;
}

export interface Retention {
  /**
   * Returns the policies, ordered by name of workspace: of one workspace, given by name or id, or of all. Throws a
   * ProblemError (404) if there is no such workspace.
   */
  policies(workspace?: string): readonly WorkspacePolicy[];
  /**
   * Fields that are not given stay. The policy is applied a day later, or at a requested prune. Throws a ProblemError:
   * 404 if there is no such workspace, 400 if a field is no policy.
   */
  setPolicy(workspace: string, change: PolicyChange): WorkspacePolicy;
  /**
   * Applies the policy of a workspace, given by name or id, or of all. `isDry`: only counts. Rejects with a
   * ProblemError: 404 if there is no such workspace, 503 if the gateway closes meanwhile.
   */
  prune(options?: { readonly workspace?: string | undefined; readonly isDry?: boolean }): Promise<PruneReport>;
  /** Applies the policies that were not applied for a day. */
  pruneDue(): Promise<PruneReport>;
  /**
   * Resolves when no prune runs any more. A running prune ends after its slice; a later prune goes on with the rest.
   */
  close(): Promise<void>;
}

const NOTHING_DUE: PruneReport = { workspaces: [], orphans: 0 };

interface PolicyRow {
  readonly id: string;
  readonly name: string;
  /** JSON of PolicyWords. */
  readonly policy: string | null;
  readonly prunedAt: number | null;
}

export function createRetention(context: PruneNeeds): Retention {
  const { store, clock } = context;
  let isClosed = false;
  let last: Promise<unknown> = Promise.resolve();

  function rows(workspace: string | undefined): readonly PolicyRow[] {
    const found = store
      .prepare<PolicyRow>(
        `SELECT id, name, policy, pruned_at AS prunedAt FROM workspace
         WHERE :asked IS NULL OR :asked IN (id, name) ORDER BY name`,
      )
      .all({ asked: workspace ?? null });
    if (workspace === undefined || found.length > 0) return found;
    throw notFound(`There is no workspace ${JSON.stringify(workspace)}.`);
  }

  async function pruneAll(wanted: readonly PolicyRow[], isDry: boolean): Promise<PruneReport> {
    const workspaces: (Pruned & { workspace: string })[] = [];
    for (const row of wanted) {
      const policy = readPolicy(wordsOf(row));
      const pruned = await prune(context, { workspace: row.id, policy, isDry, goOn });
      if (!isDry) setPrunedAt(row.id);
      workspaces.push({ workspace: row.name, ...pruned });
    }
    return { workspaces, orphans: await collectBlobs(context, isDry) };
  }

  function goOn(): void {
    if (isClosed)
      throw new ProblemError(503, "The gateway ends. The prune was not finished; the next one goes on with the rest.");
  }

  function setPrunedAt(id: string): void {
    store.transaction(() => {
      store.prepare("UPDATE workspace SET pruned_at = ? WHERE id = ?").run(clock.wallClock(), id);
    });
  }

  /** Runs after the work in progress. */
  function inTurn(work: () => Promise<PruneReport>): Promise<PruneReport> {
    const done = last.then(() => {
      goOn();
      return work();
    });
    last = done.catch(() => {});
    return done;
  }

  return {
    policies: (workspace) => rows(workspace).map((row) => ({ workspace: row.name, ...wordsOf(row) })),
    setPolicy(workspace, { versions, deleted }) {
      const [row] = rows(workspace);
      if (row === undefined) throw notFound(`There is no workspace ${JSON.stringify(workspace)}.`);
      const before = wordsOf(row);
      const set = checked({ versions: versions ?? before.versions, deleted: deleted ?? before.deleted });
      store.transaction(() => {
        store
          .prepare("UPDATE workspace SET policy = ?, pruned_at = ? WHERE id = ?")
          .run(JSON.stringify(set), clock.wallClock(), row.id);
      });
      return { workspace: row.name, ...set };
    },
    prune: ({ workspace, isDry = false } = {}) => inTurn(() => pruneAll(rows(workspace), isDry)),
    pruneDue() {
      return inTurn(async () => {
        const now = clock.wallClock();
        // A time in the future is from before the clock was set back.
        const isDue = ({ policy, prunedAt }: PolicyRow) =>
          policy !== null && (prunedAt === null || prunedAt > now || prunedAt <= now - DAY_MS);
        const due = rows(undefined).filter(isDue);
        return due.length === 0 ? NOTHING_DUE : pruneAll(due, false);
      });
    },
    async close() {
      isClosed = true;
      await last;
    },
  };
}

function wordsOf({ policy }: PolicyRow): PolicyWords {
  return policy === null ? KEEP_ALL : policyWords.parse(JSON.parse(policy));
}

function checked(words: PolicyWords): PolicyWords {
  try {
    return inOneSpelling(words);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw invalid(message.startsWith("versions") ? "versions" : "deleted", message);
  }
}

/** True if a deleted node can still be restored: the policy has not removed it. */
export function isRestorable(store: Store, node: string): boolean {
  return store.prepare("SELECT 1 FROM node WHERE id = ? AND purged = 1").get(node) === undefined;
}

/** Within a transaction: throws a 410 when the policy has removed a deleted node. */
export function requireRestorable(store: Store, node: string): void {
  if (!isRestorable(store, node))
    throw thinned("The node was deleted too long ago: the workspace's retention policy has removed it for good.");
}
