/** The environment whose entry a mount follows: the entry's file, and the settings that flags have fixed. */
import { dirname } from "node:path";
import { readMountTable } from "../daemon/mount-table.ts";
import type { FollowedEntry } from "../daemon/settings.ts";
import { checkApart } from "./apart.ts";
import type { ChosenEnvironment } from "./environments.ts";
import { FLAGS, type Flag, type FlagName } from "./flags.ts";
import { findPlace } from "./mountpoint.ts";

type FollowedFile = Omit<FollowedEntry, "fixed">;

/** Throws a Failure when the file lies in the mount at `dir`: a daemon must not read files of its own mount. */
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
