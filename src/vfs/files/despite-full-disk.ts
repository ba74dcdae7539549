/**
 * What needs room on the disk, tried again once cached files have made way, or removed ones have gone.
 * It must not know what it is.
 */
import { hasCode } from "../../lib/system-error.ts";
import type { Context } from "../context/context.ts";
import { evict } from "./evict.ts";
import { waitForRemoved } from "./removed-room.ts";

/** Set free at once, so that not every write of a copy under way evicts. */
const ROOM = 32 * 1024 * 1024;

/** Cached files go. Whether any did. */
async function makeRoom(context: Context, bytes: number): Promise<boolean> {
  return (await evict(context, Math.max(bytes, ROOM))) > 0;
}

/** `work`, and again where a full disk refused it, for as long as room could be made. */
export async function despiteFullDisk<T>(context: Context, bytes: number, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isFull(error)) throw error;
      if (!(await makeRoom(context, bytes)) && !(await waitForRemoved(context))) throw error;
    }
  }
}

function isFull(error: unknown): boolean {
  return hasCode(error, "ENOSPC", "EDQUOT");
}
