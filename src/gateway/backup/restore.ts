/** Turns a backup into a data folder: it is made beside its place, verified, and renamed when it is complete. */
import { existsSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import type { Clock } from "../../lib/runtime.ts";
import { openSqlite } from "../../lib/sqlite/index.ts";
import { hasCode } from "../../lib/system-error.ts";
import { accountsPath, passwordPath } from "../accounts/index.ts";
import { blobFolder, databasePath, keyPath } from "../data-folder.ts";
import { contentsOf } from "./contents.ts";
import { blobTaker, copyWhole, syncPath, type Taken } from "./copy-files.ts";
import { newestBackup, readManifest } from "./layout.ts";
import { type Verified, verifyCopy } from "./verify.ts";

interface RestoreReport extends Verified, Taken {
  readonly backup: string;
  readonly createdAt: string;
  readonly position: number;
}

interface RestoreOptions {
  /** A backup, or a folder of backups, of which the newest is taken. */
  readonly from: string;
  /** Must be missing or empty. */
  readonly dataDir: string;
  /** Makes an empty data folder at a path. */
  readonly claim: (folder: string) => void;
  readonly isThorough: boolean;
  readonly clock: Pick<Clock, "step">;
}

/**
 * Rejects with an Error if there is no complete backup, if the data folder is not empty, or if the copy is incomplete.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { from, dataDir, claim, isThorough, clock } = options;
  const isOne = (await readManifest(from)) !== undefined;
  const backup = isOne ? from : await newestBackup(from);
  const manifest = backup === undefined ? undefined : await readManifest(backup);
  if (backup === undefined || manifest === undefined) throw new Error(`${from} holds no backup that is whole`);
  const names = await readdir(dataDir).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  });
  if (names.length > 0) throw new Error(`${dataDir} is not empty: a backup is restored into a new or an empty folder`);
  const beside = `${dataDir}.restoring`;
  if (existsSync(beside)) throw new Error(`${beside} is there, left by a restore that did not end: remove it first`);
  try {
    claim(beside);
    for (const file of [databasePath, accountsPath, keyPath]) await copyWhole(file(backup), file(beside));
    await copyWhole(passwordPath(backup), passwordPath(beside)).catch((error: unknown) => {
      if (!hasCode(error, "ENOENT")) throw error;
    });
    const database = openSqlite(databasePath(beside), { readonly: true });
    const { take, taken } = blobTaker([blobFolder(backup)], blobFolder(beside));
    try {
      for (const { blob } of contentsOf(database)) if (blob !== null) await take(blob);
    } finally {
      database.close();
    }
    const verified = await verifyCopy(beside, isThorough);
    await syncPath(beside);
    clock.step("restore: verified");
    await rename(beside, dataDir);
    await syncPath(path.dirname(dataDir));
    return { backup, createdAt: manifest.createdAt, position: manifest.position, ...taken, ...verified };
  } catch (error) {
    await rm(beside, { recursive: true, force: true });
    throw error;
  }
}
