/**
 * Downloads a file of the gateway to the local disk. The bytes go into a part file beside the target. It gets the
 * target's name only when it is whole, checked and synced, so that half a file never appears under that name. A
 * download that broke off, also by a crash, continues where its part file ends.
 */
import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { Node } from "../../contract/resources.ts";
import { RemoteError } from "../errors.ts";
import { type Context, type RequestOptions, read } from "./context.ts";
import { openPartFile } from "./part-file.ts";
import { resumeBytes, wrongHash } from "./read.ts";

export interface DownloadOptions extends RequestOptions {
  /** Default: the head. A version determines the content, so `branch` cannot be given with it ("invalid"). */
  readonly version?: string | undefined;
  readonly branch?: string | undefined;
  /**
   * Called with the number of bytes that are in the part file, those of an earlier attempt included, and the size of
   * the content.
   */
  readonly onProgress?: ((written: number, size: number) => void) | undefined;
}

export interface Downloaded {
  readonly version: string;
  /** Bytes. */
  readonly size: number;
  /** Lower-case hex SHA-256 of the written bytes. It equals the gateway's if the gateway has one. */
  readonly contentHash: string;
}

interface Wanted {
  readonly version: string;
  readonly size: number;
  /** Undefined when the gateway does not tell it. */
  readonly contentHash: string | undefined;
}

const CHUNK_BYTES = 1024 * 1024;

/** Replaces the file at `path`. After a failure the part file stays beside it for the next attempt. */
export async function download(
  context: Context,
  nodeId: string,
  path: string,
  options: DownloadOptions = {},
): Promise<Downloaded> {
  const wanted = await find(context, nodeId, options);
  const part = await openPartFile(path, nodeId, wanted.version);
  let isKept = true;
  try {
    const contentHash = await fill(context, nodeId, part.handle, wanted, options);
    await part.finish();
    return { version: wanted.version, size: wanted.size, contentHash };
  } catch (error) {
    // Content that is known to be wrong is of no use to the next attempt.
    isKept = !(error instanceof RemoteError && error.code === "malformed");
    throw error;
  } finally {
    await part.leave(isKept);
  }
}

async function find(context: Context, nodeId: string, options: DownloadOptions): Promise<Wanted> {
  const { version, branch, signal } = options;
  if (version !== undefined && branch !== undefined) {
    const message = "download: version: expected alone: it says which content, as branch does";
    throw new RemoteError("invalid", message, { field: "version", isUnsent: true });
  }
  const { head, size, contentHash } = await currentHead(context, nodeId, options);
  if (head !== undefined && (version === undefined || version === head)) return { version: head, size, contentHash };
  const found = await findVersion(context, nodeId, version, options);
  if (found !== undefined) return found;
  // The gateway may list no versions. Its answer for one byte still tells the size of the whole.
  const content = await read(context, options, (client) =>
    client.getContent(nodeId, { version, branch, range: { start: 0, end: 1 }, signal }),
  );
  await content.bytes[Symbol.asyncIterator]().return?.();
  return { version: content.version, size: content.size, contentHash: undefined };
}

/** The node's head. A deleted node has none, but its versions can be read. */
async function currentHead(context: Context, nodeId: string, options: DownloadOptions) {
  const { version, branch, signal } = options;
  let node: Node;
  try {
    node = await read(context, options, (client) => client.getNode(nodeId, { branch, signal }));
  } catch (error) {
    if (version === undefined || !(error instanceof RemoteError) || error.code !== "notFound") throw error;
    return { head: undefined, size: 0, contentHash: undefined };
  }
  if (node.kind === "folder") {
    throw new RemoteError("invalid", `download: ${node.path} is a folder`, { field: "nodeId", node });
  }
  return { head: node.head ?? undefined, size: node.size, contentHash: node.contentHash ?? undefined };
}

async function findVersion(
  context: Context,
  nodeId: string,
  version: string | undefined,
  options: DownloadOptions,
): Promise<Wanted | undefined> {
  if (version === undefined) return undefined;
  const { signal } = options;
  for (let after: string | undefined; ; ) {
    const page = await read(context, options, (client) =>
      client.listVersions(nodeId, { after, pageSize: 1000, signal }),
    );
    const found = page.items.find(({ id }) => id === version);
    if (found !== undefined) return { version, size: found.size, contentHash: found.contentHash ?? undefined };
    if (page.next === undefined || page.next === null) return undefined;
    after = page.next;
  }
}

/** Fills the part file with the whole content. Resolves with its hash. */
async function fill(
  context: Context,
  nodeId: string,
  part: FileHandle,
  wanted: Wanted,
  options: DownloadOptions,
): Promise<string> {
  const { size, contentHash: expected } = wanted;
  // Without a hash, the bytes of an earlier attempt cannot be trusted: a crash may have left zeros in them.
  const { size: kept } = await part.stat();
  const mayResume = expected !== undefined && kept <= size;
  if (mayResume && kept > 0) {
    const resumed = await fillFrom(context, nodeId, part, wanted, kept, options);
    if (resumed === expected) return resumed;
  }
  await part.truncate(0);
  const hash = await fillFrom(context, nodeId, part, wanted, 0, options);
  if (expected !== undefined && hash !== expected) throw wrongHash(hash, expected);
  return hash;
}

async function fillFrom(
  context: Context,
  nodeId: string,
  part: FileHandle,
  { version, size }: Wanted,
  start: number,
  options: DownloadOptions,
): Promise<string> {
  const { signal, onProgress } = options;
  const sum = createHash("sha256");
  for await (const chunk of readUpTo(part, start)) sum.update(chunk);
  let position = start;
  onProgress?.(position, size);
  if (position < size) {
    const range = { start, end: size };
    const first = await read(context, options, (client) =>
      client.getContent(nodeId, { version, signal, ...(start === 0 ? {} : { range, ifVersion: version }) }),
    );
    if (first.size !== size) {
      await first.bytes[Symbol.asyncIterator]().return?.();
      throw new RemoteError("malformed", `getContent: the content has ${first.size} bytes, expected ${size}`);
    }
    for await (const chunk of resumeBytes(context, nodeId, first, range, options)) {
      sum.update(chunk);
      await writeAll(part, chunk, position);
      position += chunk.length;
      onProgress?.(position, size);
    }
  }
  return sum.digest("hex");
}

async function* readUpTo(part: FileHandle, end: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let position = 0; position < end; ) {
    const length = Math.min(CHUNK_BYTES, end - position);
    const { bytesRead, buffer } = await part.read(Buffer.allocUnsafe(length), 0, length, position);
    if (bytesRead === 0) return; // the file became shorter meanwhile, which its hash will show
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function writeAll(part: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    const { bytesWritten } = await part.write(chunk, written, chunk.length - written, position + written);
    written += bytesWritten;
  }
}
