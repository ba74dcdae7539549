/**
 * The kernel's list of mounts, /proc/self/mountinfo. Reading it sends no request to a mount, so it works while a mount
 * hangs. It knows nothing of daemons.
 */
import { readFileSync } from "node:fs";

/** The type of our mounts in the list. */
export const OUR_TYPE = "fuse.wsfs";

export interface MountEntry {
  /** The kernel's number of this mount: "mnt_id" in /proc/PID/fdinfo. */
  readonly id: number;
  /** For a FUSE mount: the number of its connection (the minor device number). */
  readonly connection: number;
  readonly mountpoint: string;
  readonly type: string;
  readonly source: string;
  readonly superOptions: string;
}

const LINE = /^(\d+) \d+ \d+:(\d+) \S+ (\S+) \S+ (?:\S+ )*?- (\S+) (\S+) (\S+)$/;

/**
 * In the order of the list: of two mounts at one place, the later one covers the earlier. Lines of another form are
 * left out.
 */
export function parseMountTable(text: string): MountEntry[] {
  const entries: MountEntry[] = [];
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (match === null) continue;
    const [, id = "", minor = "", mountpoint = "", type = "", source = "", superOptions = ""] = match;
    entries.push({
      id: Number(id),
      connection: Number(minor),
      mountpoint: unescapeOctal(mountpoint),
      type,
      source: unescapeOctal(source),
      superOptions,
    });
  }
  return entries;
}

/** The list writes blank, tab, newline, backslash and "#" as three octal digits. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

export function readMountTable(): MountEntry[] {
  return parseMountTable(readFileSync("/proc/self/mountinfo", "utf8"));
}

/** The mount that is visible at exactly this path. */
export function mountAt(table: readonly MountEntry[], path: string): MountEntry | undefined {
  return table.findLast((entry) => entry.mountpoint === path);
}

export function isOurs(entry: MountEntry | undefined): entry is MountEntry {
  return entry?.type === OUR_TYPE;
}

/** The user who mounted. Only that user gets in, unless others are allowed. */
export function mountedBy({ superOptions }: Pick<MountEntry, "superOptions">): { uid: number; gid: number } {
  const number = (name: string) => Number(new RegExp(`(?:^|,)${name}=(\\d+)`).exec(superOptions)?.[1] ?? 0);
  return { uid: number("user_id"), gid: number("group_id") };
}

/** All mounts of one connection: the mount itself and its copies (mount --bind). */
export function mountsOf(table: readonly MountEntry[], connection: number): MountEntry[] {
  return table.filter((entry) => isOurs(entry) && entry.connection === connection);
}
