/**
 * Classifies a path on the command line: folder, mount, inside a mount, missing. No wsfs mount is asked, because one
 * that hangs would block the command. The path is resolved name by name, and never through a mount of ours.
 */
import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { isOurs, type MountEntry, mountAt } from "../daemon/mount-table.ts";
import { EXIT, Failure } from "./failure.ts";
import { workingFolder } from "./working-folder.ts";

/** `path`: absolute with links resolved, except for the part that lies inside a mount or does not exist. */
export type Place =
  | { readonly is: "ourMount"; readonly path: string; readonly mount: MountEntry }
  | { readonly is: "insideOurMount"; readonly path: string; readonly mount: MountEntry }
  | { readonly is: "nothing"; readonly path: string }
  | { readonly is: "folder"; readonly path: string }
  | { readonly is: "otherFile"; readonly path: string };

const LINKS_MAX = 40;

export function findPlace(dir: string, table: readonly MountEntry[], folder?: string): Place {
  let pending = isAbsolute(dir) ? partsOf(dir) : [...partsOf(folder ?? workingFolder()), ...partsOf(dir)];
  let current = "/";
  let links = 0;
  let folderReached = true;
  while (pending.length > 0) {
    const [name = "", ...rest] = pending;
    pending = rest;
    if (name === "..") {
      current = dirname(current);
      continue;
    }
    const path = join(current, name);
    const mount = mountAt(table, path);
    if (isOurs(mount)) {
      const whole = normalize(join(path, ...rest)).replace(/(?<=.)\/$/, "");
      if (whole === path) return { is: "ourMount", path, mount };
      if (whole.startsWith(`${path}/`)) return { is: "insideOurMount", path: whole, mount };
      // The path leads out of the mount again.
      pending = partsOf(whole);
      current = "/";
      continue;
    }
    const stat = lstat(path);
    if (stat === undefined) return { is: "nothing", path: join(path, ...rest) };
    if (stat.isSymbolicLink()) {
      links += 1;
      if (links > LINKS_MAX) throw new Failure(`${dir}: too many symbolic links`);
      const target = readlinkSync(path);
      if (isAbsolute(target)) current = "/";
      pending = [...partsOf(target), ...rest];
      continue;
    }
    current = path;
    folderReached = stat.isDirectory();
  }
  return { is: folderReached ? "folder" : "otherFile", path: current };
}

/** Names and "..". A ".." is kept, because the names before it must be resolved first: they may be links. */
function partsOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

function lstat(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOTDIR") return undefined;
    throw new Failure(`${path} cannot be looked at (${code})`, EXIT.failure, { cause });
  }
}

/** Refuses a folder that nothing can be mounted on. The caller checks for mounts of ours before. Throws a Failure. */
export function checkMountpoint(dir: string, place: Place, table: readonly MountEntry[]): void {
  if (place.is === "nothing") throw new Failure(`${dir} is not there; make the folder first: mkdir -p ${dir}`);
  if (place.is === "otherFile") throw new Failure(`${dir} is not a folder`);
  if (place.is === "insideOurMount") {
    throw new Failure(`${dir} lies inside the mount at ${place.mount.mountpoint}; choose a folder outside of it`);
  }
  const other = mountAt(table, place.path);
  if (other !== undefined) throw new Failure(`${dir} is already a mount (of type ${other.type})`);
  let names: string[];
  try {
    names = readdirSync(place.path);
  } catch (cause) {
    throw new Failure(`${dir} cannot be read (${(cause as NodeJS.ErrnoException).code})`, EXIT.failure, { cause });
  }
  if (names.length > 0) {
    throw new Failure(
      `${dir} is not empty (${names.length === 1 ? "1 entry" : `${names.length} entries`}); choose an empty folder`,
    );
  }
}
