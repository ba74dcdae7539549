/**
 * Applies a policy to a workspace: contents that it does not keep are removed, together with the blobs that only they
 * used. Names, sizes, hashes and the journal stay, so that lists of any moment stay the same. A removed content is a
 * 410.
 *
 * The prune works in slices, between which requests are answered. Each slice removes rows first, and blobs once that is
 * committed. A process that dies between the two leaves blobs that no row names, for the next collection. The decisions
 * of a slice are final: a version that is no head never becomes one again, and a purged node is not restored.
 *
 * Never touched are heads, of every branch, of nodes that exist or may be restored; and versions that were heads when a
 * running copy began to read (`context.copying`).
 */
import { minus } from "../../lib/clocks.ts";
import { freeBlob } from "../collect-blobs.ts";
import type { Context } from "../context.ts";
import { pause } from "../source-trees.ts";
import { isKept, isToBePurged, type Policy } from "./policy.ts";

export type PruneNeeds = Pick<Context, "store" | "blobs" | "clock" | "staged" | "copying">;

/** The numbers of things that were removed, or in a dry run would be. */
export interface Pruned {
  /** Versions whose content cannot be read any more. */
  versions: number;
  /** Deleted files and folders that cannot be restored any more. */
  nodes: number;
  /** Size of contents that no version uses any more. */
  bytes: number;
  /** Files of the blob store that contained those contents; small contents are rows. */
  blobs: number;
}

/** A slice ends after this time, at the end of a page. */
const SLICE_MS = 5;
/** Maximum number of pages in a slice. */
const SLICE_PAGES = 100;
/** The number of nodes, or of versions of a node, in one page. */
const PAGE = 50;

interface PastVersion {
  readonly id: string;
  readonly content: number;
  readonly size: number;
}

/** The findings of one page. */
interface Found {
  /** A node whose purge begins here. */
  readonly purged: string | undefined;
  readonly versions: readonly PastVersion[];
}

interface Pruning {
  readonly workspace: string;
  readonly policy: Policy;
  /** Changes nothing. */
  readonly isDry: boolean;
  /** Called between slices; throws to end the prune there. */
  readonly goOn: () => void;
}

export async function prune(context: PruneNeeds, pruning: Pruning): Promise<Pruned> {
  const { store, clock } = context;
  const pruned: Pruned = { versions: 0, nodes: 0, bytes: 0, blobs: 0 };
  const take = pruning.isDry ? foresight(context, pruned) : removal(context, pruned);
  const found = findPast(context, pruning);
  for (let isOver = false; !isOver; ) {
    pruning.goOn();
    const begun = clock.elapsed();
    const freed: string[] = [];
    const slice = () => {
      for (let pages = 0; pages < SLICE_PAGES && minus(clock.elapsed(), begun) < SLICE_MS; pages += 1) {
        const { done, value } = found.next();
        if (done === true) {
          isOver = true;
          return;
        }
        take(value, freed);
      }
    };
    if (pruning.isDry) slice();
    else {
      store.transaction(slice);
      clock.step("gateway: versions thinned");
      await store.committed();
      for (const blob of freed) if (await freeBlob(context, blob)) pruned.blobs += 1;
    }
    await pause();
  }
  return pruned;
}

type Take = (found: Found, freed: string[]) => void;

/** Within a transaction. `freed`: blobs that no row names afterwards. */
function removal({ store }: PruneNeeds, pruned: Pruned): Take {
  const purge = store.prepare("UPDATE node SET purged = 1 WHERE id = ?");
  const thin = store.prepare("UPDATE version SET content = 0 WHERE id = ?");
  const user = store.prepare("SELECT 1 FROM version WHERE content = ? LIMIT 1");
  const remove = store.prepare<{ blob: string | null }>("DELETE FROM content WHERE id = ? RETURNING blob");
  return ({ purged, versions }, freed) => {
    if (purged !== undefined) pruned.nodes += purge.run(purged).changes;
    for (const { id, content, size } of versions) {
      pruned.versions += thin.run(id).changes;
      if (user.get(content) !== undefined) continue;
      pruned.bytes += size;
      const blob = remove.get(content)?.blob;
      if (typeof blob === "string") freed.push(blob);
    }
  };
}

/** Counts the rows and blobs that `removal` would remove. */
function foresight({ store }: PruneNeeds, pruned: Pruned): Take {
  const users = store.prepare<number>("SELECT count(*) FROM version WHERE content = ?").pluck();
  const hasBlob = store.prepare<number>("SELECT blob IS NOT NULL FROM content WHERE id = ?").pluck();
  /** For contents with several users: how many users are left. */
  const left = new Map<number, number>();
  return ({ purged, versions }) => {
    if (purged !== undefined) pruned.nodes += 1;
    for (const { content, size } of versions) {
      pruned.versions += 1;
      const others = (left.get(content) ?? users.get(content) ?? 0) - 1;
      if (others > 0) left.set(content, others);
      else {
        pruned.bytes += size;
        pruned.blobs += hasBlob.get(content) ?? 0;
      }
    }
  };
}

interface PastNode {
  readonly id: string;
  readonly deleted: number;
  readonly purged: number;
  readonly position: number;
  /** Time of its latest change. */
  readonly time: number;
}

/** Yields after each page, with findings or without. */
function* findPast(context: PruneNeeds, pruning: Pruning): Generator<Found> {
  const { store } = context;
  const nodes = store.prepare<PastNode>(
    `SELECT n.id, n.deleted, n.purged, n.position, c.time FROM node n INDEXED BY node_past
     JOIN change c ON c.position = n.position
     WHERE n.workspace = ? AND n.id > ? AND (n.versions > 1 OR n.deleted = 1) ORDER BY n.id LIMIT ${PAGE}`,
  );
  for (let page = nodes.all(pruning.workspace, ""); ; page = nodes.all(pruning.workspace, page.at(-1)?.id)) {
    for (const node of page) yield* findIn(context, pruning, node);
    if (page.length < PAGE) return;
    yield { purged: undefined, versions: [] };
  }
}

interface VersionRow extends PastVersion {
  readonly number: number;
  readonly branch: string;
  readonly position: number;
  readonly createdAt: number;
}

/**
 * The latest version comes first: a content was in use from the time of its version until that of the next one on the
 * branch.
 */
function* findIn(context: PruneNeeds, { policy }: Pruning, { id }: PastNode): Generator<Found> {
  const { store, clock, copying } = context;
  const now = clock.wallClock();
  // The node is read again, because it may have been restored since its page was read.
  const node = findPastNode(context, id);
  if (node === undefined) return;
  const isOver = (position: number) => [...copying].every((copy) => position <= copy.position);
  const isPurged =
    node.purged === 1 || (node.deleted === 1 && isOver(node.position) && isToBePurged(policy, node.time, now));
  let purged = isPurged && node.purged === 0 ? node.id : undefined;
  const versions = store.prepare<VersionRow>(
    `SELECT id, number, branch, position, content, size, created_at AS createdAt FROM version
     WHERE node = ? AND number < ? ORDER BY number DESC LIMIT ${PAGE}`,
  );
  const next = new Map<string, VersionRow>();
  const isPast = (version: VersionRow): boolean => {
    const after = next.get(version.branch);
    next.set(version.branch, version);
    if (version.content === 0) return false;
    if (isPurged) return true;
    return after !== undefined && isOver(after.position) && !isKept(policy, version.createdAt, after.createdAt, now);
  };
  for (let last = Number.MAX_SAFE_INTEGER, length = PAGE; length === PAGE; ) {
    const page = versions.all(node.id, last);
    yield { purged, versions: page.filter(isPast) };
    purged = undefined;
    length = page.length;
    last = page.at(-1)?.number ?? 0;
  }
}

function findPastNode({ store }: PruneNeeds, id: string): PastNode | undefined {
  return store
    .prepare<PastNode>(
      `SELECT n.id, n.deleted, n.purged, n.position, c.time FROM node n JOIN change c ON c.position = n.position
       WHERE n.id = ?`,
    )
    .get(id);
}
