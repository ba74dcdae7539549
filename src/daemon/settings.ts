/**
 * What a command hands to the daemon it starts: one JSON in an environment variable, which outlives
 * the command and is there again for a daemon that the supervisor starts anew. It holds no secret:
 * of the token, only where it stands.
 */
import { z } from "zod";

export const SETTINGS_VARIABLE = "WSFS_DAEMON_SETTINGS";
/** Set by the supervisor: its end of the control socket. */
export const CONTROL_VARIABLE = "WSFS_CONTROL_FD";

/** Set by the supervisor, for a daemon that takes over: how many died before (none: one gave way), of what the last one. */
export const RESTARTS_VARIABLE = "WSFS_RESTARTS";
/** Set by the supervisor, to 0 where the last one was killed by somebody, or gave way. One of an earlier release says nothing. */
const FAULT_VARIABLE = "WSFS_DIED_OF_ITSELF";
/** Set by the supervisor for a daemon that `wsfs reload` asked for, or that goes on after such a one failed. */
const RELOAD_VARIABLE = "WSFS_RELOAD";
/** Set by tests: behave as with a kernel that sends nothing again (before Linux 6.9). */
const NO_RESEND_VARIABLE = "WSFS_NO_RESEND";

export const owners = z.enum(["mine", "real"]);

/** An environment whose entry of the configuration file the mount follows. */
const followedEntry = z.object({
  name: z.string(),
  /** The configuration file. */
  file: z.string(),
  /** Which file it was when it was read (entry-settings.ts). */
  seen: z.string(),
  /** Settings that were given otherwise, which go before what the entry says. */
  fixed: z.array(z.string()),
});
export type FollowedEntry = z.infer<typeof followedEntry>;

/**
 * A daemon of a later release may be given those of an earlier one (`wsfs reload`): what is new is optional, and
 * what is no longer known means nothing.
 */
export const daemonSettings = z.object({
  /** Of this mount alone, whoever serves it. */
  mountId: z.string(),
  mountpoint: z.string(),
  baseUrl: z.string(),
  /** Of `wsfs start`: the Unix socket by which its gateway is reached; the base URL's port is for other programs. */
  gatewaySocket: z.string().optional(),
  /** Of `wsfs start`: the data folder of its gateway, which is started again when it dies. */
  keptGateway: z.string().optional(),
  /** Name or id. */
  workspace: z.string(),
  /** Absent where there is a login. */
  tokenFile: z.string().optional(),
  /** Where the login of this user is saved, and what renews it. */
  login: z.strictObject({ file: z.string(), howToSignIn: z.string() }).optional(),
  environment: followedEntry.optional(),
  /** A profile's text, and where it came from: the file may be another one when a daemon is started anew. */
  profile: z.strictObject({ source: z.string(), text: z.string() }).optional(),
  /** Absent: below `stateHome`, by the workspace's id. */
  stateDir: z.string().optional(),
  stateHome: z.string(),
  runtimeFolder: z.string(),
  /** Bytes. */
  cacheSize: z.number().int().min(0),
  /** Bytes; absent: by the size of the disk. */
  keepFree: z.number().int().min(0).optional(),
  /** Bytes; absent: as many as the disk takes. */
  unsentLimit: z.number().int().min(0).optional(),
  /** How long a gateway that fails is asked again, where the mount cannot do without it. */
  patienceMs: z.number().min(0),
  /** By how much all limits on waiting are divided; 1 outside of tests. */
  shortenWaits: z.number().min(1),
  readOnly: z.boolean(),
  /** A daemon that dies is replaced, until that happened so often within a minute; 0: never. */
  crashes: z.number().int().min(0),
  /** The daemon mounts by libfuse (--transport fuse-native); absent: the supervisor does. */
  fuseNative: z.object({ source: z.string(), allowOther: z.boolean() }).optional(),
  /** Whose nodes are shown to be; absent: as the state dir was used before, or as `allowOther` says. */
  owners: owners.optional(),
  /** Other users are let in. */
  allowOther: z.boolean().optional(),
  /** Let the kernel read and write local files itself, where it can. */
  passthrough: z.boolean(),
  durability: z.enum(["local", "remote"]),
  logLevel: z.enum(["debug", "info", "warn", "error"]),
  /** Warnings go to standard error as well. */
  foreground: z.boolean(),
});
export type DaemonSettings = z.infer<typeof daemonSettings>;

/**
 * As the kernel takes one string of an environment, and the supervisor a word of its daemon (RELOAD_LENGTH). It has to
 * hold the daemon's program too: a supervisor in the place of one that died is told both of a release on trial.
 */
const SETTINGS_BYTES_MAX = 120 * 1024;

/** Undefined: too long to be handed on. */
export function settingsText(settings: DaemonSettings, program: readonly string[]): string | undefined {
  const text = JSON.stringify(settings);
  const words = program.reduce((bytes, word) => bytes + 1 + Buffer.byteLength(word), 0);
  return Buffer.byteLength(text) + words > SETTINGS_BYTES_MAX ? undefined : text;
}

export function readSettings(environment: NodeJS.ProcessEnv): DaemonSettings {
  const given = environment[SETTINGS_VARIABLE];
  if (given === undefined) throw new Error(`this program is started by "wsfs mount" (${SETTINGS_VARIABLE} is not set)`);
  return daemonSettings.parse(JSON.parse(given));
}

export interface Restarts {
  readonly count: number;
  readonly cause: string;
  /** The last one died of something it did, so far as is known. */
  readonly wasOwnFault: boolean;
}

export function readRestarts(environment: NodeJS.ProcessEnv): Restarts | undefined {
  const [, count, cause = ""] = /^(\d+) ?(.*)$/s.exec(environment[RESTARTS_VARIABLE] ?? "") ?? [];
  if (count === undefined) return undefined;
  return { count: Number(count), cause, wasOwnFault: environment[FAULT_VARIABLE] !== "0" };
}

/** Of the reload that this daemon came by. */
export interface Reload {
  readonly id: string;
  /** Since when programs wait, by the wall clock. */
  readonly since: number;
  /** Why a daemon with the new settings could not serve: this one has those of before. */
  readonly failed?: string;
}

/** For the supervisor, which hands it on as it is: no space in it. */
export function reloadTag({ id, since }: Reload): string {
  return `${id}:${since}`;
}

export function readReload(environment: NodeJS.ProcessEnv): Reload | undefined {
  const [, id, since, failed = ""] = /^([\w-]+):(\d+) ?(.*)$/s.exec(environment[RELOAD_VARIABLE] ?? "") ?? [];
  if (id === undefined) return undefined;
  return { id, since: Number(since), ...(failed === "" ? {} : { failed }) };
}

export function readNoResend(environment: NodeJS.ProcessEnv): boolean {
  return environment[NO_RESEND_VARIABLE] === "1";
}

export function readControlDescriptor(environment: NodeJS.ProcessEnv): number {
  const given = environment[CONTROL_VARIABLE] ?? "";
  if (!/^\d+$/.test(given)) throw new Error(`expected the supervisor's socket in ${CONTROL_VARIABLE}, got "${given}"`);
  return Number(given);
}
