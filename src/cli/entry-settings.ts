/**
 * The settings of an environment's entry, in the form for the daemon of a mount: for `wsfs env show --settings` and
 * `wsfs reload --env`.
 */
import type { EntrySettings } from "../daemon/entry-settings.ts";
import type { DaemonSettings } from "../daemon/settings.ts";
import { FILE_FLAGS, type FileFlag, keyOf } from "./environment-entry.ts";
import type { ChosenEnvironment } from "./environments.ts";
import { FLAGS, type Flag } from "./flags.ts";
import { settingsOf } from "./followed.ts";
import { chosenSettings, withEntry } from "./mount.ts";
import { resolveValues } from "./resolve-values.ts";

export function entrySettings({ entry, baseUrl, workspace, seen }: ChosenEnvironment): EntrySettings {
  const values = withEntry(resolveValues("mount", { DIR: "/" }, {}), new Set(), entry);
  const settings: Partial<DaemonSettings> = {
    baseUrl,
    ...(workspace === undefined ? {} : { workspace }),
    ...chosenSettings(values, workspace ?? ""),
  };
  const keys = FILE_FLAGS.flatMap((name): [string, string][] => {
    const { setting }: Flag = FLAGS[name];
    return setting === undefined ? [] : [[setting, keyOf(name)]];
  });
  const present = settingsOf(Object.keys(entry) as FileFlag[]);
  return { settings, keys: Object.fromEntries(keys), present, seen };
}
