/**
 * Content that continues where its connection broke. The rest is requested by range, from the same version, so that a
 * reader never gets bytes of two versions. If a gateway ignores the range, the bytes that the reader has are skipped.
 */
import { createHash } from "node:crypto";
import type { Content } from "../client.ts";
import { RemoteError } from "../errors.ts";
import { type Context, type RequestOptions, read } from "./context.ts";
import { moment } from "./nodes.ts";

export interface ReadOptions extends RequestOptions {
  /** Default: the head. A version determines the content, so `at` and `branch` cannot be given with it ("invalid"). */
  readonly version?: string | undefined;
  /** Bytes [start, end). Default: all. */
  readonly range?: { readonly start: number; readonly end: number } | undefined;
  /** The content that the file had at this moment. */
  readonly at?: Date | string | undefined;
  readonly branch?: string | undefined;
  /**
   * Lower-case hex SHA-256 of the whole content. Reading all of it fails at the end ("malformed") when the hash
   * differs.
   */
  readonly contentHash?: string | undefined;
}

/** The content can be read once: by `bytes`, `buffer` or `text`. One that is not read must be given up by `cancel`. */
export interface FileContent {
  /** Id of the version that the bytes belong to. */
  readonly version: string;
  /** Bytes of the whole content. */
  readonly size: number;
  /** The type that the gateway tells. */
  readonly mimeType: string | undefined;
  /**
   * The requested bytes as they come. Fails with a RemoteError: "malformed" when they end too soon or have another hash
   * than `contentHash`, "offline" or "silent" when a broken connection cannot be resumed.
   */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** All of `bytes`, in memory. Rejects as `bytes` fails. */
  buffer(): Promise<Buffer>;
  /** All of `bytes` as UTF-8. Rejects as `bytes` fails, and with a TypeError when they are not UTF-8. */
  text(): Promise<string>;
  /** Gives the content up and frees its connection. */
  cancel(): Promise<void>;
}

export async function readContent(context: Context, nodeId: string, options: ReadOptions = {}): Promise<FileContent> {
  const { version, range, branch, signal, contentHash } = options;
  const at = moment(options.at);
  const first = await read(context, options, (client) =>
    client.getContent(nodeId, { version, range, at, branch, signal }),
  );
  const start = range?.start ?? 0;
  const end = Math.max(start, Math.min(range?.end ?? first.size, first.size));
  const resumed = resumeBytes(context, nodeId, first, { start, end }, options);
  const isWhole = start === 0 && end === first.size;
  const bytes = contentHash !== undefined && isWhole ? verified(resumed, contentHash) : resumed;
  const buffer = async () => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of bytes) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
  return {
    version: first.version,
    size: first.size,
    mimeType: first.mimeType,
    bytes,
    buffer,
    text: async () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await buffer()),
    async cancel() {
      await bytes[Symbol.asyncIterator]().return?.();
    },
  };
}

/** Bytes [start, end) of the version of `first`. The body of `first` is read first. */
export function resumeBytes(
  context: Context,
  nodeId: string,
  first: Content,
  range: { readonly start: number; readonly end: number },
  options: RequestOptions,
): AsyncIterable<Uint8Array> {
  const { version } = first;
  const { end } = range;
  const { signal } = options;
  /** The position up to which the reader has the bytes. */
  let position = range.start;
  /** The answer that is being read. Undefined when it broke. */
  let chunks: AsyncIterator<Uint8Array> | undefined = first.bytes[Symbol.asyncIterator]();
  /** The position of its next chunk. */
  let reached = first.start;
  /** Tries since bytes arrived. */
  let tried = 1;
  let isOver = false;

  const reopen = async () => {
    const client = await context.load();
    const rest = { start: position, end };
    const content = await client.getContent(nodeId, { version, range: rest, ifVersion: version, signal });
    reached = content.start;
    return content.bytes[Symbol.asyncIterator]();
  };
  /** Ends the read. It takes the end of the answer too, so that the connection can be used again. */
  const finish = async () => {
    isOver = true;
    const rest = await chunks?.next().catch(() => undefined);
    if (rest?.done === false) await chunks?.return?.();
  };
  /** The next bytes that the reader does not have. Undefined at the end. */
  const step = async (): Promise<Uint8Array | undefined> => {
    while (!isOver) {
      if (position >= end) {
        await finish();
        return undefined;
      }
      try {
        chunks ??= await reopen();
        const result = await chunks.next();
        if (result.done === true) throw short(position, end);
        const chunk = result.value.subarray(Math.max(0, position - reached), Math.max(0, end - reached));
        reached += result.value.length;
        if (chunk.length === 0) continue;
        position += chunk.length;
        tried = 1;
        return chunk;
      } catch (error) {
        chunks = undefined;
        if (isOver) return undefined;
        try {
          await context.retrier.wait(error, "read", tried, options);
        } catch (last) {
          isOver = true;
          throw last;
        }
        tried += 1;
      }
    }
    return undefined;
  };

  // Not a generator, because return() must reach the connection even if next() was never called.
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      const chunk = await step();
      return chunk === undefined ? { done: true, value: undefined } : { done: false, value: chunk };
    },
    async return() {
      isOver = true;
      await chunks?.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

function short(position: number, end: number): RemoteError {
  return new RemoteError("malformed", `getContent: ended at byte ${position}, expected ${end}`);
}

/** Fails at the end when the bytes have another hash. */
function verified(bytes: AsyncIterable<Uint8Array>, expected: string): AsyncIterable<Uint8Array> {
  const inner = bytes[Symbol.asyncIterator]();
  const sum = createHash("sha256");
  let isChecked = false;
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      const result = await inner.next();
      if (result.done !== true) sum.update(result.value);
      else if (!isChecked) {
        isChecked = true;
        const got = sum.digest("hex");
        if (got !== expected) throw wrongHash(got, expected);
      }
      return result;
    },
    async return() {
      isChecked = true;
      await inner.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

export function wrongHash(got: string, expected: string): RemoteError {
  return new RemoteError("malformed", `getContent: the content has SHA-256 ${got}, expected ${expected}`);
}
