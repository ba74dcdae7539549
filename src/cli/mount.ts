/**
 * `wsfs mount`: checks what can be checked without the daemon, starts the daemon, and stays with it in the foreground.
 */
import { randomUUID } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ProfileError, parseProfile } from "../client/profile.ts";
import { readMountTable } from "../daemon/mount-table.ts";
import type { DaemonSettings } from "../daemon/settings.ts";
import { checkApart, type OwnFolder } from "./apart.ts";
import { detachDead } from "./dead-mount.ts";
import { crashesAMinute, userFolders } from "./environment.ts";
import type { EntryValues } from "./environment-entry.ts";
import { type ChosenEnvironment, chooseEnvironment, hasEnvironments } from "./environments.ts";
import { EXIT, Failure } from "./failure.ts";
import { findMount, serving } from "./find-mount.ts";
import type { FlagName } from "./flags.ts";
import { followedFile, settingsOf } from "./followed.ts";
import { type Launched, launch } from "./launch.ts";
import { checkMountpoint, findPlace } from "./mountpoint.ts";
import { describeMissing, type Values } from "./options.ts";
import { howToSignIn } from "./signed-in.ts";
import { showTime } from "./table.ts";
import { printable } from "./wording.ts";
import { absolute } from "./working-folder.ts";

export async function mount(given: Values<"mount">, isGiven: ReadonlySet<FlagName>): Promise<number> {
  checkKernel();
  const at = environmentOf(given);
  const values = at === undefined ? given : withEntry(given, isGiven, at.entry);
  const gateway = at === undefined ? byTokenFile(values) : byLogin(values, at);
  const view = viewOf(values);
  const mountpoint = await prepareMountpoint(values.dir);
  checkApart(values.dir, ownFolders(values["state-dir"]));
  if (values["token-file"] !== undefined) checkTokenFile(values["token-file"]);
  const fixed = settingsOf(isGiven);
  return mountAndStay({
    dir: values.dir,
    background: values.background,
    allowOther: values["allow-other"],
    settings: {
      mountpoint,
      ...gateway,
      ...chosenSettings(values, gateway.workspace),
      ...view,
      ...(values["state-dir"] === undefined ? {} : { stateDir: absolute(values["state-dir"]) }),
      shortenWaits: values["shorten-waits"],
      ...(at === undefined ? {} : followed(values.dir, at, fixed)),
    },
    onReady() {
      const what = view.path === undefined ? gateway.workspace : `${view.path} of ${gateway.workspace}`;
      const when = view.at === undefined ? "" : `, as it was at ${showTime(view.at)}`;
      process.stdout.write(`${printable(what)} mounted at ${mountpoint}${when}\n`);
    },
  });
}

/** A moment such as "yesterday" is resolved once, here. A mount of the past is read-only. */
function viewOf(values: Values<"mount">): Partial<Pick<DaemonSettings, "path" | "at" | "readOnly">> {
  const { "mount-path": path, "mount-at": at } = values;
  if (at !== undefined && at.getTime() > Date.now()) {
    throw new Failure(`--at: expected a moment that is over, got ${showTime(at.toISOString())}`, EXIT.usage);
  }
  return {
    ...(path === undefined ? {} : { path }),
    ...(at === undefined ? {} : { at: at.toISOString(), readOnly: true }),
  };
}

/** Flags and variables override the environment's entry, and the entry overrides defaults. */
export function withEntry(
  values: Values<"mount">,
  isGiven: ReadonlySet<FlagName>,
  entry: EntryValues,
): Values<"mount"> {
  const counts = Object.entries(entry).filter(([name]) => !(isGiven as ReadonlySet<string>).has(name));
  return { ...values, ...Object.fromEntries(counts) };
}

/** The settings that an environment's entry may contain, besides the gateway it leads to. */
export function chosenSettings(values: Values<"mount">, workspace: string) {
  const crashes = values["no-restart"] ? 0 : crashesAMinute();
  return {
    ...readProfile(values.profile),
    cacheSize: values["cache-size"],
    namesAhead: values["names-ahead"],
    ...(values["keep-free"] === undefined ? {} : { keepFree: values["keep-free"] }),
    ...(values["unsent-limit"] === undefined ? {} : { unsentLimit: values["unsent-limit"] }),
    patienceMs: values.wait * 1000,
    readOnly: values["read-only"],
    ...ofTransport(values.transport, crashes, { workspace, allowOther: values["allow-other"] }),
    ...(values.owners === undefined ? {} : { owners: values.owners }),
    allowOther: values["allow-other"],
    passthrough: !values["no-passthrough"],
    durability: values.durability,
    logLevel: values.debug ? "debug" : values["log-level"],
  } satisfies Partial<DaemonSettings>;
}

/** Undefined: flags give the gateway and the token file. */
function environmentOf({ env, ...values }: Values<"mount">): ChosenEnvironment | undefined {
  const isByFlags = values["base-url"] !== undefined || values["token-file"] !== undefined;
  if (env === undefined && (isByFlags || !hasEnvironments())) return undefined;
  const beside = values["token-file"] === undefined ? "--base-url" : "--token-file";
  if (isByFlags) {
    throw new Failure(
      `--env (or WSFS_ENV) and ${beside} exclude each other: an environment has a base URL and a login`,
      EXIT.usage,
    );
  }
  return chooseEnvironment(env);
}

type Reached = Pick<DaemonSettings, "baseUrl" | "workspace" | "tokenFile" | "login">;

function byTokenFile(values: Values<"mount">): Reached {
  const { "base-url": baseUrl, "token-file": tokenFile, workspace } = values;
  if (baseUrl === undefined || workspace === undefined || tokenFile === undefined) {
    const missing = (["base-url", "workspace", "token-file"] as const).filter((name) => values[name] === undefined);
    const other = 'or a gateway to sign in to ("wsfs env add", "wsfs login")';
    throw new Failure(`mount needs ${describeMissing(missing)}, ${other}`, EXIT.usage);
  }
  return { baseUrl, workspace, tokenFile: absolute(tokenFile) };
}

function byLogin({ workspace }: Values<"mount">, { name, baseUrl, loginFile }: ChosenEnvironment): Reached {
  if (workspace === undefined) throw new Failure(`mount needs ${describeMissing(["workspace"])}`, EXIT.usage);
  if (!existsSync(loginFile)) throw new Failure(`not signed in to ${name}: ${howToSignIn(name)}`);
  return { baseUrl, workspace, login: { file: loginFile, howToSignIn: howToSignIn(name) } };
}

/** If the file lies in the mount, it is not followed: a daemon must not read files of its own mount. */
function followed(dir: string, at: ChosenEnvironment, fixed: readonly string[]): Pick<DaemonSettings, "environment"> {
  try {
    return { environment: { ...followedFile(dir, at), fixed: [...fixed] } };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    note(`the mount does not adopt changes of ${at.file}: ${error.message}`);
    return {};
  }
}

/** A mount by libfuse ends with its daemon, because no other daemon can take it over. */
export function ofTransport(
  transport: "kernel" | "fuse-native",
  crashes: number,
  { workspace, allowOther }: { readonly workspace: string; readonly allowOther: boolean },
): Pick<DaemonSettings, "crashes" | "fuseNative"> {
  if (transport === "kernel") return { crashes };
  return { crashes: 0, fuseNative: { source: sourceName(workspace), allowOther } };
}

const FUSERMOUNT = "fusermount3";
const PROFILE_BYTES_MAX = 64 * 1024;

/** The file's text, checked. Throws a Failure with one line for each fault. */
export function readProfile(path: string | undefined): Pick<DaemonSettings, "profile"> {
  if (path === undefined) return {};
  const file = absolute(path);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new Failure(`--profile: ${path} cannot be read (${(cause as NodeJS.ErrnoException).code})`, EXIT.failure, {
      cause,
    });
  }
  if (Buffer.byteLength(text) > PROFILE_BYTES_MAX) {
    throw new Failure(`--profile: ${path} has more than ${PROFILE_BYTES_MAX} bytes`);
  }
  try {
    const { warning } = parseProfile(text, path);
    if (warning !== undefined) process.stderr.write(`wsfs: ${warning}\n`);
  } catch (cause) {
    if (!(cause instanceof ProfileError)) throw cause;
    throw new Failure(cause.message, EXIT.failure, { cause });
  }
  return { profile: { source: path, text } };
}

/** The folders that a mount needs outside itself. */
export function ownFolders(stateDir: string | undefined): OwnFolder[] {
  const { state, runtime } = userFolders();
  return [
    stateDir === undefined
      ? { what: `the folder of state dirs ${state}`, path: state }
      : { what: `--state-dir ${stateDir}`, path: stateDir },
    { what: `the runtime folder ${runtime}`, path: runtime },
  ];
}

type Chosen = Omit<DaemonSettings, "mountId" | "stateHome" | "runtimeFolder" | "foreground">;

/**
 * Resolves with the exit code: with --background when the mount is usable, otherwise when it has ended. Rejects with a
 * Failure.
 */
export async function mountAndStay(options: {
  readonly dir: string;
  readonly settings: Chosen;
  readonly background: boolean;
  readonly allowOther: boolean;
  readonly onReady: (pid: number) => void;
}): Promise<number> {
  const { background, settings } = options;
  const folders = userFolders();
  const launched = launch({
    settings: {
      ...settings,
      mountId: randomUUID(),
      stateHome: folders.state,
      runtimeFolder: folders.runtime,
      foreground: !background,
    },
    source: sourceName(settings.workspace),
    mountOptions: ["default_permissions", ...(options.allowOther ? ["allow_other"] : [])],
    background,
    onNote: note,
  });
  const stopForwarding = forwardSignals(launched);
  try {
    const pid = await launched.ready;
    options.onReady(pid);
    if (background) return EXIT.ok;
    const code = await launched.ended;
    if (findMount(options.dir)?.served !== undefined) {
      note(`its supervisor was killed; the mount goes on in the background, until "wsfs umount ${options.dir}"`);
    }
    return code;
  } finally {
    stopForwarding();
  }
}

/** The name goes into an option string of mount(2) and into the mount table, so it must be one plain word. */
function sourceName(workspace: string): string {
  return workspace.replaceAll(/[^\w.@:-]/g, "_");
}

/**
 * A terminal sends Ctrl-C to the supervisor as well, other senders only to this command. So every signal is forwarded;
 * the supervisor ignores a second one. This command stays until the supervisor has ended.
 */
function forwardSignals(launched: Launched): () => void {
  const forward = (signal: NodeJS.Signals) => void launched.supervisor.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, forward);
  return () => {
    for (const signal of signals) process.off(signal, forward);
  };
}

function note(text: string): void {
  process.stderr.write(`wsfs: ${text}\n`);
}

/**
 * True if this machine and user can mount at all. Root opens the device itself; for other users fusermount3 does.
 * Throws a Failure.
 */
export function checkKernel(): void {
  const isRoot = process.getuid?.() === 0;
  try {
    if (isRoot) accessSync("/dev/fuse", constants.R_OK | constants.W_OK);
    if (!statSync("/dev/fuse").isCharacterDevice()) throw new Failure("/dev/fuse is not a device");
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") {
      throw new Failure("/dev/fuse cannot be opened for reading and writing by this user", EXIT.failure, { cause });
    }
    throw new Failure(
      "/dev/fuse is not there: load the kernel's fuse module (modprobe fuse), or give the container the device",
      EXIT.failure,
      { cause },
    );
  }
  if (isRoot || (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, FUSERMOUNT))))
    return;
  throw new Failure(`${FUSERMOUNT} is not installed (package fuse3); only root mounts without it`);
}

/** The absolute path to mount on. First detaches a mount of ours whose daemon is gone. Rejects with a Failure. */
export async function prepareMountpoint(dir: string): Promise<string> {
  let place = findPlace(dir, readMountTable());
  // Dead mounts may lie on top of each other.
  while (place.is === "ourMount") {
    const { served } = serving(place.mount);
    if (served !== undefined) {
      throw new Failure(
        `${dir} is already a mount (of ${served.record.workspace.name}, served by process ${served.record.daemon.pid})`,
      );
    }
    if (!(await detachDead(place.mount))) {
      throw new Failure(`${dir} is already a mount (of ${place.mount.source}, by a daemon that this user cannot ask)`);
    }
    note(`${dir} was a mount whose daemon is gone; it was detached`);
    place = findPlace(dir, readMountTable());
  }
  checkMountpoint(dir, place, readMountTable());
  return place.path;
}

/** The daemon judges the token itself: a mount that knows its workspace can do without one. Throws a Failure. */
export function checkTokenFile(path: string): void {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) throw new Failure(`--token-file: ${path} is not a file`);
    accessSync(path, constants.R_OK);
    if ((stat.mode & 0o077) !== 0) note(`other users may read the token file ${path}; chmod 600 ${path}`);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === "ENOENT"
        ? "is not there"
        : code === "EACCES"
          ? "cannot be read by this user"
          : `cannot be read (${code})`;
    throw new Failure(`--token-file: ${path} ${why}`, EXIT.failure, { cause });
  }
}
