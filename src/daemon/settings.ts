/**
 * What a command hands to the daemon it starts: one JSON in an environment variable, which outlives
 * the command and is there again for a daemon that the supervisor starts anew. It holds no secret:
 * of the token, only where it stands.
 */
import { z } from "zod";

export const SETTINGS_VARIABLE = "WSFS_DAEMON_SETTINGS";
/** Set by the supervisor: its end of the control socket. */
export const CONTROL_VARIABLE = "WSFS_CONTROL_FD";

export const daemonSettings = z.strictObject({
  mountpoint: z.string(),
  baseUrl: z.string(),
  /** Name or id. */
  workspace: z.string(),
  tokenFile: z.string(),
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
  /** Let the kernel read and write local files itself, where it can. */
  passthrough: z.boolean(),
  durability: z.enum(["local", "remote"]),
  logLevel: z.enum(["debug", "info", "warn", "error"]),
  /** Warnings go to standard error as well. */
  foreground: z.boolean(),
  version: z.string(),
});
export type DaemonSettings = z.infer<typeof daemonSettings>;

export function readSettings(environment: NodeJS.ProcessEnv): DaemonSettings {
  const given = environment[SETTINGS_VARIABLE];
  if (given === undefined) throw new Error(`this program is started by "wsfs mount" (${SETTINGS_VARIABLE} is not set)`);
  return daemonSettings.parse(JSON.parse(given));
}

export function readControlDescriptor(environment: NodeJS.ProcessEnv): number {
  const given = environment[CONTROL_VARIABLE] ?? "";
  if (!/^\d+$/.test(given)) throw new Error(`expected the supervisor's socket in ${CONTROL_VARIABLE}, got "${given}"`);
  return Number(given);
}
