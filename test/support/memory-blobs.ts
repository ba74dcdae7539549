/** Blobs in memory, for tests and simulations: no disk, no thread pool, the same order every time. */
import type { Blobs } from "../../src/gateway/blobs.ts";

const CHUNK_BYTES = 256 * 1024;

export interface MemoryBlobs extends Blobs {
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

export function createMemoryBlobs(): MemoryBlobs {
  const contents = new Map<string, Uint8Array>();
  return {
    contents,
    async write(blob, data) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of data) chunks.push(chunk);
      contents.set(blob, Buffer.concat(chunks));
    },
    async *read(blob, start, end) {
      const bytes = contents.get(blob);
      if (bytes === undefined || bytes.length < end) throw new Error(`Blob ${blob} has not ${end} bytes.`);
      for (let at = start; at < end; at += CHUNK_BYTES) yield bytes.subarray(at, Math.min(at + CHUNK_BYTES, end));
    },
    async remove(blob) {
      contents.delete(blob);
      return true;
    },
    async *list() {
      yield* [...contents.keys()];
    },
  };
}
