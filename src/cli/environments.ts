/**
 * Environments: named gateways in the user's configuration file, $XDG_CONFIG_HOME/wsfs/config.json. The environment
 * `local` needs no entry: it is the gateway that `wsfs start` keeps, whatever its address is now.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { fileIdentitySync } from "../daemon/entry-settings.ts";
import { readGatewayRecord } from "../daemon/gateway-record.ts";
import { lockFile } from "../daemon/lock-file.ts";
import { type Folders, userFolders } from "./environment.ts";
import { type EntryValues, readEntry } from "./environment-entry.ts";
import { EXIT, Failure } from "./failure.ts";
import { pollUntil } from "./poll.ts";

export const LOCAL = "local";
const PRODUCTION = /^production(?:-|$)/;
const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/i;

const LOCK_LIMIT_MS = 10_000;

const configuration = z.strictObject({
  /** The environment that is used when none is named. */
  environment: z.string().optional(),
  /** An entry is checked when it is used, so that a fault in it does not affect other entries. */
  environments: z
    .record(z.string().regex(NAME), z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])))
    .default({}),
});
type Configuration = z.infer<typeof configuration>;

export interface ChosenEnvironment {
  readonly name: string;
  readonly baseUrl: string;
  /** The values of its entry. */
  readonly entry: EntryValues;
  /** The file in which the entry stands or would stand, and the identity of that file before it was read. */
  readonly file: string;
  readonly seen: string;
  /** Name or id of the workspace that is used when none is named. */
  readonly workspace: string | undefined;
  /** The file in which its login is kept. */
  readonly loginFile: string;
}

export const configurationPath = ({ config }: Pick<Folders, "config"> = userFolders()) => join(config, "config.json");

/** Empty when there is no file. Throws a Failure that names the wrong field. */
export function readConfiguration(path = configurationPath()): Configuration {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return { environments: {} };
    throw new Failure(`${path} cannot be read (${(cause as NodeJS.ErrnoException).code})`, EXIT.failure, { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Failure(`${path}: expected JSON (${(cause as Error).message})`, EXIT.usage, { cause });
  }
  const read = configuration.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new Failure(`${path}: ${issue?.path.join(".") || "the whole"}: ${issue?.message}`, EXIT.usage);
}

/**
 * Changes the configuration file. Programs that do so at the same time wait for each other, so that no change is lost.
 * Rejects with a Failure.
 */
export async function changeConfiguration(
  changed: (known: Configuration) => Configuration,
  path = configurationPath(),
): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const lock = lockFile(`${path}.lock`);
  try {
    if (!(await pollUntil(lock.take, LOCK_LIMIT_MS))) {
      throw new Failure(`another program has been changing ${path} for ${LOCK_LIMIT_MS / 1000} s`);
    }
    writeConfiguration(changed(readConfiguration(path)), path);
  } finally {
    lock.close();
  }
}

/** Writes the whole file or nothing, however the process ends. A symlink stays a symlink. */
function writeConfiguration(changed: Configuration, at: string): void {
  const path = existsSync(at) ? realpathSync(at) : at;
  const beside = `${path}.${process.pid}.new`;
  writeFileSync(beside, `${JSON.stringify(changed, undefined, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(beside, path);
}

export function checkEnvironmentName(name: string): void {
  if (NAME.test(name)) return;
  throw new Failure(`expected a name of letters, digits, ".", "_" and "-", got "${name}"`, EXIT.usage);
}

/** Throws a Failure that lists the known environments. `withLocal`: `local` is accepted without an entry. */
export function checkKnown(name: string, known: Configuration, withLocal: boolean): void {
  const names = Object.keys(known.environments);
  if (names.includes(name) || (withLocal && name === LOCAL)) return;
  throw unknownEnvironment(name, names);
}

function unknownEnvironment(name: string, names: readonly string[]): Failure {
  const there =
    names.length === 0 ? "none is configured" : `there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`;
  return new Failure(`there is no environment "${name}": ${there}`, EXIT.usage);
}

/**
 * The environment that is used when none is named. Undefined: none is configured, or there are several to choose from.
 */
export function defaultEnvironment(known: Configuration, isLocalThere: boolean): string | undefined {
  if (known.environment !== undefined) return known.environment;
  const names = Object.keys(known.environments);
  const productions = names.filter((name) => PRODUCTION.test(name));
  if (known.environments.production !== undefined) return "production";
  if (productions.length === 1) return productions[0];
  if (names.length === 1 && !isLocalThere) return names[0];
  return isLocalThere ? LOCAL : undefined;
}

/** The address of the gateway of `wsfs start`, if there ever was one. */
export function localBaseUrl(folders: Pick<Folders, "data"> = userFolders()): string | undefined {
  const data = join(folders.data, "gateway");
  return existsSync(data) ? readGatewayRecord(data)?.baseUrl : undefined;
}

/** True if any environment can be used. */
export function hasEnvironments(folders: Folders = userFolders()): boolean {
  return (
    Object.keys(readConfiguration(configurationPath(folders)).environments).length > 0 ||
    existsSync(loginPath(LOCAL, folders))
  );
}

/**
 * The environment of a command: the one that is named, otherwise the default. Throws a Failure that lists the known
 * environments.
 */
export function chooseEnvironment(named: string | undefined, folders: Folders = userFolders()): ChosenEnvironment {
  const file = configurationPath(folders);
  const seen = existsSync(file) ? fileIdentitySync(realpathSync(file)) : fileIdentitySync(file);
  const known = readConfiguration(file);
  const local = localBaseUrl(folders);
  const name = named ?? defaultEnvironment(known, local !== undefined);
  if (name === undefined) {
    const add = 'wsfs env add production --base-url URL" names one';
    const several = Object.keys(known.environments);
    if (several.length === 0) throw new Failure(`no environment is configured: "${add}`, EXIT.usage);
    throw new Failure(
      `which environment? --env takes one of ${several.join(", ")}; "wsfs env use" chooses for good`,
      EXIT.usage,
    );
  }
  const found = known.environments[name] ?? (name === LOCAL ? {} : undefined);
  if (found === undefined) {
    throw unknownEnvironment(name, [
      ...new Set([...Object.keys(known.environments), ...(local === undefined ? [] : [LOCAL])]),
    ]);
  }
  const entry = readEntry(file, name, found);
  const baseUrl = entry["base-url"] ?? (name === LOCAL ? local : undefined);
  if (baseUrl === undefined) {
    throw new Failure(
      name === LOCAL
        ? 'there is no local gateway yet: "wsfs start" makes one'
        : `the environment "${name}" has no baseUrl: "wsfs env add ${name} --base-url URL" gives it one`,
      EXIT.usage,
    );
  }
  return { name, baseUrl, entry, file, seen, workspace: entry.workspace, loginFile: loginPath(name, folders) };
}

export const loginPath = (name: string, { state }: Pick<Folders, "state">) => join(state, "logins", `${name}.json`);
