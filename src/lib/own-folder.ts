/**
 * Folders of this user alone. Where another user could put something else in the place of root's, a process of root's would
 * write, and remove, where that user wants. An ordinary user's own folders and groups are that user's affair.
 */
import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolders } from "./make-folders.ts";

const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
const LINKS_MAX = 40;

/** The folder is another user's, or may become that, or holds something and nothing says that it is ours. */
export class FolderOfOthers extends Error {
  override readonly name = "FolderOfOthers";
}

/**
 * Makes the folder at the absolute path, owner-only, where nothing is there; whoever made one that is there has known who may
 * replace it. Answers the folders it made, the highest first. Throws a FolderOfOthers, or the system's error.
 */
export function makeOwnFolder(path: string): string[] {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return [];
  const weak = process.getuid?.() === 0 ? replaceable(path) : undefined;
  if (weak !== undefined)
    throw new FolderOfOthers(`other users may replace ${weak}, and what root keeps there with it`);
  return makeFolders(path, 0o700);
}

/** What of the way to the absolute path a user other than root may replace, as far as the way is there; undefined: nothing. */
function replaceable(path: string): string | undefined {
  let current = "/";
  let pending = partsOf(path);
  for (let links = 0; pending.length > 0 && links <= LINKS_MAX; ) {
    const [name = "", ...rest] = pending;
    const next = name === ".." ? dirname(current) : join(current, name);
    const stat = lstatSync(next, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (stat.uid !== 0) return next;
    pending = rest;
    if (stat.isSymbolicLink()) {
      links += 1;
      const target = readlinkSync(next);
      pending = [...partsOf(target), ...rest];
      if (target.startsWith("/")) current = "/";
      continue;
    }
    // What lies in a sticky folder only its owner can replace.
    if ((stat.mode & OTHERS_WRITE) !== 0 && (stat.mode & STICKY) === 0) return next;
    current = next;
  }
  return undefined;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}
