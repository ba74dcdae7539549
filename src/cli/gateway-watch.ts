/**
 * When the gateway that `start` keeps may end: once no mount uses it any more. Before the first
 * mount is there, the pipe to the `start` command says what becomes of it: "mounted", or its end
 * when `start` failed or was killed.
 */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { listServed } from "../daemon/runtime-folder.ts";

/** Where the gateway finds the pipe. */
export const WATCH_FD = 3;
export const MOUNTED = "mounted";
const INTERVAL_MS = 200;

/** Resolves when it may end. */
export async function waitUntilUnused(runtimeFolder: string, baseUrl: string): Promise<void> {
  if (!(await isMounted())) return;
  while (listServed(runtimeFolder).some((record) => record.baseUrl === baseUrl)) await pause(INTERVAL_MS);
}

async function isMounted(): Promise<boolean> {
  const pipe = createReadStream("", { fd: WATCH_FD });
  pipe.on("error", () => {});
  try {
    for await (const line of createInterface({ input: pipe })) if (line === MOUNTED) return true;
  } catch {
    // A pipe that breaks says what its end says.
  }
  return false;
}
