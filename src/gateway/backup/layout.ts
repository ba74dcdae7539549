/**
 * A folder of backups. Each backup is a folder named after its moment, with a data folder's store, accounts, secrets
 * and blobs, and with `backup.json` when it is whole and verified. Until then its name ends in ".unfinished".
 */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { Claim } from "../../lib/claim-folder.ts";
import { hasCode } from "../../lib/system-error.ts";

export const UNFINISHED = ".unfinished";

export const BACKUPS: Claim = {
  marker: "wsfs-backups",
  text: "Backups of a local gateway of wsfs, a folder for each. Any of them may be removed: none needs another.",
  formerNames: ["wsfs-backups"],
};

const manifest = z.object({
  format: z.literal(1),
  createdAt: z.string(),
  /** The last change in the store. */
  position: z.number(),
});
export type Manifest = z.infer<typeof manifest>;

export const manifestPath = (backup: string) => path.join(backup, "backup.json");

/** Undefined: it is not a complete backup. Rejects with an Error if `backup.json` is damaged. */
export async function readManifest(backup: string): Promise<Manifest | undefined> {
  try {
    return manifest.parse(JSON.parse(await readFile(manifestPath(backup), "utf8")));
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw new Error(`${manifestPath(backup)} is not the description of a backup`, { cause: error });
  }
}

/** The newest complete backup. A folder that we have not named is none. */
export async function newestBackup(folder: string): Promise<string | undefined> {
  const names = (await readdir(folder)).filter((name) => !name.endsWith(UNFINISHED)).sort();
  for (const name of names.reverse()) {
    if ((await readManifest(path.join(folder, name))) !== undefined) return path.join(folder, name);
  }
  return undefined;
}
