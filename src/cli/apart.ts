/**
 * Checks that the mountpoint and the folders that the mount needs do not lie in each other: the mount would hide such a
 * folder, or contain it.
 */
import { readMountTable } from "../daemon/mount-table.ts";
import { Failure } from "./failure.ts";
import { findPlace } from "./mountpoint.ts";

/** `what`: the name of the folder in messages, such as "--state-dir d". */
export interface OwnFolder {
  readonly what: string;
  readonly path: string;
}

/** Throws a Failure. */
export function checkApart(dir: string, folders: readonly OwnFolder[]): void {
  const table = readMountTable();
  const mountpoint = findPlace(dir, table).path;
  for (const { what, path } of folders) {
    const place = findPlace(path, table);
    if (place.is === "ourMount" || place.is === "insideOurMount") {
      throw new Failure(`${what} lies inside the mount at ${place.mount.mountpoint}; choose a folder outside of it`);
    }
    const choose = `choose folders that do not lie in each other`;
    if (place.path === mountpoint) throw new Failure(`${what} is the folder to mount on; ${choose}`);
    if (isBelow(place.path, mountpoint))
      throw new Failure(`${what} lies inside ${dir}, which would hide it; ${choose}`);
    if (isBelow(mountpoint, place.path)) throw new Failure(`${dir} lies inside ${what}; ${choose}`);
  }
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder === "/" ? folder : `${folder}/`);
}
