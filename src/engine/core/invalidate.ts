/**
 * Whatever changes in the rows without the kernel having asked for it is told to the kernel, whoever
 * changed it and why: the rows say it themselves (metadata/changed.ts), so that no flow can forget to.
 * So the kernel's caches hold what the rows hold, for as long as it is told; how long it may trust them
 * without is freshness.ts's to say.
 *
 * Remembered here for a while are folders whose listing the kernel may hold, and names it was told to be
 * absent: a folder that fills for the first time needs no word for each of its names. Each name can so be
 * named to the kernel. Its one word for all of them (INC_EPOCH) is never used: it throws away what it should
 * only ask for again, and takes off what is mounted inside of the mount, in other mount namespaces too.
 */
import type { Changed } from "../../metadata/changed.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { ChangedName, KernelNodeId, KnownRows } from "../api/index.ts";
import { LIVE_MS } from "../host/index.ts";
import type { Host, Kernel, Rows } from "./context.ts";
import { negativeKey } from "./kernel-state.ts";

/** Folders remembered. What is not is listed again. */
const FOLDERS_MAX = 10_000;
/** Absent names remembered. Of more the kernel asks each time. */
const ABSENT_MAX = 50_000;

type Needs = Pick<Rows & Kernel & Host, "metadata" | "kernel" | "runtime">;

/**
 * Changes rows as the kernel asked for: its caches follow by themselves. `lineage`: the one of which it asked.
 * Where the inode is known by others too, of those the kernel expects nothing: it is told as of any change.
 */
export function byKernelRequest<T>({ metadata }: Pick<Rows, "metadata">, change: () => T, lineage?: KernelNodeId): T {
  const inode = lineage === undefined ? undefined : metadata.inodes.ofKernelNodeId(lineage);
  const isOne = inode === undefined || metadata.inodes.lineages(inode.id).length === 1;
  return isOne ? metadata.changed.heard(() => metadata.transaction(change)) : metadata.transaction(change);
}

/** The listing that begins now may be kept. */
export function noteListed({ kernel: { listed } }: Pick<Kernel, "kernel">, folder: InodeId): void {
  listed.delete(folder);
  listed.add(folder);
  const [oldest] = listed;
  if (listed.size > FOLDERS_MAX && oldest !== undefined) listed.delete(oldest);
}

/** A name is about to be told to be absent. False: that could not be taken back, so it must not be remembered. */
export function noteNegative(
  { kernel, runtime }: Pick<Kernel & Host, "kernel" | "runtime">,
  folder: InodeId,
  name: string,
): boolean {
  const { absent, cache } = kernel;
  if (!cache.expiresNames) return false;
  const now = runtime.elapsed();
  for (const [other, { at }] of absent) {
    if (now - at <= LIVE_MS) break;
    absent.delete(other);
  }
  const key = negativeKey(folder, name);
  if (absent.size >= ABSENT_MAX && !absent.has(key)) return false;
  absent.delete(key);
  absent.set(key, { folder, name, at: now });
  return true;
}

/** A daemon before this one told the kernel that names are absent, nobody knows which. */
export function negativeUnknown({ kernel, runtime }: Pick<Kernel & Host, "kernel" | "runtime">): void {
  kernel.negativeUnknownUntil = runtime.elapsed() + LIVE_MS;
}

/** To be called right after each commit. */
export function invalidateKernel(context: Needs, changed: Changed): void {
  const { metadata, kernel } = context;
  // A listing as it was before is not to be taken up again by another opening of the folder.
  for (const folder of changed.heardIn) kernel.listed.delete(folder);
  const names: ChangedName[] = [];
  const listings = new Set<KernelNodeId>();
  const isAnyAbsent = context.runtime.elapsed() < kernel.negativeUnknownUntil;
  for (const [folder, among] of changed.names) {
    const parent = metadata.inodes.get(folder)?.lineage;
    if (parent === undefined) continue;
    for (const [name, before] of among) {
      const wasAbsent = kernel.absent.delete(negativeKey(folder, name)) || isAnyAbsent;
      // "/": it stepped aside for a moment, and no program saw it there.
      if (name.includes("/") || (before === null && !wasAbsent)) continue;
      const isGone = () => before !== null && isNowhere(context, folder, name, before);
      names.push({ parent, name, isGone, wasThere: before !== null });
    }
    if (kernel.listed.delete(folder)) listings.add(parent);
  }
  const inodes = new Set<KernelNodeId>();
  for (const id of changedInodes(context, changed)) {
    for (const lineage of metadata.inodes.lineages(id)) inodes.add(lineage);
    if (!changed.switched.has(id)) continue;
    for (const entry of metadata.entries.ofInode(id)) {
      const parent = metadata.inodes.get(entry.parent)?.lineage;
      if (parent !== undefined) names.push({ parent, name: entry.name, isGone: never, wasThere: true });
    }
  }
  if (names.length + listings.size + inodes.size === 0) return;
  kernel.changes += 1;
  kernel.cache.tell({ names, listings, inodes }, knownRows(context));
}

/** The time of a file that nobody set is its node's. */
function changedInodes({ metadata }: Needs, { inodes, made, nodesOf }: Changed): Set<InodeId> {
  const all = new Set(inodes);
  for (const id of nodesOf) {
    const entry = metadata.entries.get(id);
    const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
    if (inode !== undefined && !made.has(inode.id) && inode.attributes.mtime === undefined) all.add(inode.id);
  }
  return all;
}

const never = () => false;

function isNowhere({ metadata }: Pick<Needs, "metadata">, folder: InodeId, name: string, before: InodeId): boolean {
  return metadata.entries.find(folder, name) === undefined && metadata.entries.links(before) === 0;
}

/** Nothing the kernel was told counts any more: after a time in which it may not have been told of changes. */
export function expireAllEntries({ metadata, kernel }: Needs): void {
  kernel.changes += 1;
  kernel.listed.clear();
  const names = [...kernel.absent.values()].flatMap(({ folder, name }) => {
    const parent = metadata.inodes.get(folder)?.lineage;
    return parent === undefined ? [] : { parent, name, isGone: never, wasThere: false };
  });
  kernel.absent.clear();
  const known = knownRows({ metadata });
  kernel.cache.tell({ names, listings: [], inodes: [] }, known);
  kernel.cache.everything(known);
}

function knownRows({ metadata }: Pick<Needs, "metadata">): KnownRows {
  return {
    lineages: (after, limit) => metadata.inodes.kernelNodeIdsAfter(after, limit),
    names: (after, limit) => metadata.entries.namesAfter(after, limit),
  };
}
