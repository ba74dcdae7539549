/**
 * The environment whose entry a mount follows: the file it stands in, and the settings that changes of it must not
 * touch.
 */
import { dirname } from "node:path";
import { readMountTable } from "../daemon/mount-table.ts";
import type { FollowedEntry } from "../daemon/settings.ts";
import { checkApart } from "./apart.ts";
import type { ChosenEnvironment } from "./environments.ts";
import { FLAGS, type Flag, type FlagName } from "./flags.ts";
import { findPlace } from "./mountpoint.ts";

export type FollowedFile = Omit<FollowedEntry, "fixed">;

/** Throws a Failure when the daemon of the mount at `dir` must not look at the file, because that lies in the mount. */
export function followedFile(dir: string, { name, file, seen }: ChosenEnvironment): FollowedFile {
  const { path } = findPlace(file, readMountTable());
  const folder = dirname(path);
  checkApart(dir, [{ what: `the folder of the configuration ${folder}`, path: folder }]);
  return { name, file: path, seen };
}

const settingOf = (name: FlagName) => {
  const { setting }: Flag = FLAGS[name];
  return setting;
};

/** The settings of a mount that these flags change. */
export function settingsOf(flags: Iterable<FlagName>): string[] {
  const settings = [...flags].map((name) => settingOf(name));
  return [...new Set(settings.filter((setting) => setting !== undefined))];
}
