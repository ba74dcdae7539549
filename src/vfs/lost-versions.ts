/**
 * The gateway's data were replaced by older ones. What it had acknowledged since, or told of, it has no more; where all
 * the bytes of that are here, they may be the only ones there are. They become changed content again, as if a program had
 * written them just now: kept beside what has the name there by then, or made again where nothing has it. Knows nothing
 * of how that is found out, and of no place: names go by what the gateway tells.
 */
import { forEachAtOnce } from "../lib/at-once.ts";
import { hasCode } from "../lib/system-error.ts";
import type { Inode } from "../metadata/inodes.ts";
import { markNode } from "./changes.ts";
import type { Context } from "./context.ts";
import { isStandIn } from "./effect.ts";
import { hasVersion, readOrHidden } from "./fetch-node.ts";
import { READERS } from "./follow.ts";
import { rowsOfInode } from "./links.ts";
import { tellWritten } from "./staged-files.ts";

/** Live files looked at in one go. */
const SLICE = 500;

/** Content that is here in full, and of which the gateway lacks a version it once had. */
export interface Lost {
  readonly inode: number;
  readonly lineage: number;
  /** Node rows, each with the head that is gone. */
  readonly heads: ReadonlyMap<number, string>;
}

/** Asks the gateway for the version of every content that is here in full. Rejects when it does not answer. */
export async function findLost(context: Context, signal: AbortSignal): Promise<Lost[]> {
  const found: Lost[] = [];
  for (let after = 0; ; ) {
    const lineages = context.metadata.lives.whole(after, SLICE);
    const last = lineages.at(-1);
    if (last === undefined) return found;
    after = last;
    await forEachAtOnce(lineages, READERS, async (lineage) => {
      const lost = await lookAt(context, lineage, signal);
      if (lost !== undefined) found.push(lost);
    });
  }
}

async function lookAt(context: Context, lineage: number, signal: AbortSignal): Promise<Lost | undefined> {
  const inode = currentOf(context, lineage);
  if (inode === undefined) return undefined;
  const heads = new Map<number, string>();
  for (const { id, nodeId, base } of rowsOfInode(context, inode.id)) {
    if (nodeId === null || base?.head == null || isStandIn(base.head)) continue;
    if (!(await isThere(context, nodeId, base.head, signal))) heads.set(id, base.head);
  }
  if (heads.size === 0 || !(await isTrue(context, inode, signal))) return undefined;
  return { inode: inode.id, lineage, heads };
}

/** What a program is writing anew is sent anyway. */
function currentOf({ metadata }: Context, lineage: number): Inode | undefined {
  const inode = metadata.inodes.ofLineage(lineage);
  return inode?.lineage === lineage && inode.kind === "file" && inode.content !== "dirty" ? inode : undefined;
}

/** Whether the gateway has this version. Of a node that may not be read nothing is known: it counts as there. */
async function isThere(context: Context, nodeId: string, version: string, signal: AbortSignal): Promise<boolean> {
  const node = await readOrHidden(context, nodeId, signal);
  if (node === undefined) return false;
  if (node === "hidden" || node.head === version) return true;
  // Who cannot be asked for it may have it or not: what is here is kept.
  return context.client.features.versions && (await hasVersion(context, nodeId, version, signal));
}

/** Power loss or a broken disk may have made something else of it, which must not become anybody's content. */
async function isTrue({ metadata, runtime, paths }: Context, inode: Inode, signal: AbortSignal): Promise<boolean> {
  if (inode.hash === null) return metadata.lives.get(inode.lineage)?.doubted === 0;
  try {
    return (await runtime.files.hash(paths.live(inode.lineage), signal)).hash === inode.hash;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

/** Within a transaction. What has become of it since it was looked at counts: it is another content then. */
export function keepLost(context: Context, all: readonly Lost[]): void {
  for (const lost of all) keep(context, lost);
}

function keep(context: Context, { inode: id, lineage, heads }: Lost): void {
  const { metadata, lives, staged, log } = context;
  const inode = currentOf(context, lineage);
  if (inode?.id !== id) return;
  const rows = rowsOfInode(context, id).filter((row) => row.base?.head != null && heads.get(row.id) === row.base.head);
  if (rows.length === 0) return;
  // By its hash the content would count as the version that is gone.
  for (const { id: row, base } of rows) {
    if (base !== null) metadata.nodes.update(row, { base: { ...base, hash: null } });
  }
  const ofNothing = { originNode: null, originVersion: null };
  const changed = { content: "dirty", changes: inode.changes + 1, hash: null, synced: null } as const;
  const kept = metadata.inodes.update(id, { ...changed, ...ofNothing });
  metadata.lives.update(lineage, ofNothing);
  // What was written here has waited since then: a drain that is under way is not over without it.
  for (const row of rowsOfInode(context, id)) markNode(context, row, row.changedAt === 0 ? null : row.changedAt);
  metadata.afterCommit(() => {
    const live = lives.get(lineage);
    // Whoever has it open writes to what is changed already, and no check finds it to be another version.
    if (live !== undefined) Object.assign(live, { origin: undefined, originHash: null, isOriginal: false });
    tellWritten(context, kept, live);
    void staged.flush();
    log.warn({ inode: id, size: inode.size }, "the gateway has lost this content: it is kept, and sent again");
  });
}
