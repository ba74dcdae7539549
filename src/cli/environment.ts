/** What commands take from the environment besides the variables of flags (options.ts), and hand on to their children. */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** Folders of the user, after the XDG base directory rules. */
export interface Folders {
  readonly home: string;
  /** Base of the default state dirs. */
  readonly state: string;
  /** Base of the local gateway's data. */
  readonly data: string;
  /** Sockets and records of running daemons. */
  readonly runtime: string;
}

export function userFolders(environment: NodeJS.ProcessEnv = process.env, uid = process.getuid?.() ?? 0): Folders {
  const home = environment.HOME || homedir();
  const base = (name: string, otherwise: string) => {
    const given = environment[name] ?? "";
    // A relative path is to be ignored (XDG base directory specification).
    return join(isAbsolute(given) ? given : join(home, otherwise), "wsfs");
  };
  const state = base("XDG_STATE_HOME", ".local/state");
  return { home, state, data: base("XDG_DATA_HOME", ".local/share"), runtime: runtimeFolder(environment, uid, state) };
}

/** The same for root by whatever way one became root, so that every shell finds every mount. */
function runtimeFolder(environment: NodeJS.ProcessEnv, uid: number, state: string): string {
  const chosen = environment.WSFS_RUNTIME_DIR ?? "";
  if (isAbsolute(chosen)) return chosen;
  if (uid === 0) return "/run/wsfs";
  const given = environment.XDG_RUNTIME_DIR ?? "";
  return isAbsolute(given) ? join(given, "wsfs") : join(state, "run");
}

/** A mount whose daemon dies so often within a minute ends. Set by tests that let it die all the time. */
export function crashesAMinute(environment: NodeJS.ProcessEnv = process.env): number {
  return Number(environment.WSFS_CRASHES ?? 5);
}

/** Whether an error's stack is wanted, known before any flag is parsed. */
export function wantsStack(argv: readonly string[], environment: NodeJS.ProcessEnv = process.env): boolean {
  return argv.includes("--debug") || /^(1|true|yes|on)$/i.test(environment.WSFS_DEBUG ?? "");
}

/** What a child of ours gets as its environment. */
export function childEnvironment(extra: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...extra };
}
