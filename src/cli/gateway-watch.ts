/**
 * When the gateway that `start` keeps may end: once no mount uses it any more. Until the first mount
 * is there it is needed by the `start` command, which holds a pipe to it: closed when the mount is
 * usable, when it failed, and when `start` was killed. Each later `start` that mounts from it holds
 * the lock of the data folder until its own mount is there, and a gateway takes that before it ends:
 * nobody is given one that is about to end.
 */
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type LockFile, lockFile } from "../daemon/lock-file.ts";
import { listServed } from "../daemon/runtime-folder.ts";

/** Where the gateway finds the pipe. */
export const WATCH_FD = 3;
const INTERVAL_MS = 200;

/** Who has it begins a mount from the gateway of this folder, or ends that gateway. */
export function startLock(data: string): LockFile {
  return lockFile(join(data, "start.lock"));
}

/** Whether a mount uses it. */
export function isGatewayUsed(runtimeFolders: readonly string[], baseUrl: string): boolean {
  return runtimeFolders.some((folder) => listServed(folder).some((record) => record.baseUrl === baseUrl));
}

/** Resolves when it may end; the lock is held then for as long as this process lives. */
export async function waitUntilUnused(
  runtimeFolders: readonly string[],
  baseUrl: string,
  data: string,
  begun = endOfPipe(),
): Promise<void> {
  await begun;
  const isUsed = () => isGatewayUsed(runtimeFolders, baseUrl);
  for (;;) {
    while (isUsed()) await pause(INTERVAL_MS);
    const lock = startLock(data);
    // Who had it a moment ago has its mount by now.
    if (lock.take() && !isUsed()) return;
    lock.close();
    await pause(INTERVAL_MS);
  }
}

function endOfPipe(): Promise<void> {
  return new Promise((resolve) => {
    // A pipe that breaks says what its end says.
    createReadStream("", { fd: WATCH_FD })
      .on("error", () => resolve())
      .on("close", () => resolve())
      .resume();
  });
}
