/**
 * An upload as a multipart/form-data body (RFC 7578): the `metadata` part, then the `file` part. Chunks pass through,
 * and none is kept. The body's length is known in advance if the content's is.
 */
import { randomUUID } from "node:crypto";
import type { UploadBody } from "../contract/http.ts";
import { RemoteError } from "./errors.ts";

interface MultipartBody {
  /** Value of the Content-Type header. */
  readonly contentType: string;
  /** Bytes of the whole body. Undefined when the content does not tell its size. */
  readonly size: number | undefined;
  /** Fails with a RemoteError "aborted" when the content cannot be read or has another size than it told. */
  read(): AsyncGenerator<Uint8Array, void, undefined>;
}

/** Visible ASCII and spaces: text that cannot end a header. */
const HEADER_VALUE = /^[\x20-\x7e]+$/;

/**
 * The boundary is random by default, because the content must not contain it. Throws a RemoteError "invalid" (field
 * "contentType").
 */
export function frameMultipart(body: UploadBody, boundary = `wsfs-${randomUUID()}`): MultipartBody {
  const contentType = body.contentType ?? "application/octet-stream";
  if (!HEADER_VALUE.test(contentType)) {
    throw new RemoteError("invalid", `contentType: expected visible ASCII, got ${JSON.stringify(contentType)}`, {
      field: "contentType",
    });
  }
  const before = Buffer.from(
    `--${boundary}\r\n` +
      'Content-Disposition: form-data; name="metadata"\r\nContent-Type: application/json\r\n\r\n' +
      `${JSON.stringify(body.metadata)}\r\n--${boundary}\r\n` +
      `Content-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: ${contentType}\r\n\r\n`,
  );
  const after = Buffer.from(`\r\n--${boundary}--\r\n`);
  const { content } = body;
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    size: content.size === undefined ? undefined : before.length + content.size + after.length,
    async *read() {
      yield before;
      let read = 0;
      for await (const chunk of contentChunks(content.read())) {
        read += chunk.length;
        if (content.size !== undefined && read > content.size)
          throw wrongSize(`more than ${content.size}`, content.size);
        if (chunk.length > 0) yield chunk;
      }
      // The end is sent only after the source has ended, so a receiver of the end has the whole content.
      if (content.size !== undefined && read < content.size) throw wrongSize(String(read), content.size);
      yield after;
    },
  };
}

function wrongSize(got: string, expected: number): RemoteError {
  return new RemoteError("aborted", `the content to send has ${got} bytes, expected ${expected}: it changed meanwhile`);
}

async function* contentChunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const result = await readNext(iterator);
      if (result.done === true) return;
      yield result.value;
    }
  } finally {
    await iterator.return?.();
  }
}

async function readNext(iterator: AsyncIterator<Uint8Array>): Promise<IteratorResult<Uint8Array>> {
  try {
    return await iterator.next();
  } catch (cause) {
    throw unreadable(cause);
  }
}

/** Turns the error of a content source into a RemoteError "aborted". */
export function unreadable(cause: unknown): RemoteError {
  if (cause instanceof RemoteError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new RemoteError("aborted", `the content to send cannot be read: ${reason}`, { cause });
}
