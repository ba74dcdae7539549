/**
 * The bytes of a live file that is open, where its name no longer leads to them; see
 * without-folder.ts. As long as it does, they are read by the name: by a worker, and also once it is closed.
 */
import { createHash } from "node:crypto";
import { createOpenFileSource } from "../content/source.ts";
import type { ContentSource } from "../contract/http.ts";
import type { Generation } from "../metadata/attempts.ts";
import type { Context } from "./context.ts";
import type { LiveFile } from "./live-file.ts";

const CHUNK = 1024 * 1024;

/** SHA-256 and size of a live file nobody writes to. */
export async function hashLive(context: Context, live: LiveFile, signal: AbortSignal) {
  if (context.disk.trouble !== "gone") return context.runtime.files.hash(live.path, signal);
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(CHUNK);
  let size = 0;
  for (;;) {
    signal.throwIfAborted();
    const read = await live.file.read(buffer, 0, CHUNK, size);
    if (read === 0) return { hash: hash.digest("hex"), size };
    hash.update(buffer.subarray(0, read));
    size += read;
  }
}

/** Undefined: it is read by its name. */
export function openSource(context: Context, { lineage, size }: Generation): ContentSource | undefined {
  const live = lineage === null ? undefined : context.lives.get(lineage);
  return live === undefined || !context.bytes.held.has(live)
    ? undefined
    : createOpenFileSource(live.file, live.path, size);
}
