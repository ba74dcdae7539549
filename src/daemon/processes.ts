/**
 * Processes by number: whether one still lives, and which ones use a mount. Reads only links and
 * text of /proc, which asks no file system, so it works on a mount that hangs.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { z } from "zod";

/** A process for good: numbers are used again, a number with its start time is not. */
export const processIdentity = z.object({ pid: z.number().int().positive(), startTime: z.string() });
export type ProcessIdentity = z.infer<typeof processIdentity>;

/** Undefined when there is no such process, or it has ended and only waits for its parent. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined;
  }
  // The name in brackets may hold anything, brackets included; the fields follow the last one.
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

/** Who started it; undefined when there is no such process. */
export function userOf(pid: number): number | undefined {
  const uid = /^Uid:\s+(\d+)/m.exec(readText(`/proc/${pid}/status`))?.[1];
  return uid === undefined ? undefined : Number(uid);
}

export interface MountUser {
  readonly pid: number;
  readonly command: string;
  /** The first thing found, such as "current folder /mnt/a" or "open file /mnt/a/b". */
  readonly use: string;
}

/** The processes (of those one may look at) that keep something at or below `mountpoint` in use. */
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

// A process may end, or be somebody else's, at any moment: nothing found is then the answer.

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
