/** What needs room on the disk, tried again once cached files have made way. It must not know what it is. */
import { hasCode } from "../lib/system-error.ts";
import type { Context } from "./context.ts";
import { evict } from "./evict.ts";

/** Set free at once, so that not every write of a copy under way evicts. */
const ROOM = 32 * 1024 * 1024;

/** Cached files go. Whether any did. */
async function makeRoom(context: Context, bytes: number): Promise<boolean> {
  return (await evict(context, Math.max(bytes, ROOM))) > 0;
}

/** `work`, and once more where a full disk refused it and room could be made. */
export async function despiteFullDisk<T>(context: Context, bytes: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isFull(error) || !(await makeRoom(context, bytes))) throw error;
    return await work();
  }
}

function isFull(error: unknown): boolean {
  return hasCode(error, "ENOSPC", "EDQUOT");
}
