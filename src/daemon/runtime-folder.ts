/**
 * The folder in which commands find running daemons. It is owner-only and does not outlive the uptime of the machine.
 * For a daemon with process id N it has N.sock (control) and N.json (the record of its mount). The files are not named
 * by the connection's number, because the next mount may get that number while this daemon still finishes. They contain
 * no secret.
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

/** A record contains a few paths and numbers. */
const RECORD_MAX_BYTES = 256 * 1024;
/**
 * The number of times that a folder is listed again while daemons replace each other in it. Daemons that come and go
 * without end must not block a command.
 */
const LISTS_MAX = 100;

const mountRecord = z.object({
  /** The mount's connection, while the mount exists. */
  connection: z.number().int(),
  /** The connection is over, and the daemon finishes the work that came from it. */
  isOver: z.boolean().optional(),
  /** The id of the mount, the same for every daemon that serves it. */
  mountId: z.string().optional(),
  /** The folder on which it was mounted. */
  mountpoint: z.string(),
  daemon: processIdentity,
  supervisor: processIdentity,
  stateDir: z.string(),
  baseUrl: z.string(),
  /** The Unix socket of the gateway of `wsfs start`. */
  gatewaySocket: z.string().optional(),
  workspace: z.object({ id: z.string(), name: z.string() }),
  /** Node id of the folder that is mounted; absent: all of the workspace. */
  folder: z.string().optional(),
  /** The moment (ISO 8601, UTC) that is shown; absent: now. */
  at: z.string().optional(),
  /** The `wsfs reload` that started this daemon. */
  reload: z
    .object({
      id: z.string(),
      /** The time that requests of programs waited, milliseconds. */
      waitedMs: z.number(),
      /** This daemon has migrated the database of an earlier release. */
      isMigrated: z.boolean().optional(),
      /** The reason why the reload failed. This daemon then has the settings from before. */
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

/** The control socket of a daemon, and the user whose process must listen there. */
export interface DaemonSocket {
  readonly path: string;
  readonly owner: number;
}

export function daemonSocket(folder: string, pid: number, owner = process.getuid?.() ?? 0): DaemonSocket {
  return { path: socketPath(folder, pid), owner };
}

/**
 * Makes the folder, mode 0700, and removes the files of killed daemons in it. Returns the folders it made, the highest
 * first. Throws an Error of one line when the folder does not belong to this user alone.
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

/** For a daemon that took over: the daemons before it are dead, but isServed is true while their supervisor lives. */
export function removePredecessors(folder: string, { mountId, daemon }: MountRecord): void {
  for (const record of listRecords(folder)) {
    if (record.mountId === mountId && record.daemon.pid !== daemon.pid) removeRecord(folder, record.daemon.pid);
  }
}

/** The state dir of a mount that is taken over. */
export function stateDirOf(folder: string, mountId: string): string | undefined {
  return listRecords(folder).find((record) => record.mountId === mountId)?.stateDir;
}

/** Undefined when there is no readable record. */
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

/** Root also reads folders of users. A file there may block a reader (a pipe) or never end. */
function readShortFile(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.size > RECORD_MAX_BYTES) throw new Error(`${path} is no record of a mount`);
    // Reads only the size seen before: the owner could make the file grow for as long as it is read.
    const bytes = Buffer.alloc(stat.size);
    return bytes.toString("utf8", 0, readSync(descriptor, bytes));
  } finally {
    closeSync(descriptor);
  }
}

/** True if commands can find the daemon. */
export function isRecorded(folder: string, pid: number): boolean {
  const socket = lstatSync(socketPath(folder, pid), { throwIfNoEntry: false });
  return existsSync(recordPath(folder, pid)) && socket?.isSocket() === true;
}

/** No error when the files are missing. */
export function removeRecord(folder: string, pid: number): void {
  rmSync(recordPath(folder, pid), { force: true });
  rmSync(socketPath(folder, pid), { force: true });
}

/** True if the mount's daemon or its supervisor is alive. */
function isServed(record: MountRecord): boolean {
  return isAlive(record.daemon) || isAlive(record.supervisor);
}

/** The records of all mounts that are served now. */
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
    // A record may have been replaced by one that was not there yet when the folder was listed.
    if (left === 0 || !records.includes("gone")) return records.filter((record) => typeof record === "object");
  }
}
