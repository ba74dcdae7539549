/**
 * A received multipart body: its metadata checked, its content hashed and stored, but not yet part of any version.
 * Small contents stay in memory and get into the store with the change itself; larger ones are blobs from the start.
 * Nothing is left of a body that is broken off or refused.
 */
import { createHash, hash } from "node:crypto";
import { type UploadMetadata, uploadMetadata } from "../contract/resources.ts";
import type { Content } from "./changes.ts";
import type { Context } from "./context.ts";
import type { Call, GatewayAnswer, Part } from "./exchange.ts";
import { parseJson } from "./json.ts";
import { check, invalid, ProblemError, tooLarge } from "./problems.ts";
import { type Destination, earlyQuota } from "./quota.ts";
import { mimeTypeOf, SNIFF_BYTES } from "./sniff.ts";

/** Contents up to this size are kept in the table of the store: no file has to be made, named and opened. */
const INLINE_BYTES = 32 * 1024;
/** More than the boundaries and headers of a multipart body take. */
export const FRAMING_BYTES = 64 * 1024;

interface StagedUpload {
  readonly metadata: UploadMetadata;
  readonly size: number;
  readonly hash: string;
  /** Within the transaction that makes the version: the content is now in use. */
  keep(): Content;
  /** Removes the content at the end, unless it was kept. */
  discard(): Promise<void>;
  /** The transaction that kept it was rolled back. */
  unkeep(): void;
}

/**
 * Runs the effect of an upload in one transaction, and then removes the upload's leftovers. That removal takes time, in
 * which the commit may fail. So the commit is awaited first: the answer never reports a change that did not happen. A
 * refusal, too, reports the state of the store. A commit pending after that belongs to others.
 */
export async function commitUpload(
  { clock, store }: Context,
  staged: StagedUpload,
  effect: () => GatewayAnswer,
): Promise<GatewayAnswer> {
  try {
    const answer = await store.queued(() => {
      const result = effect();
      clock.step("gateway: upload not committed");
      return result;
    });
    return { ...answer, isCommitted: true };
  } catch (error) {
    staged.unkeep();
    if (!(error instanceof ProblemError)) throw error;
    throw new ProblemError(error.status, error.message, { ...error.details, isCommitted: true });
  } finally {
    await staged.discard();
  }
}

interface StagedContent {
  readonly size: number;
  readonly hash: string;
  readonly mimeType: string;
  readonly blob: string | undefined;
  readonly bytes: Uint8Array | undefined;
}

/** `destination`: called when the content begins to come in. */
export async function stageUpload(
  context: Context,
  { parts, headers }: Pick<Call<"upload" | "writeContent">, "parts" | "headers">,
  destination: () => Destination,
): Promise<StagedUpload> {
  if (parts === undefined) {
    throw invalid("file", "file: expected a multipart/form-data body with a part named file");
  }
  let metadata: UploadMetadata | undefined;
  let metadataBytes = 0;
  let content: StagedContent | undefined;
  let kept = false;
  const discard = async () => {
    if (content?.blob === undefined) return;
    if (!kept) await context.blobs.remove(content.blob);
    // By now a row refers to the blob, or the blob is removed.
    context.staged.delete(content.blob);
  };
  try {
    for await (const part of parts) {
      if (part.name === "metadata") {
        if (metadata !== undefined) throw invalid("metadata", "metadata: came twice");
        ({ metadata, bytes: metadataBytes } = await readMetadata(part, context.options.maxJsonBytes));
      } else if (part.name === "file") {
        if (content !== undefined) throw invalid("file", "file: came twice");
        // Without metadata the key is not known. The upload may have been carried out before, so it is not judged.
        const judge = metadata === undefined ? () => {} : earlyQuota(context, destination, metadata);
        judge(Number(headers["content-length"] ?? 0) - metadataBytes - FRAMING_BYTES);
        content = await receive(context, part, judge);
      } else {
        throw invalid(part.name, `${JSON.stringify(part.name)}: unknown field, expected file and metadata`);
      }
    }
    if (content === undefined) throw invalid("file", "file: the part is missing");
    const { size, hash, mimeType, blob, bytes } = content;
    const checked = metadata ?? {};
    if (checked.contentHash !== undefined && checked.contentHash !== null && checked.contentHash !== hash) {
      throw invalid("contentHash", `contentHash: the content has ${hash}, expected ${checked.contentHash}`);
    }
    return {
      metadata: checked,
      size,
      hash,
      keep() {
        const { lastInsertRowid } = context.store
          .prepare("INSERT INTO content (blob, bytes) VALUES (?, ?)")
          .run(blob ?? null, bytes ?? null);
        kept = true;
        return { content: Number(lastInsertRowid), size, hash, mimeType };
      },
      discard,
      unkeep() {
        kept = false;
      },
    };
  } catch (error) {
    await discard();
    throw error;
  }
}

async function readMetadata({ data, bytes }: Part, limit: number) {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const add = (chunk: Uint8Array) => {
    size += chunk.length;
    if (size > limit) throw tooLarge(`metadata: more than ${limit} bytes`, "metadata");
    chunks.push(chunk);
  };
  if (bytes !== undefined) add(bytes);
  else for await (const chunk of data) add(chunk);
  return { metadata: check(uploadMetadata, parseJson(chunks, "metadata"), "metadata"), bytes: size };
}

/** `judge` throws when this many bytes are too many. */
async function receive(context: Context, part: Part, judge: (bytes: number) => void): Promise<StagedContent> {
  const { bytes } = part;
  if (bytes === undefined || bytes.length > INLINE_BYTES) return receiveStream(context, part, judge);
  if (bytes.length > context.options.maxFileBytes) throw tooLargeFile(context);
  const mimeType = await mimeTypeOf(part.contentType, bytes.subarray(0, SNIFF_BYTES));
  return { size: bytes.length, hash: hash("sha256", bytes), mimeType, blob: undefined, bytes };
}

const tooLargeFile = ({ options }: Context) => tooLarge(`file: more than ${options.maxFileBytes} bytes`, "file");

async function receiveStream(context: Context, part: Part, judge: (bytes: number) => void): Promise<StagedContent> {
  const hashing = createHash("sha256");
  const limit = context.options.maxFileBytes;
  const start: Uint8Array[] = [];
  let size = 0;
  const source = part.data[Symbol.asyncIterator]();
  /** Returns the next chunk, counted and hashed. */
  const take = async (): Promise<Uint8Array | undefined> => {
    const { done, value } = await source.next();
    if (done === true) return undefined;
    size += value.length;
    if (size > limit) throw tooLargeFile(context);
    judge(size);
    hashing.update(value);
    return value;
  };

  let more = true;
  let blob: string | undefined;
  try {
    while (more && size <= INLINE_BYTES) {
      const chunk = await take();
      if (chunk === undefined) more = false;
      else start.push(chunk);
    }
    const small = Buffer.concat(start);
    blob = more ? await writeBlob(context, followedBy(start, take)) : undefined;
    return {
      size,
      hash: hashing.digest("hex"),
      mimeType: await mimeTypeOf(part.contentType, small.subarray(0, SNIFF_BYTES)),
      blob,
      bytes: more ? undefined : small,
    };
  } catch (error) {
    await source.return?.();
    if (blob !== undefined) {
      await context.blobs.remove(blob);
      context.staged.delete(blob);
    }
    throw error;
  }
}

/** A blob counts as in use from before it is written until a row refers to it. */
async function writeBlob(context: Context, data: AsyncIterable<Uint8Array>): Promise<string> {
  const blob = context.clock.uuid();
  context.staged.add(blob);
  try {
    await context.blobs.write(blob, data);
    context.clock.step("gateway: blob in place");
    return blob;
  } catch (error) {
    context.staged.delete(blob);
    throw error;
  }
}

async function* followedBy(
  start: readonly Uint8Array[],
  take: () => Promise<Uint8Array | undefined>,
): AsyncGenerator<Uint8Array> {
  yield* start;
  for (let chunk = await take(); chunk !== undefined; chunk = await take()) yield chunk;
}
