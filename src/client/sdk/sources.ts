/**
 * Turns a program's content for an upload into a ContentSource: its size, if known, and whether it can be read again
 * for another try.
 */
import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import type { ContentSource } from "../../contract/http.ts";
import { RemoteError } from "../errors.ts";

/**
 * Content to upload: bytes, text (sent as UTF-8), a `Blob`, a file by its path, or anything that yields bytes, such as
 * a Node or web stream or a generator. A source that yields bytes can be read only once, so its upload is retried only
 * while nothing of it was read. Pass a function that returns a fresh one to allow retries.
 */
export type Uploadable =
  | Uint8Array
  | string
  | Blob
  | { readonly path: string | URL }
  | AsyncIterable<Uint8Array | string>
  | (() => AsyncIterable<Uint8Array | string>);

const CHUNK_BYTES = 1024 * 1024;

export function isUploadable(content: unknown): content is Uploadable {
  if (typeof content === "string" || typeof content === "function") return true;
  return isIterable(content) || content instanceof Uint8Array || content instanceof Blob || isFile(content);
}

function isIterable(content: unknown): content is AsyncIterable<Uint8Array | string> {
  return typeof content === "object" && content !== null && Symbol.asyncIterator in content;
}

function isFile(content: unknown): content is { readonly path: string | URL } {
  if (typeof content !== "object" || content === null || !("path" in content)) return false;
  const { path } = content;
  return Object.keys(content).length === 1 && ((typeof path === "string" && path !== "") || path instanceof URL);
}

/**
 * `size`: the size in bytes of a source that does not tell it. It is checked while the source is read. Rejects with
 * "invalid" (field "content") when the file at `{ path }` cannot be read or is no file.
 */
export async function sourceOf(content: Uploadable, size?: number): Promise<ContentSource> {
  if (typeof content === "string" || content instanceof Uint8Array) {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    return {
      size: bytes.length,
      async *read() {
        if (bytes.length > 0) yield bytes;
      },
    };
  }
  if (content instanceof Blob) return { size: content.size, read: () => bytesOf(content.stream()) };
  if (typeof content === "function") return { size, read: () => bytesOf(content()) };
  if (isIterable(content)) return readOnce(content, size);
  return fileSource(content.path);
}

async function fileSource(path: string | URL): Promise<ContentSource> {
  const status = await stat(path).catch(unreadable);
  if (!status.isFile())
    throw new RemoteError("invalid", `content: ${path} is not a file`, { field: "content", isUnsent: true });
  return {
    size: status.size,
    async *read() {
      const handle = await open(path, "r");
      try {
        for (let position = 0; ; ) {
          const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position);
          if (bytesRead === 0) return;
          position += bytesRead;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await handle.close();
      }
    },
  };
}

function readOnce(content: AsyncIterable<Uint8Array | string>, size: number | undefined): ContentSource {
  let isSpent = false;
  return {
    size,
    isSpent: () => isSpent,
    read() {
      if (isSpent) throw new RemoteError("aborted", "the content can be read only once, and was read before");
      isSpent = true;
      return bytesOf(content);
    },
  };
}

async function* bytesOf(chunks: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array, void, undefined> {
  if (!isIterable(chunks)) throw new RemoteError("aborted", "the content's function gave nothing that yields bytes");
  for await (const chunk of chunks) {
    if (typeof chunk === "string") yield Buffer.from(chunk);
    else if (chunk instanceof Uint8Array) yield chunk;
    else throw new RemoteError("aborted", `the content yields ${typeof chunk}, expected bytes or text`);
  }
}

function unreadable(cause: unknown): never {
  const reason = cause instanceof Error ? cause.message : String(cause);
  throw new RemoteError("invalid", `content: ${reason}`, { field: "content", isUnsent: true, cause });
}

interface HashedSource {
  readonly source: ContentSource;
  /** Lower-case hex SHA-256 of the bytes of the last read. Undefined when it was not read to its end. */
  hash(): string | undefined;
}

/** The source of `content`, hashed while it is read. */
export function hashed(content: ContentSource): HashedSource {
  let digest: string | undefined;
  return {
    source: {
      ...content,
      async *read() {
        digest = undefined;
        const sum = createHash("sha256");
        for await (const chunk of content.read()) {
          sum.update(chunk);
          yield chunk;
        }
        digest = sum.digest("hex");
      },
    },
    hash: () => digest,
  };
}
