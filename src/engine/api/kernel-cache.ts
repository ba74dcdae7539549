/**
 * How the kernel is told that what it remembers of us no longer holds. Declared here, done by `fuse/`,
 * from threads of its own: nothing here waits, and no request waits for it. What is told was committed
 * before. Content is not among it: a lineage has one content for ever.
 */
import type { After, EntryId } from "../../metadata/ids.ts";
import type { KernelNodeId } from "./filesystem.ts";

export interface ChangedName {
  readonly parent: KernelNodeId;
  readonly name: string;
  /**
   * What had the name is nowhere any more; else who works in it is not to be disturbed. Asked when the name is
   * sent: it may have waited, and somebody have taken it meanwhile.
   */
  isGone(): boolean;
  /** It was no absent name: who asks whether it still holds has no lock on the folder. */
  readonly wasThere: boolean;
}

export interface Invalidations {
  /** To be looked up again, also where there was none. */
  readonly names: Iterable<ChangedName>;
  /** Folders whose names are others. */
  readonly listings: Iterable<KernelNodeId>;
  /** Attributes are others. */
  readonly inodes: Iterable<KernelNodeId>;
}

/** All there is that the kernel may have been told of, in slices by growing numbers. */
export interface KnownRows {
  lineages(after: After<KernelNodeId>, limit: number): readonly KernelNodeId[];
  names(after: After<EntryId>, limit: number): readonly { id: EntryId; parent: KernelNodeId; name: string }[];
}

export interface KernelCache {
  /**
   * Whether a name can be made to be looked up again while it is used. Else the kernel must not remember names
   * for long, and absent ones not at all.
   */
  readonly expiresNames: boolean;
  /** `known`: what it is told of instead, when more waits than is kept. */
  tell(news: Invalidations, known: KnownRows): void;
  /** Nothing it was told counts any more: each of these names and attributes is asked for again. */
  everything(known: KnownRows): void;
  /**
   * Those of these lineages that the kernel has no inode of, for certain and at this moment: who was answered just
   * now may not have made his yet. None where it could not say. Absent: it cannot be asked.
   */
  unknownToKernel?(lineages: readonly KernelNodeId[]): Promise<ReadonlySet<KernelNodeId>>;
  /** Resolves once this name is looked up again, also by who looks in the next moment. Absent: see `expiresNames`. */
  expireNow?(parent: KernelNodeId, name: string): Promise<void>;
}

/** Where there is no kernel, or none that can be told. */
export const NO_KERNEL_CACHE: KernelCache = { expiresNames: false, tell() {}, everything() {} };
