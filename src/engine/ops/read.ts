/** read(2) and lseek(2). */
import type { Caller, HandleId } from "../api/index.ts";
import type { Kernel } from "../core/index.ts";
import { fileOf } from "./open.ts";

/**
 * How many times a read is repeated because the file was being truncated (files/pending-truncate.ts). A file that is
 * truncated again and again must not keep its reader for ever.
 */
const TRUNCATIONS = 4;
/** The result for a caller that has its answer already. */
const NOTHING = new Uint8Array(0);

export async function read(
  context: Kernel,
  caller: Caller,
  handleId: HandleId,
  offset: number,
  size: number,
): Promise<Uint8Array> {
  const { cacheFile } = fileOf(context, handleId);
  cacheFile.threadWentOn(caller);
  let bytes = await readOnce(context, caller, handleId, offset, size);
  for (let times = 0; times < TRUNCATIONS && bytes !== undefined && bytes.length < size; times += 1) {
    if (!(await cacheFile.untilTruncateKnown(caller.signal))) break;
    bytes = await readOnce(context, caller, handleId, offset, size);
  }
  return bytes ?? NOTHING;
}

/** Undefined: the caller has its answer. */
async function readOnce(
  context: Kernel,
  caller: Caller,
  handleId: HandleId,
  offset: number,
  size: number,
): Promise<Uint8Array | undefined> {
  return fileOf(context, handleId).reader.read(handleId, offset, size, caller);
}

/** Undefined: there is nothing of that kind at or after the offset. */
export async function seek(
  context: Kernel,
  _caller: Caller,
  handleId: HandleId,
  kind: "data" | "hole",
  offset: number,
): Promise<number | undefined> {
  return fileOf(context, handleId).cacheFile.seek(kind, offset);
}
