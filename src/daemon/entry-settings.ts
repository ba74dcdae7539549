/**
 * The settings of an environment's entry in the configuration file, and the part of them that a running mount adopts.
 */
import { type BigIntStats, lstatSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { changed, ON_RELOAD, type SettingsChange } from "./reload-settings.ts";
import { type DaemonSettings, daemonSettings, type FollowedEntry } from "./settings.ts";

export const entrySettings = z.strictObject({
  /** The settings of a mount that gets only this entry. Settings that the entry lacks have their defaults. */
  settings: daemonSettings.partial(),
  /** For each setting: the key that stands for it in an entry. */
  keys: z.record(z.string(), z.string()),
  /** The settings that this entry contains. */
  present: z.array(z.string()),
  /** Identity of the file that the entry was read from. */
  seen: z.string(),
});
export type EntrySettings = z.infer<typeof entrySettings>;

/**
 * Identifies a version of a file: it differs after each change. For a symlink it is the identity of the link, because a
 * daemon must not follow a link into its own mount.
 */
export async function fileIdentity(path: string): Promise<string> {
  return identityOf(await lstat(path, { bigint: true }).catch(() => undefined));
}

export function fileIdentitySync(path: string): string {
  return identityOf(lstatSync(path, { bigint: true, throwIfNoEntry: false }));
}

const identityOf = (stat: BigIntStats | undefined) =>
  stat === undefined ? "none" : `${stat.mtimeNs} ${stat.ino} ${stat.size}`;

interface Followed {
  readonly next: DaemonSettings;
  /** The keys whose values are new in `next`. */
  readonly taken: readonly string[];
  /** The reasons for refusing the other keys: one line for each. */
  readonly refused: readonly string[];
}

/**
 * Compares the entry with the mount's settings. `newly`: a person asks for this environment now, so the entry overrides
 * settings that flags gave. Undefined: the entry of the followed environment has changed.
 */
export function follow(
  settings: DaemonSettings,
  entry: EntrySettings,
  newly?: Pick<FollowedEntry, "name" | "file">,
): Followed {
  const names = daemonSettings.keyof().options.filter((name) => entry.keys[name] !== undefined);
  const before = settings.environment?.fixed ?? names;
  const fixed = newly === undefined ? before : before.filter((name) => !entry.present.includes(name));
  const wanted = names.filter((name) => {
    const counts = name === "baseUrl" || !fixed.includes(name);
    return counts && !isSame(settings, entry.settings, name);
  });
  const keyOf = (name: keyof DaemonSettings) => entry.keys[name] ?? name;
  const may = wanted.filter((name) => ON_RELOAD[name].may);
  const refused = wanted
    .filter((name) => !ON_RELOAD[name].may)
    .map((name) => `${keyOf(name)} cannot change while a workspace is mounted: ${ON_RELOAD[name].why}`);
  const others = Object.entries(settings).filter(([name]) => !may.some((other) => other === name));
  const environment = { ...settings.environment, ...newly, seen: entry.seen, fixed };
  const next = daemonSettings.parse({
    ...Object.fromEntries(others),
    ...Object.fromEntries(may.map((name) => [name, entry.settings[name]])),
    environment,
  });
  return { next, taken: may.map(keyOf), refused };
}

/** The settings that `wsfs reload` asks for, by its flags and by an environment. */
export function nextSettings(
  settings: DaemonSettings,
  changes: SettingsChange,
  environment?: Pick<FollowedEntry, "name" | "file"> & { readonly entry: EntrySettings },
): Pick<Followed, "next" | "refused"> {
  if (environment === undefined) return { next: changed(settings, changes), refused: [] };
  const { entry, ...newly } = environment;
  const { next, refused } = follow(settings, entry, newly);
  return { next: changed(next, changes), refused };
}

function isSame(settings: DaemonSettings, wanted: EntrySettings["settings"], name: keyof DaemonSettings): boolean {
  // The source has the workspace's name, which is compared as a setting of its own.
  if (name === "fuseNative") return (settings.fuseNative === undefined) === (wanted.fuseNative === undefined);
  // A mount by libfuse has no such setting. An entry can switch it on or off, but has no key for the number.
  if (name === "crashes") {
    return settings.fuseNative !== undefined || (settings.crashes === 0) === (wanted.crashes === 0);
  }
  return isDeepStrictEqual(settings[name], wanted[name]);
}
