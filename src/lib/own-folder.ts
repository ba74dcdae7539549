/**
 * Folders of this user alone. If another user could replace a folder of root, a process of root would write and remove
 * files at a place of that user's choice. For ordinary users this is not checked: their folders and groups are their
 * own affair.
 */
import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolders } from "./make-folders.ts";

const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
const LINKS_MAX = 40;

/**
 * The folder belongs to another user, or another user may replace it, or it has content and no sign that it is ours.
 */
export class FolderOfOthers extends Error {
  override readonly name = "FolderOfOthers";
}

/**
 * Makes the folder at the absolute path, owner-only, if nothing is there. An existing one is not checked: its maker is
 * responsible for its place. Returns the folders it made, the highest first. Throws a FolderOfOthers or a system error.
 */
export function makeOwnFolder(path: string): string[] {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return [];
  const weak = process.getuid?.() === 0 ? replaceable(path) : undefined;
  if (weak !== undefined)
    throw new FolderOfOthers(`other users may replace ${weak}, and what root keeps there with it`);
  return makeFolders(path, 0o700);
}

/**
 * The first folder or link on the absolute path that a user other than root may replace, as far as the path exists.
 * Undefined: none.
 */
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
    // In a sticky folder only the owner of an entry can replace it.
    if ((stat.mode & OTHERS_WRITE) !== 0 && (stat.mode & STICKY) === 0) return next;
    current = next;
  }
  return undefined;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}
