/**
 * Invalidation: the kernel is told that names, listings or attributes that it remembers are no longer true. The
 * interface; `fuse/kernel-cache.ts` implements it with threads of its own, so neither the engine nor a request waits
 * for it. Changes are committed before the kernel is told. Content is never invalidated: a kernel node id has one
 * content for ever.
 */
import type { After, EntryId } from "../../metadata/ids.ts";
import type { KernelNodeId } from "./filesystem.ts";

export interface ChangedName {
  readonly parent: KernelNodeId;
  readonly name: string;
  /**
   * True: the inode that had the name has no name any more. If it still has one, programs that work in it must not be
   * disturbed. Called when the message is sent, not before: the message may have waited, and a program may have made
   * the name again meanwhile.
   */
  isGone(): boolean;
  /**
   * False: the name was a negative entry. True: the message is sent once more a second later, because the kernel checks
   * a name without a lock on its folder, and may store an old answer after the first message.
   */
  readonly wasThere: boolean;
}

/** Changes that the kernel did not ask for. */
interface Invalidations {
  /** Names to look up again, negative entries among them. */
  readonly names: Iterable<ChangedName>;
  /** Folders whose names changed. */
  readonly listings: Iterable<KernelNodeId>;
  /** Inodes whose attributes changed. */
  readonly inodes: Iterable<KernelNodeId>;
}

/** All names and kernel node ids that the kernel may know of, in slices by ascending number. */
export interface KnownRows {
  kernelNodeIds(after: After<KernelNodeId>, limit: number): readonly KernelNodeId[];
  names(after: After<EntryId>, limit: number): readonly { id: EntryId; parent: KernelNodeId; name: string }[];
}

/** No call of it rejects: after an invalidation that the kernel refuses, its answers expire. */
export interface KernelCache {
  /**
   * True: the kernel can be made to look up a name again while the name is in use. False: the kernel must remember
   * names for a second only, and no negative entries.
   */
  readonly expiresNames: boolean;
  /** Queues these invalidations. When too many wait, everything in `known` is invalidated instead. */
  tell(news: Invalidations, known: KnownRows): void;
  /** Queues the invalidation of all names and attributes in `known`. */
  everything(known: KnownRows): void;
  /**
   * Resolves to those of these kernel node ids for which the kernel has no inode right now; empty when the kernel did
   * not say. A request that was answered a moment ago may still create one. Absent: the kernel cannot be asked.
   */
  unknownToKernel?(kernelNodeIds: readonly KernelNodeId[]): Promise<ReadonlySet<KernelNodeId>>;
  /**
   * Asks the kernel to forget the inodes of these kernel node ids that nothing uses. Resolves when it has tried. FORGET
   * tells of those that it forgot. Absent: the kernel cannot be asked to.
   */
  prune?(kernelNodeIds: readonly KernelNodeId[]): Promise<void>;
  /** Resolves once the next access to this name will look it up again. Absent when `expiresNames` is false. */
  expireNow?(parent: KernelNodeId, name: string): Promise<void>;
}

/** Stands for no kernel, or for one that cannot be told of changes. */
export const NO_KERNEL_CACHE: KernelCache = { expiresNames: false, tell() {}, everything() {} };
