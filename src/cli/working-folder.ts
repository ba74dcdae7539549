/**
 * The folder that relative paths begin at. It may be gone, or lie in a mount that has ended; commands with absolute
 * paths still work. This file must be loaded first: other modules call process.cwd() when they are loaded.
 */
import { isAbsolute, resolve } from "node:path";
import { EXIT, Failure } from "./failure.ts";

const folder = enter();

function enter(): string | undefined {
  try {
    return process.cwd();
  } catch {
    process.chdir("/");
    return undefined;
  }
}

export function workingFolder(): string {
  if (folder !== undefined) return folder;
  throw new Failure("the current folder is not there any more: expected absolute paths", EXIT.usage);
}

export function absolute(path: string): string {
  return isAbsolute(path) ? resolve(path) : resolve(workingFolder(), path);
}
