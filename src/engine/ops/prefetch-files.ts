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

/** A program opened the file for reading. Never throws, because errors of other files do not concern the program. */
export function opened(context: Rows & LocalFiles & Remote & Host, cacheFile: CacheFile): void {
  try {
    follow(context, cacheFile);
  } catch (error) {
    context.log.debug(
      { err: error, lineage: cacheFile.kernelNodeId },
      "the next files of a folder are not fetched ahead",
    );
  }
}

function follow(context: Rows & LocalFiles & Remote & Host, cacheFile: CacheFile): void {
  const { fileSequences } = context.fileState;
  const names = context.metadata.entries.ofInode(cacheFile.inode);
  const [entry] = names;
  // It is not known by which of its names a file was opened.
  if (entry === undefined || names.length > 1) return;
  const read = fileSequences.record(entry, !cacheFile.isWhole, REACH);
  if (read === undefined || !mayFetch(context)) return;
  fileSequences.fetchNext(entry.parent, read, REACH, (next) => {
    const inode = context.metadata.inodes.get(next.inode);
    if (inode === undefined || !isWanted(context, inode)) return false;
    context.background("fetching the next file of a folder", () => fetchWhole(context, inode.kernelNodeId));
    return true;
  });
}

/** No program asked for a prefetch, so it must take no room from programs and make none wait. */
function mayFetch({ network, disk, metadata, settings, fileState }: Rows & LocalFiles & Remote & Host): boolean {
  if (!network.isOnline || network.pauseMs("getContent") > 0) return false;
  if (disk.trouble !== undefined || !disk.mayKeep || fileState.stopped.aborted) return false;
  // A limit for all folders together: programs may be waiting for the connections. One folder at a time may pass it.
  if (fileState.filePrefetches >= AccessSequences.AHEAD_MAX) return false;
  return metadata.cacheFiles.totalBytes() + (fileState.filePrefetches + 1) * SMALL <= settings.cacheLimit;
}

/** True: a small clean file whose content is not here. */
function isWanted(
  { metadata, cacheFiles }: Rows & LocalFiles,
  { kind, content, size, kernelNodeId, originVersion }: Inode,
): boolean {
  if (kind !== "file" || content !== "clean" || originVersion === null || size === 0 || size > SMALL) return false;
  return !cacheFiles.has(kernelNodeId) && !isWhole(metadata.cacheFiles.get(kernelNodeId));
}

/** Fetches the file as if a program read it. If that fails, a program that opens it will fetch it. */
async function fetchWhole(context: LocalFiles & Host, kernelNodeId: KernelNodeId): Promise<void> {
  const { fileState } = context;
  const signal = fileState.stopped;
  fileState.filePrefetches += 1;
  try {
    const cacheFile = await context.cacheFiles.open(kernelNodeId, { write: false });
    try {
      await cacheFile.prefetchSmall(signal);
    } finally {
      await cacheFile.close({ write: false });
    }
  } catch (error) {
    context.log.debug({ err: error, lineage: kernelNodeId }, "fetching the next file of a folder failed");
  } finally {
    fileState.filePrefetches -= 1;
  }
}
