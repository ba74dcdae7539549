/**
 * Where running daemons are found: one owner-only folder that does not outlive the machine's
 * uptime, and in it, by the daemon's process id N, N.sock (control) and N.json (who serves what). Not
 * by the number of the mount's connection: the next mount gets that while this daemon still finishes.
 * No secret stands there.
 */
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { FolderOfOthers, makeOwnFolder } from "../lib/own-folder.ts";
import { hasCode } from "../lib/system-error.ts";
import { isAlive, processIdentity } from "./processes.ts";

/** A record names some paths and numbers. */
const RECORD_MAX_BYTES = 256 * 1024;
/** So often a folder is listed while daemons follow on each other in it; whoever makes them come and go without end is not waited for. */
const LISTS_MAX = 100;

export const mountRecord = z.object({
  /** Of the mount, for as long as there is one. */
  connection: z.number().int(),
  /** The connection is over, and the daemon finishes what came of it. */
  isOver: z.boolean().optional(),
  /** Of the mount, whichever daemon serves it. */
  mountId: z.string().optional(),
  /** Where it was mounted. */
  mountpoint: z.string(),
  daemon: processIdentity,
  supervisor: processIdentity,
  stateDir: z.string(),
  baseUrl: z.string(),
  /** How the gateway of `wsfs start` is reached. */
  gatewaySocket: z.string().optional(),
  workspace: z.object({ id: z.string(), name: z.string() }),
  /** The `wsfs reload` that this daemon came by. */
  reload: z
    .object({
      id: z.string(),
      /** How long programs waited. */
      waitedMs: z.number(),
      /** It has changed the database of an earlier release. */
      isMigrated: z.boolean().optional(),
      /** Why it has the settings of before. */
      failed: z.string().optional(),
    })
    .optional(),
});
export type MountRecord = z.infer<typeof mountRecord>;

export function recordPath(folder: string, pid: number): string {
  return join(folder, `${pid}.json`);
}

export function socketPath(folder: string, pid: number): string {
  return join(folder, `${pid}.sock`);
}

/** Where a daemon can be asked, and the user whose process it has to be. */
export interface DaemonSocket {
  readonly path: string;
  readonly owner: number;
}

export function daemonSocket(folder: string, pid: number, owner = process.getuid?.() ?? 0): DaemonSocket {
  return { path: socketPath(folder, pid), owner };
}

/**
 * Makes the folder, mode 0700, and clears away what killed daemons left in it. Throws with one clear line when it is not ours
 * alone. Answers the folders it made, the highest first.
 */
export function makeRuntimeFolder(folder: string): string[] {
  const made = makeIt(folder);
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) {
    throw new Error(`the runtime folder ${folder} must be a folder of yours; it belongs to user ${stat.uid}`);
  }
  if ((stat.mode & 0o077) !== 0) chmodSync(folder, 0o700);
  for (const record of listRecords(folder)) {
    if (!isServed(record)) removeRecord(folder, record.daemon.pid);
  }
  return made;
}

function makeIt(folder: string): string[] {
  try {
    return makeOwnFolder(folder);
  } catch (cause) {
    if (!(cause instanceof FolderOfOthers)) throw cause;
    throw new Error(`the runtime folder ${folder} cannot be made: ${cause.message}`, { cause });
  }
}

export function writeRecord(folder: string, record: MountRecord): void {
  const path = recordPath(folder, record.daemon.pid);
  writeFileSync(`${path}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Of a daemon that took over: those before it are dead, though their supervisor is not. */
export function removePredecessors(folder: string, { mountId, daemon }: MountRecord): void {
  for (const record of listRecords(folder)) {
    if (record.mountId === mountId && record.daemon.pid !== daemon.pid) removeRecord(folder, record.daemon.pid);
  }
}

/** Where a mount that is taken over has its state. */
export function stateDirOf(folder: string, mountId: string): string | undefined {
  return listRecords(folder).find((record) => record.mountId === mountId)?.stateDir;
}

/** Undefined when there is none, or none that can be read. */
export function readRecord(folder: string, pid: number): MountRecord | undefined {
  const record = lookAtRecord(folder, pid);
  return record === "gone" ? undefined : record;
}

function lookAtRecord(folder: string, pid: number): MountRecord | "gone" | undefined {
  try {
    return mountRecord.parse(JSON.parse(readShortFile(recordPath(folder, pid))));
  } catch (error) {
    return hasCode(error, "ENOENT") ? "gone" : undefined;
  }
}

/** Root reads users' folders, too, where anything may lie that would be waited for, or never ends. */
function readShortFile(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.size > RECORD_MAX_BYTES) throw new Error(`${path} is no record of a mount`);
    // Not to its end, which its owner may put off for as long as it is read.
    const bytes = Buffer.alloc(stat.size);
    return bytes.toString("utf8", 0, readSync(descriptor, bytes));
  } finally {
    closeSync(descriptor);
  }
}

/** Whether commands find it. */
export function isRecorded(folder: string, pid: number): boolean {
  const socket = lstatSync(socketPath(folder, pid), { throwIfNoEntry: false });
  return existsSync(recordPath(folder, pid)) && socket?.isSocket() === true;
}

/** No error when they are not there. */
export function removeRecord(folder: string, pid: number): void {
  rmSync(recordPath(folder, pid), { force: true });
  rmSync(socketPath(folder, pid), { force: true });
}

/** Whether anybody still serves the mount or looks after it. */
export function isServed(record: MountRecord): boolean {
  return isAlive(record.daemon) || isAlive(record.supervisor);
}

/** Records of the mounts that are served now. */
export function listServed(folder: string): MountRecord[] {
  return listRecords(folder).filter(isServed);
}

function listRecords(folder: string): MountRecord[] {
  for (let left = LISTS_MAX; ; left -= 1) {
    let names: string[];
    try {
      names = readdirSync(folder);
    } catch {
      return [];
    }
    const pids = names.flatMap((name) => /^(\d+)\.json$/.exec(name)?.[1] ?? []).map(Number);
    const records = pids.map((pid) => lookAtRecord(folder, pid));
    // One that is gone by now may have been followed by one that was not there yet when the folder was listed.
    if (left === 0 || !records.includes("gone")) return records.filter((record) => typeof record === "object");
  }
}
