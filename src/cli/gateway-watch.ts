/**
 * Decides when the gateway that `start` keeps may end: when no mount uses it any more. Until the first mount is there,
 * the `start` command needs the gateway and holds a pipe to it. The pipe is closed when the mount is usable, when the
 * mount failed, and when `start` was killed.
 *
 * Race: a later `start` could find the gateway just before it ends. So each `start` holds the lock of the data folder
 * until its mount is there, and the gateway takes that lock before it ends.
 */
import { createReadStream } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { gatewaySocket, startLock } from "../daemon/gateway-record.ts";
import { listServed } from "../daemon/runtime-folder.ts";
import { WATCH_FD } from "../daemon/start-gateway.ts";

const INTERVAL_MS = 200;

/**
 * True if a mount uses the gateway. The mount is recognised by the gateway's socket, whatever port the gateway has by
 * now, or by its address.
 */
export function isGatewayUsed(runtimeFolders: readonly string[], baseUrl: string, data: string): boolean {
  const socket = gatewaySocket(data);
  return runtimeFolders
    .flatMap(listServed)
    .some((record) => record.baseUrl === baseUrl || record.gatewaySocket === socket);
}

/** Resolves when the gateway may end. This process then holds the lock until it ends. */
export async function waitUntilUnused(
  runtimeFolders: readonly string[],
  baseUrl: string,
  data: string,
  begun = endOfPipe(),
): Promise<void> {
  await begun;
  const isUsed = () => isGatewayUsed(runtimeFolders, baseUrl, data);
  for (;;) {
    while (isUsed()) await pause(INTERVAL_MS);
    const lock = startLock(data);
    // A `start` that held the lock a moment ago may have its mount by now.
    if (lock.take() && !isUsed()) return;
    lock.close();
    await pause(INTERVAL_MS);
  }
}

function endOfPipe(): Promise<void> {
  return new Promise((resolve) => {
    // An error of the pipe means the same as its end.
    createReadStream("", { fd: WATCH_FD })
      .on("error", () => resolve())
      .on("close", () => resolve())
      .resume();
  });
}
