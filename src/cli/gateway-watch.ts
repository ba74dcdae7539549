/**
 * When the gateway that `start` keeps may end: once no mount uses it any more. Until the first mount
 * is there it is needed by the `start` command, which holds a pipe to it: closed when the mount is
 * usable, when it failed, and when `start` was killed.
 */
import { createReadStream } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { listServed } from "../daemon/runtime-folder.ts";

/** Where the gateway finds the pipe. */
export const WATCH_FD = 3;
const INTERVAL_MS = 200;

/** Resolves when it may end. */
export async function waitUntilUnused(runtimeFolders: readonly string[], baseUrl: string): Promise<void> {
  await endOfPipe();
  const isUsed = (folder: string) => listServed(folder).some((record) => record.baseUrl === baseUrl);
  while (runtimeFolders.some(isUsed)) await pause(INTERVAL_MS);
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
