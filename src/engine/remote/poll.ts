/**
 * Remote changes of a gateway without a journal: known folders are listed again, a few at a time. Folders that programs
 * visited lately come first, all others in turn. Listed nodes are judged as always (observe.ts). This file only decides
 * which folder is next.
 */
import { type ElapsedTime, minus, plus } from "../../lib/clocks.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Host, Remote, Rows, Uploads } from "../core/index.ts";
import type { Sync } from "../sync/index.ts";
import type { Tree } from "../tree/index.ts";
import { listMarked, relistKnown } from "./relist.ts";

/** Folders listed in one round: so many of those visited lately (VISITED), and of all (IN_TURN). */
const VISITED = 6;
const IN_TURN = 2;
/** A visit counts for so long. */
const VISIT_MS = 10 * 60_000;
const VISITS_MAX = 1_000;

/** A program looked into the folder. */
export function visitFolder({ polled, runtime }: Remote & Host, folder: InodeId): void {
  const { visits } = polled;
  const polledAt = visits.get(folder)?.polledAt;
  visits.delete(folder);
  visits.set(folder, { at: runtime.elapsed(), polledAt });
  const [oldest] = visits.keys();
  if (visits.size > VISITS_MAX && oldest !== undefined) visits.delete(oldest);
}

/**
 * Lists the folders of one round. Resolves to false: the next round can wait. Rejects with a RemoteError or FsError
 * when the gateway does not answer.
 */
export async function pollFolders(
  context: Rows & Remote & Uploads & Host & Tree & Sync,
  signal: AbortSignal,
): Promise<boolean> {
  const { metadata, polled, runtime } = context;
  await listMarked(context, signal);
  for (const folder of nextFolders(context)) {
    if (signal.aborted) return false;
    const visit = polled.visits.get(folder);
    if (visit !== undefined) polled.visits.set(folder, { ...visit, polledAt: runtime.elapsed() });
    await relistKnown(context, folder, signal);
  }
  metadata.transaction(() => {
    metadata.settings.set("cursor", String(metadata.settings.getNumber("indexed")));
    context.shown.forgetDeletions();
  });
  return false;
}

/** The order of two times of listing. A folder that was not listed since its first visit comes first. */
function inOrder(a: ElapsedTime | undefined, b: ElapsedTime | undefined): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return minus(a, b);
}

function nextFolders({ metadata, polled, runtime }: Rows & Remote & Host): Set<InodeId> {
  const since = plus(runtime.elapsed(), -VISIT_MS);
  for (const [folder, { at }] of polled.visits) if (at < since) polled.visits.delete(folder);
  const visited = [...polled.visits]
    .sort(([, a], [, b]) => inOrder(a.polledAt, b.polledAt))
    .slice(0, VISITED)
    .map(([folder]) => folder);
  const folders = new Set(visited);
  for (let count = 0; count < IN_TURN; count += 1) {
    const next = metadata.inodes.knownFolderAfter(polled.turn) ?? metadata.inodes.knownFolderAfter(0);
    polled.turn = next ?? 0;
    if (next !== undefined) folders.add(next);
  }
  return folders;
}
