/**
 * Invalidation: whatever changes in the rows without the kernel's having asked for it is told to the kernel. The rows
 * themselves report changes (metadata/changed.ts), so no flow can forget to. So the kernel's caches hold what the rows
 * hold, as long as the kernel can be told. How long it may trust them without that is decided in host/freshness.ts.
 *
 * For a while two things are remembered here: folders whose listing the kernel may hold, and negative entries. So a
 * folder that fills for the first time needs no message for each of its names. Each name can be named to the kernel.
 * Its one message for all names (INC_EPOCH) is never used: it drops what the kernel should only ask for again, and it
 * unmounts what is mounted inside of the mount, in other mount namespaces too.
 */
import type { Changed } from "../../metadata/changed.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { ChangedName, KernelNodeId, KnownRows } from "../api/index.ts";
import { LIVE_MS } from "../host/index.ts";
import type { Host, Kernel, Rows } from "./context.ts";
import { negativeKey } from "./kernel-state.ts";

/** So many folders are remembered. The kernel reads the listing of any other folder again. */
const FOLDERS_MAX = 10_000;
/** So many negative entries are remembered. Of further names the kernel asks each time. */
const ABSENT_MAX = 50_000;

type Needs = Pick<Rows & Kernel & Host, "metadata" | "kernel" | "runtime">;

/**
 * Changes rows as the kernel asked, so the kernel's caches follow by themselves. `lineage`: the kernel node id of the
 * request. If the inode has other kernel node ids too, the kernel expects no change of those, so it is told as of any
 * change.
 */
export function byKernelRequest<T>({ metadata }: Pick<Rows, "metadata">, change: () => T, lineage?: KernelNodeId): T {
  const inode = lineage === undefined ? undefined : metadata.inodes.ofKernelNodeId(lineage);
  const isOne = inode === undefined || metadata.inodes.lineages(inode.id).length === 1;
  return isOne ? metadata.changed.heard(() => metadata.transaction(change)) : metadata.transaction(change);
}

/** The kernel may keep the listing that begins now. */
export function noteListed({ kernel: { listed } }: Pick<Kernel, "kernel">, folder: InodeId): void {
  listed.delete(folder);
  listed.add(folder);
  const [oldest] = listed;
  if (listed.size > FOLDERS_MAX && oldest !== undefined) listed.delete(oldest);
}

/**
 * The kernel is about to get a negative entry. False: it could not be invalidated later, so the kernel must not
 * remember it.
 */
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

/** An earlier daemon gave the kernel negative entries, and nobody knows which. */
export function negativeUnknown({ kernel, runtime }: Pick<Kernel & Host, "kernel" | "runtime">): void {
  kernel.negativeUnknownUntil = runtime.elapsed() + LIVE_MS;
}

/** Call it right after each commit. */
export function invalidateKernel(context: Needs, changed: Changed): void {
  const { metadata, kernel } = context;
  // A later opening of the folder must not reuse a listing from before the change.
  for (const folder of changed.heardIn) kernel.listed.delete(folder);
  const names: ChangedName[] = [];
  const listings = new Set<KernelNodeId>();
  const isAnyAbsent = context.runtime.elapsed() < kernel.negativeUnknownUntil;
  for (const [folder, among] of changed.names) {
    const parent = metadata.inodes.get(folder)?.lineage;
    if (parent === undefined) continue;
    for (const [name, before] of among) {
      const wasAbsent = kernel.absent.delete(negativeKey(folder, name)) || isAnyAbsent;
      // A name with "/" is a temporary one, which no program saw.
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

/**
 * Inodes whose attributes changed. A file whose time nobody set shows the time of its node, so a change of the node is
 * one of the file.
 */
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

/**
 * Nothing that the kernel was told counts any more. For the end of a time in which it may not have been told of
 * changes.
 */
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
