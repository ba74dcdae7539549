/**
 * The folder in which a gateway keeps everything: database, blobs, signing key, lock. Only its owner may use it. An
 * open SQLite database holds the lock, so that it ends with the process however that dies.
 */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, readFile, rename } from "node:fs/promises";
import path from "node:path";
import { openSqlite, SqliteError } from "../lib/sqlite/index.ts";

const KEY_BYTES = 32;

export const databasePath = (folder: string) => path.join(folder, "gateway.db");
export const blobFolder = (folder: string) => path.join(folder, "blobs");
/** For executions: the folders that they run in, and their logs. */
export const executionFolders = (folder: string) => ({
  work: path.join(folder, "executions", "work"),
  logs: path.join(folder, "executions", "logs"),
});
export const keyPath = (folder: string) => path.join(folder, "signing-key");

export async function makeDataFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
}

/** Held until `release`. Throws an Error if another gateway serves the folder. */
export function lockDataFolder(folder: string): Lock {
  const lock = lockWhole(path.join(folder, "lock.db"));
  if (lock === undefined) throw new Error(`Another gateway is serving the data folder ${folder}.`);
  return lock;
}

/** A lock that ends with its process, however that dies. */
interface Lock {
  release(): void;
}

/** Takes the lock of an empty SQLite database. Undefined: another process has it or a share of it. */
export function lockWhole(file: string): Lock | undefined {
  const lock = openSqlite(file, { timeout: 0 });
  try {
    lock.pragma("locking_mode = EXCLUSIVE");
    lock.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
  return { release: () => void lock.close() };
}

const isBusy = (error: unknown) => error instanceof SqliteError && error.code.startsWith("SQLITE_BUSY");

const holdPath = (folder: string) => path.join(folder, "hold.db");

/**
 * Until `release`, no process removes blobs from the folder, so that a backup finds every blob in its rows. Backups
 * share it.
 */
export function holdBlobs(folder: string): Lock {
  const hold = openSqlite(holdPath(folder));
  // A reader's lock, kept by its transaction.
  hold.exec("BEGIN");
  hold.prepare("SELECT count(*) FROM sqlite_master").get();
  return { release: () => void hold.close() };
}

export interface HoldCheck {
  isHeld(): boolean;
  close(): void;
}

/** Checks at any time whether a process holds the folder's blobs. */
export function checkHold(folder: string): HoldCheck {
  const hold = openSqlite(holdPath(folder), { timeout: 0 });
  const begin = hold.prepare("BEGIN EXCLUSIVE");
  const end = hold.prepare("ROLLBACK");
  return {
    isHeld() {
      try {
        begin.run();
        end.run();
        return false;
      } catch (error) {
        if (isBusy(error)) return true;
        throw error;
      }
    },
    close: () => void hold.close(),
  };
}

function checkedKey(folder: string, key: Buffer): Buffer {
  if (key.length === KEY_BYTES) return key;
  throw new Error(`${keyPath(folder)} has ${key.length} bytes, expected a signing key of ${KEY_BYTES}.`);
}

/** The key that signs access tokens. Undefined when the folder has none. */
export async function readSigningKey(folder: string): Promise<Buffer | undefined> {
  try {
    return checkedKey(folder, await readFile(keyPath(folder)));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The key, made when there is none. It is whole or missing, however the process ends. */
export async function ensureSigningKey(folder: string): Promise<Buffer> {
  const existing = await readSigningKey(folder);
  if (existing !== undefined) {
    // A reader of the key can make tokens. A copy or a restore may have opened it to others.
    await chmod(keyPath(folder), 0o600);
    return existing;
  }
  const key = randomBytes(KEY_BYTES);
  const temporary = `${keyPath(folder)}.new`;
  const file = await open(temporary, "w", 0o600);
  try {
    await file.writeFile(key);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, keyPath(folder));
  return key;
}
