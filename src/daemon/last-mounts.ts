/**
 * Remembers where each state dir was mounted last. So commands find unsent changes of a folder while nothing is mounted
 * there. There is one small file for each state dir, in a folder beside the state dirs.
 */
import { createHash } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Logger } from "../lib/log.ts";
import { makeOwnFolder } from "../lib/own-folder.ts";

const lastMount = z.object({
  mountpoint: z.string(),
  stateDir: z.string(),
  workspace: z.string(),
  /** As --path named the folder. */
  path: z.string().optional(),
});
export type LastMount = z.infer<typeof lastMount>;

const folderOf = (stateHome: string) => join(stateHome, "last-mounts");

/** A failure is only logged: the mount goes on without the note. */
export function noteMount(stateHome: string, mount: LastMount, log: Logger): void {
  try {
    note(stateHome, mount);
  } catch (error) {
    log.info({ err: error }, "the note of where this state dir is mounted could not be written");
  }
}

/** Writes the note of a mount, and removes the notes of state dirs that no longer exist. */
function note(stateHome: string, mount: LastMount): void {
  const folder = folderOf(stateHome);
  makeOwnFolder(folder);
  if (!isOwn(folder)) return;
  for (const [path, { stateDir }] of listMounts(folder)) if (!existsSync(stateDir)) rmSync(path, { force: true });
  const path = join(folder, `${createHash("sha256").update(mount.stateDir).digest("hex").slice(0, 32)}.json`);
  writeFileSync(`${path}.new`, `${JSON.stringify(mount)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** The mounts that were last at this folder, of all state dirs that still exist. */
export function lastMountsAt(stateHome: string, mountpoint: string): LastMount[] {
  const folder = folderOf(stateHome);
  if (!isOwn(folder)) return [];
  return listMounts(folder)
    .map(([, mount]) => mount)
    .filter((mount) => mount.mountpoint === mountpoint && existsSync(mount.stateDir));
}

function isOwn(folder: string): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  return stat?.isDirectory() === true && stat.uid === process.getuid?.();
}

function listMounts(folder: string): [path: string, mount: LastMount][] {
  return readdirSync(folder).flatMap((name): [string, LastMount][] => {
    const path = join(folder, name);
    const mount = name.endsWith(".json") ? readMount(path) : undefined;
    return mount === undefined ? [] : [[path, mount]];
  });
}

/** Undefined when there is no readable note. */
function readMount(path: string): LastMount | undefined {
  try {
    return lastMount.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
