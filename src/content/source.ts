/**
 * A file as the content of a request. It can be read from the start as often as the request is repeated, also by
 * several readers at once. This file does not know the destination of the bytes. The file on the disk must not change
 * meanwhile. A read of a file that became shorter fails with ContentMismatch; only the hash shows changed bytes.
 */
import type { ContentSource } from "../contract/http.ts";
import type { Files, OpenFile } from "../lib/files.ts";
import { ContentMismatch } from "./mismatch.ts";

/** Bytes. One read from a disk costs about as much as copying 64 KiB, so larger chunks gain nothing. */
const CHUNK = 512 << 10;

/**
 * The first `size` bytes of the file at `path`. Each `read()` opens the file anew, and fails with a system error or a
 * ContentMismatch. Throws a RangeError for a wrong size.
 */
export function createFileSource(files: Files, path: string, size: number): ContentSource {
  checkSize(size);
  return { size, read: () => readChunks(() => files.open(path, "r"), path, size) };
}

/**
 * The bytes of an open file, with the checks and errors of createFileSource. The file must stay open while it may be
 * read. `path` is for messages.
 */
export function createOpenFileSource(file: OpenFile, path: string, size: number): ContentSource {
  checkSize(size);
  const borrowed = { read: file.read.bind(file), close: async () => {} };
  return { size, read: () => readChunks(async () => borrowed, path, size) };
}

function checkSize(size: number): void {
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`expected a size in bytes, got ${size}`);
}

type Readable = Pick<OpenFile, "read" | "close">;

/** Uses memory for two chunks: the one handed out and the one read ahead. A chunk belongs to its receiver. */
async function* readChunks(
  open: () => Promise<Readable>,
  path: string,
  size: number,
): AsyncGenerator<Buffer, void, undefined> {
  const file = await open();
  let ahead: Promise<Buffer> | undefined;
  try {
    const start = (position: number) => {
      if (position >= size) return undefined;
      const chunk = readChunk(file, path, position, size);
      // A reader that stops early never asks for this chunk, and then its failure does not matter.
      chunk.catch(() => {});
      return chunk;
    };
    ahead = start(0);
    for (let position = 0; ahead !== undefined; ) {
      const chunk: Buffer = await ahead;
      position += chunk.length;
      ahead = start(position);
      yield chunk;
    }
  } finally {
    await file.close();
  }
}

async function readChunk(file: Readable, path: string, position: number, size: number): Promise<Buffer> {
  const length = Math.min(CHUNK, size - position);
  const chunk = Buffer.allocUnsafeSlow(length);
  const read = await file.read(chunk, 0, length, position);
  if (read < length) throw new ContentMismatch(path, "size", size, position + read);
  return chunk;
}
