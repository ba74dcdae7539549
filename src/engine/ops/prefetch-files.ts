/**
 * Prefetch of small files: when programs open the files of a folder in order, the next files are fetched before they
 * are opened. No open waits for a prefetch or depends on it.
 */
import { isWhole } from "../../metadata/cache-files.ts";
import type { KernelNodeId } from "../../metadata/ids.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { CacheFile, Host, LocalFiles, Remote, Rows } from "../core/index.ts";
import { SMALL } from "../files/index.ts";
import { AccessSequences } from "../host/index.ts";

const REACH = { skipped: 8, lookedAt: 32 };

export class FilePrefetch {
  readonly #context: Rows & LocalFiles & Remote & Host;
  readonly #sequences: AccessSequences;
  /** The number of files that are being fetched before a program opens them. */
  underWay = 0;

  constructor(context: Rows & LocalFiles & Remote & Host) {
    this.#context = context;
    this.#sequences = new AccessSequences(context.metadata);
  }

  /**
   * A program opened the file for reading. Never throws, because errors of other files do not concern the program.
   */
  opened(cacheFile: CacheFile): void {
    try {
      this.#follow(cacheFile);
    } catch (error) {
      this.#context.log.debug(
        { err: error, lineage: cacheFile.kernelNodeId },
        "the next files of a folder are not fetched ahead",
      );
    }
  }

  #follow(cacheFile: CacheFile): void {
    const { metadata, background } = this.#context;
    const names = metadata.entries.ofInode(cacheFile.inode);
    const [entry] = names;
    // A file does not tell by which of its names it was opened.
    if (entry === undefined || names.length > 1) return;
    const read = this.#sequences.record(entry, !cacheFile.isWhole, REACH);
    if (read === undefined || !this.#mayFetch()) return;
    this.#sequences.fetchNext(entry.parent, read, REACH, (next) => {
      const inode = metadata.inodes.get(next.inode);
      if (inode === undefined || !isWanted(this.#context, inode)) return false;
      background("fetching the next file of a folder", () => this.#fetchWhole(inode.kernelNodeId));
      return true;
    });
  }

  /** No program asked for a prefetch, so it must take no room from programs and make none wait. */
  #mayFetch(): boolean {
    const { network, disk, metadata, settings, fileState } = this.#context;
    if (!network.isOnline || network.pauseMs("getContent") > 0) return false;
    if (disk.trouble !== undefined || !disk.mayKeep || fileState.stopped.aborted) return false;
    // A limit for all folders together: programs may be waiting for the connections. One folder at a time may pass it.
    if (this.underWay >= AccessSequences.AHEAD_MAX) return false;
    return metadata.cacheFiles.totalBytes() + (this.underWay + 1) * SMALL <= settings.cacheLimit;
  }

  /** Fetches the file as if a program read it. If that fails, a program that opens it will fetch it. */
  async #fetchWhole(kernelNodeId: KernelNodeId): Promise<void> {
    const { cacheFiles, fileState, log } = this.#context;
    this.underWay += 1;
    try {
      const cacheFile = await cacheFiles.open(kernelNodeId, { write: false });
      try {
        await cacheFile.prefetchSmall(fileState.stopped);
      } finally {
        await cacheFile.close({ write: false });
      }
    } catch (error) {
      log.debug({ err: error, lineage: kernelNodeId }, "fetching the next file of a folder failed");
    } finally {
      this.underWay -= 1;
    }
  }
}

/** True: a small clean file whose content is not here. */
function isWanted(
  { metadata, cacheFiles }: Rows & LocalFiles,
  { kind, content, size, kernelNodeId, originVersion }: Inode,
): boolean {
  if (kind !== "file" || content !== "clean" || originVersion === null || size === 0 || size > SMALL) return false;
  return !cacheFiles.has(kernelNodeId) && !isWhole(metadata.cacheFiles.get(kernelNodeId));
}
