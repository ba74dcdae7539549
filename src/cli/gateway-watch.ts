/**
 * When the gateway that `start` keeps may end: once no mount uses it any more. Until the first mount
 * is there it is needed by the `start` command, which holds a pipe to it: closed when the mount is
 * usable, when it failed, and when `start` was killed. Each later `start` that mounts from it holds
 * the lock of the data folder until its own mount is there, and a gateway takes that before it ends:
 * nobody is given one that is about to end.
 */
import { createReadStream } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { gatewaySocket, startLock } from "../daemon/gateway-record.ts";
import { listServed } from "../daemon/runtime-folder.ts";
import { WATCH_FD } from "../daemon/start-gateway.ts";

const INTERVAL_MS = 200;

/** Whether a mount uses it: by its socket, whatever its port is by now, or by its address. */
export function isGatewayUsed(runtimeFolders: readonly string[], baseUrl: string, data: string): boolean {
  const socket = gatewaySocket(data);
  return runtimeFolders
    .flatMap(listServed)
    .some((record) => record.baseUrl === baseUrl || record.gatewaySocket === socket);
}

/** Resolves when it may end; the lock is held then for as long as this process lives. */
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
