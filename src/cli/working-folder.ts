/**
 * The folder that relative names begin at. It may be gone, or lie in a mount that has ended: commands work all the same,
 * for who names things by absolute paths. Loaded before everything else, which asks for the folder as it is loaded.
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
