/** A lock between processes: an flock on a file that stays, released by the kernel when its holder ends. */
import { closeSync, constants, openSync } from "node:fs";
import * as systemCalls from "../content/system-calls.ts";

export interface LockFile {
  /** Takes the lock without waiting. True: the lock is ours now. */
  take(): boolean;
  close(): void;
}

export function lockFile(path: string): LockFile {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  return { take: () => systemCalls.lockFile(fd), close: () => closeSync(fd) };
}
