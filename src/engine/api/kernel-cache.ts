/**
 * Invalidation: how the kernel is told that names, listings or attributes that it remembers are no longer true. The
 * interface; `fuse/kernel-cache.ts` implements it with threads of its own, so nothing here waits and no request waits
 * for it. Changes are committed before the kernel is told. Content is never invalidated: a kernel node id has one
 * content for ever.
 */
import type { After, EntryId } from "../../metadata/ids.ts";
import type { KernelNodeId } from "./filesystem.ts";

export interface ChangedName {
  readonly parent: KernelNodeId;
  readonly name: string;
  /**
   * The inode that had the name has no name any more. If it still has one, programs that work in it must not be
   * disturbed. Called when the message is sent, not before: the message may have waited, and a program may have made
   * the name again meanwhile.
   */
  isGone(): boolean;
  /**
   * False: the name was a negative entry. A message about a name that was there is sent once more a second later: the
   * kernel checks a name without a lock on its folder, and may still trust an old answer.
   */
  readonly wasThere: boolean;
}

/** Changes that the kernel did not ask for. */
export interface Invalidations {
  /** Names to look up again, negative entries among them. */
  readonly names: Iterable<ChangedName>;
  /** Folders whose names changed. */
  readonly listings: Iterable<KernelNodeId>;
  /** Inodes whose attributes changed. */
  readonly inodes: Iterable<KernelNodeId>;
}

/** All names and kernel node ids that the kernel may know of, in slices by ascending number. */
export interface KnownRows {
  lineages(after: After<KernelNodeId>, limit: number): readonly KernelNodeId[];
  names(after: After<EntryId>, limit: number): readonly { id: EntryId; parent: KernelNodeId; name: string }[];
}

export interface KernelCache {
  /**
   * The kernel can be made to look up a name again while the name is in use. False: the kernel must remember names for
   * a second only, and no negative entries.
   */
  readonly expiresNames: boolean;
  /** Queues these invalidations. When more wait than are kept, everything in `known` is invalidated instead. */
  tell(news: Invalidations, known: KnownRows): void;
  /** All names and attributes in `known` are asked for again. */
  everything(known: KnownRows): void;
  /**
   * Those of these kernel node ids of which the kernel has no inode right now. A request that was answered a moment ago
   * may still create one. Empty when the kernel did not say. Absent: the kernel cannot be asked.
   */
  unknownToKernel?(lineages: readonly KernelNodeId[]): Promise<ReadonlySet<KernelNodeId>>;
  /** Resolves once the next access to this name looks it up again. Absent: see `expiresNames`. */
  expireNow?(parent: KernelNodeId, name: string): Promise<void>;
}

/** For no kernel, or one that cannot be told of changes. */
export const NO_KERNEL_CACHE: KernelCache = { expiresNames: false, tell() {}, everything() {} };
