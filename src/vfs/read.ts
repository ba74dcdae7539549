/** read(2): from the live file; what is missing of it is fetched first. */
import type { Context } from "./context.ts";
import { FsError } from "./errors.ts";
import { missingParts, requireRange } from "./fetch.ts";
import type { Caller, HandleId } from "./filesystem.ts";
import type { LiveFile } from "./live-file.ts";

export function liveOf(context: Context, handleId: HandleId): LiveFile {
  const handle = context.handles.get(handleId);
  if (handle?.kind !== "file") throw new FsError("EBADF", `no open file ${handleId}`);
  return handle.live;
}

export async function read(
  context: Context,
  caller: Caller,
  handleId: HandleId,
  offset: number,
  size: number,
): Promise<Uint8Array> {
  const live = liveOf(context, handleId);
  const end = offset + size;
  if (live.missing.length > 0 && missingParts(live.missing, offset, end).length < 1) live.readEnd = end;
  if (live.missing.length > 0) {
    const stat = await live.file.stat();
    const last = Math.min(end, stat.size);
    if (offset < last) await requireRange(context, live, offset, last, caller.signal);
  }
  const buffer = Buffer.allocUnsafe(size);
  const length = await live.file.read(buffer, 0, size, offset);
  return length === size ? buffer : buffer.subarray(0, length);
}
