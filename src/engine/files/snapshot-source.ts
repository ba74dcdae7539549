/** Snapshots that exist: where their bytes are, and how they end. */

import { createHash } from "node:crypto";
import { createFileSource, createOpenFileSource } from "../../content/source.ts";
import type { ContentSource } from "../../contract/http.ts";
import { systemError } from "../../lib/system-error.ts";
import type { Snapshot } from "../../metadata/attempts.ts";
import type { SnapshotId } from "../../metadata/ids.ts";
import type { Host, Rows } from "../core/index.ts";
import type { OpenCacheFile } from "./cache-file.ts";
import { removeSoon } from "./file-removal.ts";
import type { LocalFiles } from "./room.ts";

/** Reads the bytes of a snapshot from wherever they are at this moment. Reading fails with the disk's error. */
export function snapshotSource(context: LocalFiles & Host, snapshot: Snapshot): ContentSource {
  const { paths, runtime, snapshotBytes, disk } = context;
  const bytes = snapshotBytes.get(snapshot.id);
  if (bytes !== undefined) {
    return {
      size: bytes.length,
      async *read() {
        yield bytes;
      },
    };
  }
  const open = openSource(context, snapshot);
  if (open !== undefined) return open;
  const path = snapshot.kernelNodeId === null ? paths.snapshot(snapshot.id) : paths.cacheFile(snapshot.kernelNodeId);
  if (disk.trouble === "gone") return goneSource(path, snapshot.size);
  return createFileSource(runtime.files, path, snapshot.size);
}

/** The bytes went with the state dir. Its path may lead to another mount's files now. */
function goneSource(path: string, size: number): ContentSource {
  return {
    size,
    // biome-ignore lint/correctness/useYield: there is nothing to give.
    async *read() {
      throw systemError("ENOENT", "open", path);
    },
  };
}

/**
 * The snapshot was sent, or is not wanted any more. If another attempt will still send it (for another name of the
 * file), it stays until then.
 */
export function dropSnapshot(context: Rows & LocalFiles & Host, id: SnapshotId): void {
  const snapshot = context.metadata.snapshots.get(id);
  if (snapshot === undefined || context.metadata.attempts.ofSnapshot(id).length > 0) return;
  context.cancellations.delete(snapshot.inode);
  removeSnapshot(context, snapshot);
}

/** Removes the row of a snapshot that no attempt needs, and its file if it has one of its own. */
export function removeSnapshot(context: Rows & LocalFiles & Host, { id, inode, kernelNodeId }: Snapshot): void {
  const { metadata, fileState } = context;
  metadata.transaction(() => {
    metadata.snapshots.remove(id);
    context.snapshotBytes.delete(id);
    if (kernelNodeId === null) removeSoon(context, { kind: "generation", id });
    const then = fileState.afterSent.get(inode);
    if (then === undefined) return;
    fileState.afterSent.delete(inode);
    metadata.afterCommit(then);
  });
}

/*
 * Reading by the open descriptor: for small files, and for all files when their path no longer leads to them (see
 * without-folder.ts). Other files are read by path: a worker can do that, also after the file is closed.
 */

const CHUNK = 1024 * 1024;
/** Bytes. For a file up to this size, opening it again would cost more than hashing it. */
const SMALL = 32 * 1024;

/**
 * SHA-256 (hex) and size in bytes of a cache file without a writer, of about `expected` bytes. For a small file, its
 * bytes too. Undefined: a writer was admitted meanwhile. Rejects when `signal` aborts, or with the disk's error.
 */
export async function hashCacheFile(
  context: LocalFiles & Host,
  cacheFile: OpenCacheFile,
  expected: number,
  signal: AbortSignal,
): Promise<{ hash: string; size: number; bytes?: Uint8Array } | undefined> {
  if (expected > SMALL && context.disk.trouble !== "gone") return context.runtime.files.hash(cacheFile.path, signal);
  const hash = createHash("sha256");
  let buffer = Buffer.allocUnsafe(Math.min(CHUNK, expected + 1));
  let size = 0;
  while (cacheFile.use.writers === 0) {
    signal.throwIfAborted();
    const { length } = buffer;
    const read = await cacheFile.disk.file.read(buffer, 0, length, size);
    hash.update(buffer.subarray(0, read));
    size += read;
    if (read < length) {
      const isAll = size === read && size <= SMALL;
      return { hash: hash.digest("hex"), size, ...(isAll ? { bytes: buffer.subarray(0, read) } : {}) };
    }
    // The file is longer than the rows say, by an unknown length.
    if (length < CHUNK) buffer = Buffer.allocUnsafe(CHUNK);
  }
  return undefined;
}

/** Reads the snapshot by the descriptor of a file that is kept open. Undefined: it has to be read by its path. */
function openSource(context: LocalFiles, { kernelNodeId, size }: Snapshot): ContentSource | undefined {
  const cacheFile = kernelNodeId === null ? undefined : context.cacheFiles.get(kernelNodeId);
  return cacheFile === undefined || !context.fileState.keptOpen.has(cacheFile)
    ? undefined
    : createOpenFileSource(cacheFile.disk.file, cacheFile.path, size);
}
