/**
 * Whatever changes in the rows without the kernel having asked for it is told to the kernel, whoever
 * changed it and why: the rows say it themselves (metadata/changed.ts), so that no flow can forget to.
 * So the kernel's caches hold what the rows hold, for as long as it is told; how long it may trust them
 * without is freshness.ts's to say.
 *
 * Of folders it is remembered here for a while whether the kernel may hold their listing, or that a name
 * is not in them: a folder that fills for the first time needs no word for each of its names.
 */
import type { Changed } from "../metadata/changed.ts";
import type { Context } from "./context.ts";
import { LIVE_MS } from "./freshness.ts";
import type { ChangedName } from "./kernel-cache.ts";

/** Folders remembered. What is not is listed again, and no name is remembered as absent. */
const FOLDERS_MAX = 10_000;

type Needs = Pick<Context, "metadata" | "kernel">;

/** Changes rows as the kernel asked for: its caches follow by themselves. */
export function asAsked<T>({ metadata }: Pick<Context, "metadata">, change: () => T): T {
  return metadata.changed.heard(() => metadata.transaction(change));
}

/** The listing that begins now may be kept. */
export function noteListed({ kernel: { listed } }: Pick<Context, "kernel">, folder: number): void {
  listed.delete(folder);
  listed.add(folder);
  const [oldest] = listed;
  if (listed.size > FOLDERS_MAX && oldest !== undefined) listed.delete(oldest);
}

/** A name is about to be told to be absent. False: that could not be taken back, so it must not be remembered. */
export function noteAbsent({ kernel, runtime }: Pick<Context, "kernel" | "runtime">, folder: number): boolean {
  const { absentIn, cache } = kernel;
  if (!cache.forgetsAbsent) return false;
  const now = runtime.elapsed();
  for (const [other, at] of absentIn) {
    if (now - at <= LIVE_MS) break;
    absentIn.delete(other);
  }
  if (absentIn.size >= FOLDERS_MAX && !absentIn.has(folder)) return false;
  absentIn.delete(folder);
  absentIn.set(folder, now);
  return true;
}

/** To be called right after each commit. */
export function tellKernel(context: Needs, changed: Changed): void {
  const { metadata, kernel } = context;
  // A listing as it was before is not to be taken up again by another opening of the folder.
  for (const folder of changed.heardIn) kernel.listed.delete(folder);
  const names: ChangedName[] = [];
  const listings = new Set<number>();
  for (const [folder, among] of changed.names) {
    const parent = metadata.inodes.get(folder)?.lineage;
    if (parent === undefined) continue;
    const isNewsOfAbsent = kernel.listed.has(folder) || kernel.absentIn.has(folder);
    for (const [name, before] of among) {
      // "/": it stepped aside for a moment, and no program saw it there.
      if (name.includes("/") || (before === null && !isNewsOfAbsent)) continue;
      names.push({ parent, name, isGone: before !== null && isNowhere(context, folder, name, before) });
    }
    if (kernel.listed.delete(folder)) listings.add(parent);
  }
  const inodes = new Set<number>();
  for (const id of changedInodes(context, changed)) {
    for (const lineage of metadata.inodes.lineages(id)) inodes.add(lineage);
    if (!changed.switched.has(id)) continue;
    for (const entry of metadata.entries.ofInode(id)) {
      const parent = metadata.inodes.get(entry.parent)?.lineage;
      if (parent !== undefined) names.push({ parent, name: entry.name, isGone: false });
    }
  }
  if (names.length + listings.size + inodes.size === 0) return;
  kernel.changes += 1;
  kernel.cache.tell({ names, listings, inodes });
}

/** The time of a file that nobody set is its node's. */
function changedInodes({ metadata }: Needs, { inodes, made, nodesOf }: Changed): Set<number> {
  const all = new Set(inodes);
  for (const id of nodesOf) {
    const entry = metadata.entries.get(id);
    const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
    if (inode !== undefined && !made.has(inode.id) && inode.attributes.mtime === undefined) all.add(inode.id);
  }
  return all;
}

function isNowhere({ metadata }: Needs, folder: number, name: string, before: number): boolean {
  return metadata.entries.find(folder, name) === undefined && metadata.entries.links(before) === 0;
}

/** Nothing the kernel was told counts any more: after a time in which it may not have been told of changes. */
export function expireEverything({ metadata, kernel }: Needs): void {
  kernel.changes += 1;
  kernel.listed.clear();
  kernel.absentIn.clear();
  kernel.cache.everything({
    lineages: (after, limit) => metadata.inodes.lineagesAfter(after, limit),
    names: (after, limit) => metadata.entries.namesAfter(after, limit),
  });
}
