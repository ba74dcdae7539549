/** What an environment's entry in the configuration file says of a mount, and what of it a mount that is there takes over. */
import { type BigIntStats, lstatSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { changed, ON_RELOAD, type SettingsChange } from "./reload-settings.ts";
import { type DaemonSettings, daemonSettings, type FollowedEntry } from "./settings.ts";

export const entrySettings = z.strictObject({
  /** As of a mount that is given nothing else: what the entry lacks has its default. */
  settings: daemonSettings.partial(),
  /** By setting: the key that an entry has for it. */
  keys: z.record(z.string(), z.string()),
  /** Settings that the entry says something of. */
  present: z.array(z.string()),
  /** Which file it was read from. */
  seen: z.string(),
});
export type EntrySettings = z.infer<typeof entrySettings>;

/** Another one after each change of a file. Not that of a link's target: a daemon must not come into its mount by one. */
export async function fileIdentity(path: string): Promise<string> {
  return identityOf(await lstat(path, { bigint: true }).catch(() => undefined));
}

export function fileIdentitySync(path: string): string {
  return identityOf(lstatSync(path, { bigint: true, throwIfNoEntry: false }));
}

const identityOf = (stat: BigIntStats | undefined) =>
  stat === undefined ? "none" : `${stat.mtimeNs} ${stat.ino} ${stat.size}`;

export interface Followed {
  readonly next: DaemonSettings;
  /** Keys whose values `next` has, and the mount had not. */
  readonly taken: readonly string[];
  /** Why not the others: one line each. */
  readonly refused: readonly string[];
}

/**
 * `newly`: somebody asks for this environment now. What its entry says then counts, also where it was given otherwise
 * before; undefined: a change of the entry that is followed anyhow.
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

/** What `wsfs reload` asks for, by its flags and by an environment. */
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
  // Its source has the workspace's name, which is compared by itself.
  if (name === "fuseNative") return (settings.fuseNative === undefined) === (wanted.fuseNative === undefined);
  // A mount by libfuse has none; how many there may be is no key of an entry.
  if (name === "crashes") {
    return settings.fuseNative !== undefined || (settings.crashes === 0) === (wanted.crashes === 0);
  }
  return isDeepStrictEqual(settings[name], wanted[name]);
}
