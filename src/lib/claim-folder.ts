/**
 * Folders that belong to us alone, such as a state dir. A folder is claimed by a marker file in it. A folder with any
 * other content is not ours and is never changed.
 */
import { chmodSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unmakeFolders } from "./make-folders.ts";
import { FolderOfOthers, makeOwnFolder } from "./own-folder.ts";

export { FolderOfOthers } from "./own-folder.ts";

export interface Claim {
  /** Name of the marker file. */
  readonly marker: string;
  /** Content of the marker, for people who find it. */
  readonly text: string;
  /** A folder of ours from before there were markers has all of these names. */
  readonly formerNames: readonly string[];
}

/** Names in the top folder of a new file system: they do not count as content. */
const NOTHING = ["lost+found"];

/**
 * Makes the folder at the absolute path if it is missing, and claims it: from then on it is ours and owner-only.
 * Returns the folders it made, the highest first. Throws a FolderOfOthers or a system error. A process that dies in
 * between leaves an empty folder. Two processes at once may both claim it, because their claims are the same.
 */
export function claimFolder(path: string, claim: Claim): string[] {
  const made = makeOwnFolder(path);
  const owner = statSync(path).uid;
  if (owner !== process.getuid?.()) throw new FolderOfOthers(`it belongs to user ${owner}, and is for that user alone`);
  const names = readdirSync(path).filter((name) => !NOTHING.includes(name));
  const isOurs = names.includes(claim.marker);
  const wasOurs = claim.formerNames.every((name) => names.includes(name));
  if (names.length > 0 && !isOurs && !wasOurs) {
    const count = names.length === 1 ? `"${names[0]}"` : `${names.length} entries`;
    throw new FolderOfOthers(
      `it holds ${count} and no file "${claim.marker}", so it may be somebody's; give a new or an empty folder`,
    );
  }
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o700);
  if (!isOurs) writeFileSync(join(path, claim.marker), `${claim.text}\n`, { mode: 0o600 });
  return made;
}

/** True if a claimed folder contains nothing but these names. */
export function isUnused(path: string, claim: Claim, besides: readonly string[]): boolean {
  return readdirSync(path).every((name) => [...NOTHING, claim.marker, ...besides].includes(name));
}

/** Removes everything in an unused folder, and the folders that were made for it. */
export function unclaimFolder(path: string, made: readonly string[]): void {
  for (const name of readdirSync(path)) {
    if (!NOTHING.includes(name)) rmSync(join(path, name), { recursive: true, force: true });
  }
  unmakeFolders(made);
}
