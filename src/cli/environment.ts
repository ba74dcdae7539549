/** Environment variables of commands, except those of flags (options.ts), and the environment of child processes. */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { bootId } from "../daemon/kernel.ts";
import { EXIT, Failure } from "./failure.ts";

/** Folders of the user, after the XDG base directory rules. */
export interface Folders {
  readonly home: string;
  /** Base of the default state dirs. */
  readonly state: string;
  /** Base of the local gateway's data. */
  readonly data: string;
  /** Folder of the configuration file. */
  readonly config: string;
  /** The folder for the socket and the record of a new daemon. */
  readonly runtime: string;
  /** All folders that may hold those of running daemons. When a login session begins or ends, another one is first. */
  readonly runtimes: readonly string[];
}

/** Facts about the machine. */
interface Machine {
  /** The id of this boot. */
  boot(): string;
  /** The owner of the folder. Undefined: it does not exist or cannot be looked at. */
  ownerOf(path: string): number | undefined;
}

const THIS_MACHINE: Machine = {
  boot: bootId,
  ownerOf(path) {
    try {
      return statSync(path).uid;
    } catch {
      return undefined;
    }
  },
};

export function userFolders(
  environment: NodeJS.ProcessEnv = process.env,
  uid = process.getuid?.() ?? 0,
  machine = THIS_MACHINE,
): Folders {
  const home = environment.HOME || homedir();
  const base = (name: string, otherwise: string) => {
    const given = environment[name] ?? "";
    // The XDG base directory specification says that a relative path is ignored.
    return join(isAbsolute(given) ? given : join(home, otherwise), "wsfs");
  };
  const state = base("XDG_STATE_HOME", ".local/state");
  const data = base("XDG_DATA_HOME", ".local/share");
  const config = base("XDG_CONFIG_HOME", ".config");
  return { home, state, data, config, ...runtimeFolders(environment, uid, state, machine) };
}

/**
 * Root has one folder, so that every shell finds every mount, whether it came from a login, su or sudo. Another user
 * has the folder of the login session, also for programs that run outside of it (cron). XDG_RUNTIME_DIR counts only if
 * this user owns it: it may be left over from another user (su). Without a session, the folder lies below the state
 * folder. Machines may share that disk, and it outlives a boot. So the folder is named after this boot of this machine.
 * The name is short, because paths of sockets must be short.
 */
function runtimeFolders(
  environment: NodeJS.ProcessEnv,
  uid: number,
  state: string,
  machine: Machine,
): Pick<Folders, "runtime" | "runtimes"> {
  const chosen = environment.WSFS_RUNTIME_DIR ?? "";
  if (isAbsolute(chosen)) return { runtime: chosen, runtimes: [chosen] };
  if (uid === 0) return { runtime: "/run/wsfs", runtimes: ["/run/wsfs"] };
  const given = environment.XDG_RUNTIME_DIR ?? "";
  const session = [...(isAbsolute(given) ? [given] : []), `/run/user/${uid}`]
    .filter((path) => machine.ownerOf(path) === uid)
    .map((path) => join(path, "wsfs"));
  const withoutSession = join(state, "run", machine.boot().slice(0, 8));
  return { runtime: session[0] ?? withoutSession, runtimes: [...new Set([...session, withoutSession])] };
}

const CRASHES_MAX = 2 ** 31 - 1;

/**
 * The number of daemon deaths within a minute that ends the mount. 0: the first death ends it. Tests that kill the
 * daemon often set it. Throws a Failure.
 */
export function crashesAMinute(environment: NodeJS.ProcessEnv = process.env): number {
  const text = environment.WSFS_CRASHES || "5";
  if (/^\d{1,10}$/.test(text) && Number(text) <= CRASHES_MAX) return Number(text);
  throw new Failure(`WSFS_CRASHES: expected a number from 0 to ${CRASHES_MAX}, got '${text}'`, EXIT.usage);
}

/** True if the user wants an error's stack. This is decided before any flag is parsed. */
export function wantsStack(argv: readonly string[], environment: NodeJS.ProcessEnv = process.env): boolean {
  return argv.includes("--debug") || /^(1|true|yes|on)$/i.test(environment.WSFS_DEBUG ?? "");
}

/** The process environment of a child. */
export function childEnvironment(extra: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...extra };
}
