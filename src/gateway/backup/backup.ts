/**
 * Backs up a data folder while its gateway serves it, or while none does. It is a process of its own and costs the
 * gateway nothing. SQLite copies the store as it is at one moment. Blobs never change, and none is removed during a
 * backup (`holdBlobs`). The hold comes before that copy, so that every blob in the copy exists.
 */
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { claimFolder } from "../../lib/claim-folder.ts";
import type { Clock } from "../../lib/runtime.ts";
import { openSqlite } from "../../lib/sqlite/index.ts";
import { hasCode } from "../../lib/system-error.ts";
import { accountsPath, passwordPath } from "../accounts/index.ts";
import { blobFolder, databasePath, holdBlobs, keyPath, lockWhole } from "../data-folder.ts";
import { contentsOf } from "./contents.ts";
import { blobTaker, copyWhole, syncPath, type Taken } from "./copy-files.ts";
import { BACKUPS, type Manifest, manifestPath, newestBackup, UNFINISHED } from "./layout.ts";
import { type Verified, verifyCopy } from "./verify.ts";

/** Pages that SQLite copies in one step. */
const STEP_PAGES = 1000;

interface BackupReport extends Verified, Taken {
  readonly backup: string;
  readonly position: number;
}

interface BackupOptions {
  readonly dataDir: string;
  /** The folder of backups; made when missing. */
  readonly folder: string;
  /** True if all bytes are hashed at the end. */
  readonly isThorough: boolean;
  readonly clock: Pick<Clock, "wallClock" | "step">;
}

/** Rejects with an Error if another backup into the folder is under way, or if the copy is incomplete. */
export async function makeBackup({ dataDir, folder, isThorough, clock }: BackupOptions): Promise<BackupReport> {
  claimFolder(folder, BACKUPS);
  const lock = lockWhole(path.join(folder, "lock.db"));
  if (lock === undefined) throw new Error(`another backup into ${folder} is under way`);
  try {
    const leftovers = (await readdir(folder)).filter((name) => name.endsWith(UNFINISHED));
    for (const name of leftovers) await rm(path.join(folder, name), { recursive: true, force: true });
    const createdAt = new Date(clock.wallClock()).toISOString();
    const backup = path.join(folder, createdAt.replaceAll(":", "."));
    const unfinished = `${backup}${UNFINISHED}`;
    try {
      const { position, taken } = await fill(unfinished, { dataDir, folder, clock });
      const verified = await verifyCopy(unfinished, isThorough);
      clock.step("backup: verified");
      const manifest: Manifest = { format: 1, createdAt, position };
      await writeFile(manifestPath(unfinished), `${JSON.stringify(manifest)}\n`, { mode: 0o600, flush: true });
      await syncPath(unfinished);
      await rename(unfinished, backup);
      await syncPath(folder);
      return { backup, position, ...taken, ...verified };
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      throw error;
    }
  } finally {
    lock.release();
  }
}

async function fill(
  unfinished: string,
  { dataDir, folder, clock }: Omit<BackupOptions, "isThorough">,
): Promise<{ readonly position: number; readonly taken: Taken }> {
  const previous = await newestBackup(folder);
  await mkdir(unfinished, { mode: 0o700 });
  await mkdir(blobFolder(unfinished), { mode: 0o700 });
  const hold = holdBlobs(dataDir);
  try {
    await copyDatabase(databasePath(dataDir), databasePath(unfinished));
    // Copied after the store: a role in a workspace exists before the workspace.
    await copyDatabase(accountsPath(dataDir), accountsPath(unfinished));
    await copyWhole(keyPath(dataDir), keyPath(unfinished));
    await copyWhole(passwordPath(dataDir), passwordPath(unfinished)).catch(isAbsent);
    clock.step("backup: rows copied");
    const database = openSqlite(databasePath(unfinished), { readonly: true });
    try {
      const others = previous === undefined ? [] : [blobFolder(previous)];
      const { take, taken } = blobTaker([blobFolder(dataDir), ...others], blobFolder(unfinished));
      for (const { blob } of contentsOf(database)) if (blob !== null) await take(blob);
      clock.step("backup: blobs taken");
      const position = database.prepare<[], number>("SELECT ifnull(max(position), 0) FROM change").pluck().get() ?? 0;
      return { position, taken };
    } finally {
      database.close();
    }
  } finally {
    hold.release();
  }
}

/** Copies the database as it is at one moment into one file. */
async function copyDatabase(from: string, to: string): Promise<void> {
  const source = openSqlite(from, { readonly: true, fileMustExist: true });
  try {
    // In a reader's transaction, commits of others are not seen and do not restart the copy.
    source.exec("BEGIN");
    source.prepare("SELECT count(*) FROM sqlite_master").get();
    await source.backup(to, { progress: () => STEP_PAGES });
  } finally {
    source.close();
  }
  const copy = openSqlite(to, { fileMustExist: true });
  copy.pragma("journal_mode = DELETE");
  copy.close();
  await syncPath(to);
}

function isAbsent(error: unknown): void {
  if (!hasCode(error, "ENOENT")) throw error;
}
