/**
 * Bytes that arrive, into a file. It must not know where they come from, nor which ranges of the
 * file are wanted. One chunk is written while the next arrives; memory stays at two chunks.
 */
import { createHash } from "node:crypto";
import type { OpenFile } from "../lib/files.ts";
import { ContentMismatch } from "./mismatch.ts";

export interface FetchOptions {
  /** What arrives, for error messages: "version 7 of …". */
  readonly subject: string;
  /** Where in the file the first byte belongs. */
  readonly offset: number;
  /** How many bytes there must be; never a byte behind them is written. */
  readonly length: number;
  /** SHA-256 of all that arrives, lower-case hex; not checked when absent. */
  readonly hash?: string;
  /** Bytes [start, end) of the file are written. Ascending, without gaps. */
  readonly onProgress?: (start: number, end: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Resolves when every byte is written (not synced) and the hash, if given, is right. Rejects with
 * `ContentMismatch`, the body's error, the file's error, or the signal's reason; nothing is being
 * written any more then, the body has been returned, and what was reported as progress stays.
 * The body must not use a chunk's memory again.
 */
export async function fetchInto(file: OpenFile, body: AsyncIterable<Uint8Array>, options: FetchOptions): Promise<void> {
  const { subject, offset, length, onProgress, signal } = options;
  const hash = options.hash === undefined ? undefined : createHash("sha256");
  let arrived = 0;
  let writing: Promise<void> | undefined;
  try {
    for await (const chunk of body) {
      signal?.throwIfAborted();
      if (chunk.length === 0) continue;
      if (arrived + chunk.length > length) throw new ContentMismatch(subject, "size", length, arrived + chunk.length);
      hash?.update(chunk);
      await writing;
      writing = write(file, chunk, offset + arrived, onProgress);
      arrived += chunk.length;
    }
    await writing;
  } finally {
    // After an error elsewhere the last write still ends before anyone closes the file.
    await writing?.catch(() => {});
  }
  signal?.throwIfAborted();
  if (arrived < length) throw new ContentMismatch(subject, "size", length, arrived);
  const actual = hash?.digest("hex");
  if (options.hash !== undefined && actual !== undefined && actual !== options.hash) {
    throw new ContentMismatch(subject, "hash", options.hash, actual);
  }
}

function write(
  file: OpenFile,
  chunk: Uint8Array,
  position: number,
  onProgress: FetchOptions["onProgress"],
): Promise<void> {
  const written = file.write(chunk, position).then(() => onProgress?.(position, position + chunk.length));
  // It is awaited with the next chunk, which may be long in coming: a failure until then is not unhandled.
  written.catch(() => {});
  return written;
}
