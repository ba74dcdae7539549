/**
 * The settings of a mount, which of them `wsfs reload` may change, and why. A person reads the reason when a change is
 * refused; docs/user/settings.md is made from it too.
 */
import { z } from "zod";
import { type DaemonSettings, daemonSettings } from "./settings.ts";

interface Rule {
  readonly may: boolean;
  readonly why: string;
}

export const ON_RELOAD = {
  mountId: { may: false, why: "it says which mount this is" },
  mountpoint: { may: false, why: "the mount stays where it is" },
  baseUrl: { may: false, why: "the state dir holds ids and revisions of that gateway" },
  gatewaySocket: { may: false, why: "it belongs to the gateway, which stays the same" },
  keptGateway: { may: false, why: "it belongs to the gateway, which stays the same" },
  workspace: { may: false, why: "programs have its files open" },
  path: { may: false, why: "programs have its files open" },
  at: { may: false, why: "programs have its files open" },
  tokenFile: { may: true, why: "a daemon reads it whenever it needs a token, and learns its scopes at its start" },
  login: { may: false, why: "another login may be another account; --token-file can take its place" },
  environment: { may: false, why: "--env says which one is followed" },
  profile: { may: true, why: "the gateway stays the same; each daemon finds out anew what it offers" },
  stateDir: { may: false, why: "unsent changes and open files are in it" },
  stateHome: { may: false, why: "unsent changes and open files are below it" },
  runtimeFolder: { may: false, why: "commands look for the daemon there" },
  cacheSize: { may: true, why: "the excess is removed gradually" },
  keepFree: { may: true, why: "the excess is removed gradually" },
  unsentLimit: { may: true, why: "it is asked at each write, and unsent changes stay" },
  namesAhead: { may: true, why: "the daemon reads missing names, or drops the excess, gradually" },
  patienceMs: { may: true, why: "it is for a daemon's start alone" },
  shortenWaits: { may: false, why: "the supervisor has its limits from the start" },
  readOnly: { may: false, why: "the kernel refuses writes by the mount itself, and programs may be writing" },
  crashes: { may: false, why: "the supervisor counts crashes, and a reload does not replace it" },
  fuseNative: { may: false, why: "the mount was made by one of the two transports and stays with it" },
  owners: { may: false, why: "programs have seen the owners of files already" },
  allowOther: { may: false, why: "the kernel takes it only when the mount is made" },
  passthrough: { may: false, why: "the kernel agreed on it for the whole mount, and open files depend on it" },
  durability: { may: true, why: "it is asked at each close and fsync" },
  logLevel: { may: true, why: "it changes nothing but the log" },
  foreground: { may: false, why: "the command that started the mount has stayed or has returned" },
} as const satisfies { readonly [K in keyof Required<DaemonSettings>]: Rule };

type Changeable = {
  [K in keyof typeof ON_RELOAD]: (typeof ON_RELOAD)[K]["may"] extends true ? K : never;
}[keyof typeof ON_RELOAD];

const { tokenFile, profile, cacheSize, keepFree, unsentLimit, namesAhead, patienceMs, durability, logLevel } =
  daemonSettings.shape;
const changeable = {
  tokenFile,
  profile,
  cacheSize,
  keepFree,
  unsentLimit,
  namesAhead,
  patienceMs,
  durability,
  logLevel,
};

/** Strict: a daemon that does not know a change must not claim that it made the change. */
export const settingsChange = z.strictObject(changeable satisfies { [K in Changeable]: z.ZodType }).partial();
export type SettingsChange = z.infer<typeof settingsChange>;

/** From now on the given changes override an environment's entry. */
export function changed(settings: DaemonSettings, changes: SettingsChange): DaemonSettings {
  const { login, environment, ...rest } = settings;
  const fixed = [...new Set([...(environment?.fixed ?? []), ...Object.keys(changes)])];
  return daemonSettings.parse({
    ...rest,
    ...(changes.tokenFile === undefined ? { login } : {}),
    ...(environment === undefined ? {} : { environment: { ...environment, fixed } }),
    ...changes,
  });
}
