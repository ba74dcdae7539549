/** What commands take from the environment besides the variables of flags (options.ts), and hand on to their children. */
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
  /** Of the configuration file. */
  readonly config: string;
  /** Sockets and records of running daemons: where those of a new one go. */
  readonly runtime: string;
  /** All places where they may be: a login session that begins or ends changes which one is the first. */
  readonly runtimes: readonly string[];
}

/** What of the machine decides. */
export interface Machine {
  /** Of this boot. */
  boot(): string;
  /** Whose the folder is; undefined: it is not there, or cannot be looked at. */
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
    // A relative path is to be ignored (XDG base directory specification).
    return join(isAbsolute(given) ? given : join(home, otherwise), "wsfs");
  };
  const state = base("XDG_STATE_HOME", ".local/state");
  const data = base("XDG_DATA_HOME", ".local/share");
  const config = base("XDG_CONFIG_HOME", ".config");
  return { home, state, data, config, ...runtimeFolders(environment, uid, state, machine) };
}

/**
 * The same for root by whatever way one became root, so that every shell finds every mount. A user's
 * is the login session's, also for what runs outside of it (cron). XDG_RUNTIME_DIR may be left over from
 * somebody else (su). Without a session one below the state folder, which may be on a disk that machines share
 * and that outlives a boot: named after this boot of this machine (sockets' paths have to be short).
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

/** A mount whose daemon dies so often within a minute ends; 0: at the first time. Set by tests that let it die all the time. */
export function crashesAMinute(environment: NodeJS.ProcessEnv = process.env): number {
  const text = environment.WSFS_CRASHES || "5";
  if (/^\d{1,10}$/.test(text) && Number(text) <= CRASHES_MAX) return Number(text);
  throw new Failure(`WSFS_CRASHES: expected a number from 0 to ${CRASHES_MAX}, got '${text}'`, EXIT.usage);
}

/** Whether an error's stack is wanted, known before any flag is parsed. */
export function wantsStack(argv: readonly string[], environment: NodeJS.ProcessEnv = process.env): boolean {
  return argv.includes("--debug") || /^(1|true|yes|on)$/i.test(environment.WSFS_DEBUG ?? "");
}

/** What a child of ours gets as its environment. */
export function childEnvironment(extra: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...extra };
}
