/**
 * The settings that a command hands to the daemon it starts: one JSON text in an environment variable. The variable
 * outlives the command, and a daemon that the supervisor starts later gets it too. It contains no secret: only the
 * place where the token is stored.
 */
import { z } from "zod";
import { type WallTime, wallTime } from "../lib/clocks.ts";

export const SETTINGS_VARIABLE = "WSFS_DAEMON_SETTINGS";
/** Set by the supervisor: the descriptor of the daemon's end of the control socket. */
export const CONTROL_VARIABLE = "WSFS_CONTROL_FD";

/**
 * Set by the supervisor for a daemon that takes over: the number of daemons of this mount that died (0: none, the one
 * before gave way), and the cause of the last death.
 */
export const RESTARTS_VARIABLE = "WSFS_RESTARTS";
/**
 * Set by the supervisor, to 0 when the last daemon was killed by another process or gave way. A supervisor of an
 * earlier release does not set it.
 */
const FAULT_VARIABLE = "WSFS_DIED_OF_ITSELF";
/**
 * Set by the supervisor for a daemon that `wsfs reload` asked for, or for the one that goes on after such a daemon
 * failed.
 */
const RELOAD_VARIABLE = "WSFS_RELOAD";
/** Set by tests: behave as with a kernel that never resends requests (before Linux 6.9). */
const NO_RESEND_VARIABLE = "WSFS_NO_RESEND";

export const owners = z.enum(["mine", "real"]);

/** An environment whose entry of the configuration file the mount follows. */
const followedEntry = z.object({
  name: z.string(),
  /** The configuration file. */
  file: z.string(),
  /** The identity of the file when it was read (entry-settings.ts). */
  seen: z.string(),
  /** Settings that were given otherwise, for example by flags. They override the entry. */
  fixed: z.array(z.string()),
});
export type FollowedEntry = z.infer<typeof followedEntry>;

/**
 * A daemon of a later release may get the settings of an earlier one (`wsfs reload`). New settings must therefore be
 * optional, and unknown ones are ignored.
 */
export const daemonSettings = z.object({
  /** The id of this mount, the same for every daemon that serves it. */
  mountId: z.string(),
  mountpoint: z.string(),
  baseUrl: z.string(),
  /** For `wsfs start`: the Unix socket of its gateway. The port of the base URL is for other programs. */
  gatewaySocket: z.string().optional(),
  /** For `wsfs start`: the data folder of its gateway, which is started again when it dies. */
  keptGateway: z.string().optional(),
  /** Name or id. */
  workspace: z.string(),
  /** The folder of the workspace that is mounted, as a path in it; absent: all of it. */
  path: z.string().optional(),
  /** The moment (ISO 8601, UTC) that is shown; absent: now. */
  at: z.string().optional(),
  /** Absent when there is a login. */
  tokenFile: z.string().optional(),
  /** The file in which this user's login is saved, and the command that renews it. */
  login: z.strictObject({ file: z.string(), howToSignIn: z.string() }).optional(),
  environment: followedEntry.optional(),
  /** A profile's text and its origin. The text is kept because the file may have changed when another daemon starts. */
  profile: z.strictObject({ source: z.string(), text: z.string() }).optional(),
  /** Absent: the folder below `stateHome` that is named by the workspace's id. */
  stateDir: z.string().optional(),
  stateHome: z.string(),
  runtimeFolder: z.string(),
  /** Bytes. */
  cacheSize: z.number().int().min(0),
  /** Bytes. Absent: chosen by the size of the disk. */
  keepFree: z.number().int().min(0).optional(),
  /** Bytes. Absent: as many as the disk takes. */
  unsentLimit: z.number().int().min(0).optional(),
  /** The largest number of names that are read in the background. Absent or 0: none. */
  namesAhead: z.number().int().min(0).optional(),
  /** How long, in milliseconds, a failing gateway is asked again for an answer that the mount needs to start. */
  patienceMs: z.number().min(0),
  /** All limits on waiting are divided by this. It is 1 outside of tests. */
  shortenWaits: z.number().min(1),
  readOnly: z.boolean(),
  /** A daemon that dies is replaced, unless that happened this many times within a minute. 0: never replaced. */
  crashes: z.number().int().min(0),
  /** The daemon mounts by libfuse (--transport fuse-native). Absent: the supervisor mounts. */
  fuseNative: z.object({ source: z.string(), allowOther: z.boolean() }).optional(),
  /** Which owners are shown. Absent: as the state dir was used before, else as `allowOther` says. */
  owners: owners.optional(),
  /** Other users may use the mount. */
  allowOther: z.boolean().optional(),
  /** Passthrough: let the kernel read and write cache files itself, where it can. */
  passthrough: z.boolean(),
  durability: z.enum(["local", "remote"]),
  logLevel: z.enum(["debug", "info", "warn", "error"]),
  /** Warnings also go to standard error. */
  foreground: z.boolean(),
});
export type DaemonSettings = z.infer<typeof daemonSettings>;

/**
 * The limit of settings and program together, in bytes. The kernel limits one string of the environment, and the
 * supervisor limits a line of its daemon (RELOAD_LENGTH). During a trial both are in one string, for a supervisor that
 * replaces one that died.
 */
const SETTINGS_BYTES_MAX = 120 * 1024;

/** Undefined: the text is too long to be handed on. */
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
  /** The last daemon died of its own fault, as far as is known. */
  readonly wasOwnFault: boolean;
}

export function readRestarts(environment: NodeJS.ProcessEnv): Restarts | undefined {
  const [, count, cause = ""] = /^(\d+) ?(.*)$/s.exec(environment[RESTARTS_VARIABLE] ?? "") ?? [];
  if (count === undefined) return undefined;
  return { count: Number(count), cause, wasOwnFault: environment[FAULT_VARIABLE] !== "0" };
}

/** The reload that started this daemon. */
export interface Reload {
  readonly id: string;
  /** Since when requests of programs wait, by the wall clock. */
  readonly since: WallTime;
  /** The reason why a daemon with the new settings could not serve. This daemon has the settings from before. */
  readonly failed?: string;
}

/** A word for the supervisor, which passes it on unchanged. It must contain no space. */
export function reloadTag({ id, since }: Reload): string {
  return `${id}:${since}`;
}

export function readReload(environment: NodeJS.ProcessEnv): Reload | undefined {
  const [, id, since, failed = ""] = /^([\w-]+):(\d+) ?(.*)$/s.exec(environment[RELOAD_VARIABLE] ?? "") ?? [];
  if (id === undefined) return undefined;
  return { id, since: wallTime(Number(since)), ...(failed === "" ? {} : { failed }) };
}

export function readNoResend(environment: NodeJS.ProcessEnv): boolean {
  return environment[NO_RESEND_VARIABLE] === "1";
}

export function readControlDescriptor(environment: NodeJS.ProcessEnv): number {
  const given = environment[CONTROL_VARIABLE] ?? "";
  if (!/^\d+$/.test(given)) throw new Error(`expected the supervisor's socket in ${CONTROL_VARIABLE}, got "${given}"`);
  return Number(given);
}
