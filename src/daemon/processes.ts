/**
 * Processes by number: whether one still lives, and which ones use a mount. Only links and text of /proc are read. That
 * sends no request to a mount, so it works while a mount hangs.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { z } from "zod";
import type { MountEntry } from "./mount-table.ts";

/** Identifies a process for good: process ids are used again, an id with its start time is not. */
export const processIdentity = z.object({ pid: z.number().int().positive(), startTime: z.string() });
export type ProcessIdentity = z.infer<typeof processIdentity>;

/** Undefined when there is no such process, or when it has ended and only waits for its parent. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined;
  }
  // The name in brackets may contain anything, also brackets. The fields follow the last bracket.
  const [state, ...fields] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const startTime = fields[18];
  if (state === "Z" || state === "X" || startTime === undefined) return undefined;
  return { pid, startTime };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startTime === identity.startTime;
}

export function isSame(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.pid === other.pid && one.startTime === other.startTime;
}

/** The user who runs the process. Undefined when there is no such process. */
export function userOf(pid: number): number | undefined {
  const uid = /^Uid:\s+(\d+)/m.exec(readText(`/proc/${pid}/status`))?.[1];
  return uid === undefined ? undefined : Number(uid);
}

export interface MountUser {
  readonly pid: number;
  readonly command: string;
  /** The first use that was found, such as "current folder /mnt/a" or "open file /mnt/a/b". */
  readonly use: string;
}

/** The processes that use something at or below `mountpoint`, of those this user may look at. */
export function usersOf(mountpoint: string): MountUser[] {
  const users: MountUser[] = [];
  for (const name of readFolder("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const use = useOf(`/proc/${name}`, mountpoint);
    if (use !== undefined) users.push({ pid, command: commandOf(`/proc/${name}`), use });
  }
  return users;
}

export interface FileWriter {
  readonly inode: number;
  readonly pid: number;
  readonly command: string;
}

/**
 * The processes that have files of these mounts open or mapped for writing, of those this user may look at. `inodes`
 * are st_ino.
 */
export function writersOf(mounts: readonly MountEntry[], inodes: ReadonlySet<number>): FileWriter[] {
  const writers: FileWriter[] = [];
  for (const name of inodes.size === 0 ? [] : readFolder("/proc")) {
    if (!Number.isInteger(Number(name))) continue;
    const folder = `/proc/${name}`;
    const found = [...openForWriting(folder, mounts), ...mappedForWriting(folder, mounts)];
    for (const inode of new Set(found)) {
      if (inodes.has(inode)) writers.push({ inode, pid: Number(name), command: commandOf(folder) });
    }
  }
  return writers;
}

const ACCESS_MODE = 0o3;

function openForWriting(folder: string, mounts: readonly MountEntry[]): number[] {
  return readFolder(`${folder}/fdinfo`).flatMap((descriptor) => {
    const text = readText(`${folder}/fdinfo/${descriptor}`);
    const [, flags = "0"] = /^flags:\s+(\d+)$/m.exec(text) ?? [];
    const mount = numberIn(/^mnt_id:\s+(\d+)$/m, text);
    const isOurs = mounts.some(({ id }) => id === mount);
    return isOurs && (Number.parseInt(flags, 8) & ACCESS_MODE) !== 0 ? [numberIn(/^ino:\s+(\d+)$/m, text)] : [];
  });
}

/** Fields: from, to, rights, offset, device (major:minor, hexadecimal), st_ino. */
const SHARED = /^\S+ .w.s \S+ [0-9a-f]+:([0-9a-f]+) (\d+) /gm;

function mappedForWriting(folder: string, mounts: readonly MountEntry[]): number[] {
  return [...readText(`${folder}/maps`).matchAll(SHARED)].flatMap(([, minor = "", inode]) =>
    mounts.some(({ connection }) => connection === Number.parseInt(minor, 16)) ? [Number(inode)] : [],
  );
}

const numberIn = (pattern: RegExp, text: string) => Number(pattern.exec(text)?.[1] ?? Number.NaN);

const LINKS = [
  ["cwd", "current folder"],
  ["root", "root folder"],
  ["exe", "program"],
] as const;

function useOf(folder: string, mountpoint: string): string | undefined {
  for (const [link, what] of LINKS) {
    const target = readLink(`${folder}/${link}`);
    if (isBelow(target, mountpoint)) return `${what} ${target}`;
  }
  for (const descriptor of readFolder(`${folder}/fd`)) {
    const target = readLink(`${folder}/fd/${descriptor}`);
    if (isBelow(target, mountpoint)) return `open file ${target}`;
  }
  for (const line of readText(`${folder}/maps`).split("\n")) {
    const slash = line.indexOf("/");
    const target = slash < 0 ? "" : line.slice(slash);
    if (isBelow(target, mountpoint)) return `mapped file ${target}`;
  }
  return undefined;
}

function isBelow(path: string, mountpoint: string): boolean {
  return path === mountpoint || path.startsWith(`${mountpoint}/`);
}

function commandOf(folder: string): string {
  return readText(`${folder}/comm`).trim() || "?";
}

// A process may end at any moment, or belong to another user. Then these find nothing.

function readFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
