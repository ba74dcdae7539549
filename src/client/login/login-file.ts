/**
 * A saved login: an owner-only file with the refresh token of a sign-in, or a file that points to the system keyring.
 * Several programs use it at once, and each use replaces the token. So a program holds a lock beside the file while it
 * uses the login, and reads the file again. The file is whole or missing.
 */
import { constants } from "node:fs";
import { mkdir, open, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { RemoteError } from "../errors.ts";
import type { Keyring } from "../keyring.ts";
import { endpoints } from "./authorization.ts";

const login = z.object({
  server: endpoints,
  refreshToken: z.string().min(1),
  /** The approved scopes, separated by spaces. */
  scope: z.string(),
  account: z.object({ id: z.string(), name: z.string() }).nullable(),
  signedInAt: z.iso.datetime(),
});
export type Login = z.infer<typeof login>;

/** The store of the token. In the keyring, its name is the path of the file. */
const STORES = ["file", "keyring"] as const;
export type Store = (typeof STORES)[number];

/** The content of the file, or of the keyring's secret. */
const whole = login.extend({ version: z.literal(1) });
/** The content of the file when the login is in the keyring. */
const pointer = z.strictObject({ version: z.literal(1), store: z.literal("keyring") });

/** Undefined: there is no login. Rejects with a RemoteError "unauthorized" when it cannot be read. */
export async function readLogin(path: string, keyring: Keyring): Promise<(Login & { store: Store }) | undefined> {
  const text = await readOwnFile(path);
  if (text === undefined) return undefined;
  const read = pointerOrLogin(path, text);
  if (read !== "keyring") return { ...read, store: "file" };
  const secret = await keyring.get(path);
  return secret === undefined
    ? undefined
    : { ...parsed(`${path}, in the system keyring`, whole, secret), store: "keyring" };
}

/** The store of a login. Undefined: there is none, or none that can be read. */
export async function storeOf(path: string): Promise<Store | undefined> {
  try {
    const text = await readOwnFile(path);
    return text === undefined ? undefined : pointerOrLogin(path, text) === "keyring" ? "keyring" : "file";
  } catch {
    return undefined;
  }
}

function pointerOrLogin(path: string, text: string): z.infer<typeof whole> | "keyring" {
  const read = parsed(path, z.union([pointer, whole]), text);
  return "store" in read ? "keyring" : read;
}

async function readOwnFile(path: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (isMissing(cause)) return undefined;
    throw unreadable(path, cause);
  }
  const { mode } = await stat(path);
  if ((mode & 0o077) === 0) return text;
  throw new RemoteError("unauthorized", `${path}: others may read this login; "chmod 600" it, or sign in anew`);
}

function parsed<T>(where: string, schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new RemoteError("unauthorized", `${where}: not a login of this program; sign in anew`, { cause });
  }
}

/** Resolves when the login is on the disk or in the keyring. The token that it replaces is already used up. */
export async function writeLogin(path: string, made: Login, store: Store, keyring: Keyring): Promise<void> {
  const { server, refreshToken, scope, account, signedInAt } = made;
  const all = { version: 1, server, refreshToken, scope, account, signedInAt };
  if (store === "file") return writeOwnFile(path, all);
  await keyring.set(path, JSON.stringify(all));
  // Written even if it is there: a program that waits for another sign-in looks at the file.
  await writeOwnFile(path, { version: 1, store });
}

async function writeOwnFile(path: string, content: object): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const beside = `${path}.${process.pid}.new`;
  const file = await open(beside, constants.O_CREAT | constants.O_TRUNC | constants.O_WRONLY, 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(`${JSON.stringify(content, undefined, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(beside, path);
}

export async function removeLogin(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
}

/** No holder needs the lock for longer than this, so an older lock was left behind. */
const LOCK_AGE_MS = 60_000;
const LOCK_POLL_MS = 50;

/**
 * Runs `work` while no other program uses this login. The lock of a program that died is removed. Two programs may
 * remove it at once and both go on: the gateway then gives both the same new token
 * (gateway/sign-in/refresh-rotation.ts), so nothing is lost. Rejects with a RemoteError "unauthorized" when the lock
 * cannot be made.
 */
export async function withLoginLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  for (;;) {
    try {
      const file = await open(lock, "wx", 0o600);
      await file.writeFile(`${process.pid}`);
      await file.close();
      break;
    } catch (error) {
      if (!hasCode(error, "EEXIST")) throw unreadable(lock, error);
      if (await isAbandoned(lock)) await unlink(lock).catch(() => {});
      else await pause(LOCK_POLL_MS);
    }
  }
  try {
    return await work();
  } finally {
    await unlink(lock).catch(() => {});
  }
}

async function isAbandoned(lock: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(lock);
    if (Date.now() - mtimeMs > LOCK_AGE_MS) return true;
    const holder = Number(await readFile(lock, "utf8"));
    // Empty: its holder has not written yet.
    if (!Number.isSafeInteger(holder) || holder <= 0) return false;
    process.kill(holder, 0);
    return false;
  } catch (error) {
    return hasCode(error, "ESRCH");
  }
}

/** The file's identity, which changes with each sign-in and each refresh. Undefined: there is no file. */
export async function loginIdentity(path: string): Promise<string | undefined> {
  try {
    const { mtimeNs, ino, size } = await stat(path, { bigint: true });
    return `${mtimeNs} ${ino} ${size}`;
  } catch {
    return undefined;
  }
}

const hasCode = (error: unknown, code: string) => error instanceof Error && "code" in error && error.code === code;
const isMissing = (error: unknown) => hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR");

function unreadable(path: string, cause: unknown): RemoteError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new RemoteError("unauthorized", `${path}: ${reason}`, { cause });
}
