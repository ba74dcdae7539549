/**
 * Invalidation: the kernel is told of every change in the rows that it did not ask for. The rows themselves report
 * changes (metadata/changed.ts), so no flow can forget to. So the kernel's caches agree with the rows, as long as the
 * kernel can be told. How long the kernel may trust an answer otherwise is decided in host/freshness.ts.
 *
 * Two things are remembered here for a while: folders whose listing the kernel may hold, and negative entries. So a
 * folder that is listed for the first time needs no message for each of its names. The kernel is told of names one by
 * one. Its single message for all names (INC_EPOCH) is never used. It drops names where a new lookup is enough, and it
 * unmounts file systems that are mounted inside this mount, in other mount namespaces too.
 */
import { type ElapsedTime, minus, plus } from "../../lib/clocks.ts";
import type { Changed } from "../../metadata/changed.ts";
import type { InodeId } from "../../metadata/ids.ts";
import type { Metadata } from "../../metadata/metadata.ts";
import type { ChangedName, KernelCache, KernelNodeId, KnownRows } from "../api/index.ts";
import { LIVE_MS, type RowClockRuntime } from "../host/index.ts";
import type { Request } from "./request.ts";

/** How many folders are remembered. The kernel reads the listing of any other folder again. */
const FOLDERS_MAX = 10_000;
/** How many negative entries are remembered. For further names the kernel asks each time. */
const NEGATIVE_MAX = 50_000;

/** A negative entry of the kernel. */
interface NegativeName {
  readonly folder: InodeId;
  readonly name: string;
  /** When the kernel was told. */
  readonly at: ElapsedTime;
}

/** The answers of the kernel's caches that a change has to invalidate. */
export class KernelCacheState {
  readonly cache: KernelCache;
  readonly #metadata: Metadata<Request>;
  readonly #runtime: Pick<RowClockRuntime, "elapsed">;
  /** Folders whose present listing the kernel may keep. */
  readonly #listed = new Set<InodeId>();
  /** Negative entries, the oldest first; by negativeKey. */
  readonly #negative = new Map<string, NegativeName>();
  /** Until then the kernel may hold unknown negative entries of an earlier daemon. Undefined: it holds none. */
  #negativeUnknownUntil: ElapsedTime | undefined;
  #changes = 0;

  constructor(cache: KernelCache, metadata: Metadata<Request>, runtime: Pick<RowClockRuntime, "elapsed">) {
    this.cache = cache;
    this.#metadata = metadata;
    this.#runtime = runtime;
  }

  /** Counts invalidations. If the number grew while an answer was being made, the answer may be old. */
  get changes(): number {
    return this.#changes;
  }

  /**
   * Makes a change that the kernel asked for: the kernel changes its caches itself and is not told. `kernelNodeId`: the
   * kernel node id of the request. If the inode has several kernel node ids, the kernel does not expect the change of
   * the others, so it is told. Returns the result of `change`, and throws its error.
   */
  byRequest<T>(change: () => T, kernelNodeId?: KernelNodeId): T {
    const metadata = this.#metadata;
    const inode = kernelNodeId === undefined ? undefined : metadata.inodes.ofKernelNodeId(kernelNodeId);
    const isOne = inode === undefined || metadata.inodes.kernelNodeIds(inode.id).length === 1;
    return isOne ? metadata.changed.heard(() => metadata.transaction(change)) : metadata.transaction(change);
  }

  /** The kernel may keep the listing that begins now. */
  noteListed(folder: InodeId): void {
    const listed = this.#listed;
    listed.delete(folder);
    listed.add(folder);
    const [oldest] = listed;
    if (listed.size > FOLDERS_MAX && oldest !== undefined) listed.delete(oldest);
  }

  /** True: the kernel may keep the folder's listing. */
  isListed(folder: InodeId): boolean {
    return this.#listed.has(folder);
  }

  /**
   * The kernel is about to get a negative entry. False: the entry could not be invalidated later, so the kernel must
   * not remember it.
   */
  noteNegative(folder: InodeId, name: string): boolean {
    if (!this.cache.expiresNames) return false;
    const negative = this.#negative;
    const now = this.#runtime.elapsed();
    for (const [other, { at }] of negative) {
      if (minus(now, at) <= LIVE_MS) break;
      negative.delete(other);
    }
    const key = negativeKey(folder, name);
    if (negative.size >= NEGATIVE_MAX && !negative.has(key)) return false;
    negative.delete(key);
    negative.set(key, { folder, name, at: now });
    return true;
  }

  /** An earlier daemon may have given the kernel negative entries, and they are not known here. */
  negativeUnknown(): void {
    this.#negativeUnknownUntil = plus(this.#runtime.elapsed(), LIVE_MS);
  }

  /** Call it right after each commit. */
  invalidate(changed: Changed): void {
    const metadata = this.#metadata;
    // A later opening of the folder must not reuse a listing from before the change.
    for (const folder of changed.heardIn) this.#listed.delete(folder);
    const names: ChangedName[] = [];
    const listings = new Set<KernelNodeId>();
    const unknownUntil = this.#negativeUnknownUntil;
    const isAnyNegative = unknownUntil !== undefined && this.#runtime.elapsed() < unknownUntil;
    for (const [folder, among] of changed.names) {
      const parent = metadata.inodes.get(folder)?.kernelNodeId;
      if (parent === undefined) continue;
      for (const [name, before] of among) {
        const wasNegative = this.#negative.delete(negativeKey(folder, name)) || isAnyNegative;
        // A name with "/" is a temporary one, which no program saw.
        if (name.includes("/") || (before === null && !wasNegative)) continue;
        const isGone = () => before !== null && isNowhere(metadata, folder, name, before);
        names.push({ parent, name, isGone, wasThere: before !== null });
      }
      if (this.#listed.delete(folder)) listings.add(parent);
    }
    const inodes = new Set<KernelNodeId>();
    for (const id of changedInodes(metadata, changed)) {
      for (const kernelNodeId of metadata.inodes.kernelNodeIds(id)) inodes.add(kernelNodeId);
      if (!changed.switched.has(id)) continue;
      for (const entry of metadata.entries.ofInode(id)) {
        const parent = metadata.inodes.get(entry.parent)?.kernelNodeId;
        if (parent !== undefined) names.push({ parent, name: entry.name, isGone: never, wasThere: true });
      }
    }
    if (names.length + listings.size + inodes.size === 0) return;
    this.#changes += 1;
    this.cache.tell({ names, listings, inodes }, knownRows(metadata));
  }

  /**
   * Makes the kernel ask again for every name and attribute. For the end of a time in which it may not have been told
   * of all changes.
   */
  expireAll(): void {
    const metadata = this.#metadata;
    this.#changes += 1;
    this.#listed.clear();
    const names = [...this.#negative.values()].flatMap(({ folder, name }) => {
      const parent = metadata.inodes.get(folder)?.kernelNodeId;
      return parent === undefined ? [] : { parent, name, isGone: never, wasThere: false };
    });
    this.#negative.clear();
    const known = knownRows(metadata);
    this.cache.tell({ names, listings: [], inodes: [] }, known);
    this.cache.everything(known);
  }
}

function negativeKey(folder: InodeId, name: string): string {
  return `${folder}/${name}`;
}

/**
 * The inodes whose attributes changed. A file without an mtime of its own shows the time of its node, so a change of
 * the node counts.
 */
function changedInodes(metadata: Metadata<Request>, { inodes, made, nodesOf }: Changed): Set<InodeId> {
  const all = new Set(inodes);
  for (const id of nodesOf) {
    const entry = metadata.entries.get(id);
    const inode = entry === undefined ? undefined : metadata.inodes.get(entry.inode);
    if (inode !== undefined && !made.has(inode.id) && inode.attributes.mtime === undefined) all.add(inode.id);
  }
  return all;
}

const never = () => false;

function isNowhere({ entries }: Metadata<Request>, folder: InodeId, name: string, before: InodeId): boolean {
  return entries.find(folder, name) === undefined && entries.links(before) === 0;
}

function knownRows({ inodes, entries }: Metadata<Request>): KnownRows {
  return {
    kernelNodeIds: (after, limit) => inodes.kernelNodeIdsAfter(after, limit),
    names: (after, limit) => entries.namesAfter(after, limit),
  };
}
