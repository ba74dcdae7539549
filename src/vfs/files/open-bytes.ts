/**
 * The bytes of a live file by the descriptor that is open: small ones, and all where the name no
 * longer leads to them (see without-folder.ts). Others are read by the name: by a worker, and also
 * once the file is closed.
 */
import { createHash } from "node:crypto";
import { createOpenFileSource } from "../../content/source.ts";
import type { ContentSource } from "../../contract/http.ts";
import type { Generation } from "../../metadata/attempts.ts";
import type { Context } from "../context/context.ts";
import type { LiveFile } from "../context/live-file.ts";

const CHUNK = 1024 * 1024;
/** Up to this size, opening a file costs more than hashing it. */
const SMALL = 32 * 1024;

/**
 * SHA-256 and size of a live file nobody writes to, about `expected` bytes long; of a small one its bytes too.
 * Undefined: somebody does again.
 */
export async function hashLive(
  context: Context,
  live: LiveFile,
  expected: number,
  signal: AbortSignal,
): Promise<{ hash: string; size: number; bytes?: Uint8Array } | undefined> {
  if (expected > SMALL && context.disk.trouble !== "gone") return context.runtime.files.hash(live.path, signal);
  const hash = createHash("sha256");
  let buffer = Buffer.allocUnsafe(Math.min(CHUNK, expected + 1));
  let size = 0;
  while (live.writers === 0) {
    signal.throwIfAborted();
    const { length } = buffer;
    const read = await live.file.read(buffer, 0, length, size);
    hash.update(buffer.subarray(0, read));
    size += read;
    if (read < length) {
      const isAll = size === read && size <= SMALL;
      return { hash: hash.digest("hex"), size, ...(isAll ? { bytes: buffer.subarray(0, read) } : {}) };
    }
    // Longer than the rows say, and who knows how long.
    if (length < CHUNK) buffer = Buffer.allocUnsafe(CHUNK);
  }
  return undefined;
}

/** Undefined: it is read by its name. */
export function openSource(context: Context, { lineage, size }: Generation): ContentSource | undefined {
  const live = lineage === null ? undefined : context.lives.get(lineage);
  return live === undefined || !context.bytes.held.has(live)
    ? undefined
    : createOpenFileSource(live.file, live.path, size);
}
