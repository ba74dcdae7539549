/** `wsfs env list|add|show|use|remove`: the environments in the configuration file. */
import { existsSync } from "node:fs";
import { userFolders } from "./environment.ts";
import { type Entry, FILE_FLAGS, keyOf } from "./environment-entry.ts";
import {
  changeConfiguration,
  checkEnvironmentName,
  checkKnown,
  chooseEnvironment,
  configurationPath,
  defaultEnvironment,
  LOCAL,
  localBaseUrl,
  loginPath,
  readConfiguration,
} from "./environments.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Values } from "./options.ts";
import { printable } from "./wording.ts";
import { absolute } from "./working-folder.ts";

export async function envList(values: Values<"env list">): Promise<number> {
  const known = readConfiguration();
  const folders = userFolders();
  const local = localBaseUrl(folders);
  const used = usedEnvironment();
  const names = new Set([...Object.keys(known.environments), ...(local === undefined ? [] : [LOCAL])]);
  const rows = [...names].sort().map((name) => ({
    name,
    baseUrl: String(known.environments[name]?.baseUrl ?? (name === LOCAL ? local : undefined) ?? ""),
    workspace: known.environments[name]?.workspace,
    isDefault: name === used,
    isSignedIn: existsSync(loginPath(name, folders)),
  }));
  if (values.json) process.stdout.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  else if (rows.length === 0)
    process.stdout.write("No environment is configured. wsfs env add NAME --base-url URL adds one.\n");
  else {
    const width = Math.max(...rows.map(({ name }) => name.length));
    const lines = rows.map(({ name, baseUrl, isDefault, isSignedIn }) => {
      return `${isDefault ? "*" : " "} ${name.padEnd(width)}  ${baseUrl}${isSignedIn ? "  (signed in)" : ""}\n`;
    });
    process.stdout.write(lines.join(""));
  }
  return EXIT.ok;
}

/** The name of the environment of commands without --env. Undefined: there are several to choose from. */
function usedEnvironment(): string | undefined {
  return process.env.WSFS_ENV || defaultEnvironment(readConfiguration(), localBaseUrl() !== undefined);
}

export async function envAdd(values: Values<"env add">): Promise<number> {
  const { NAME: name } = values.positionals;
  checkEnvironmentName(name);
  const { "base-url": baseUrl, profile, workspace, issuer } = values;
  await changeConfiguration((known) => {
    checkMove(name, known.environments[name], baseUrl);
    const entry = {
      ...known.environments[name],
      baseUrl,
      ...(profile === undefined ? {} : { profile: absolute(profile) }),
      ...(workspace === undefined ? {} : { workspace }),
      ...(issuer === undefined ? {} : { issuer }),
    };
    return { ...known, environments: { ...known.environments, [name]: entry } };
  });
  process.stdout.write(`${name} is ${baseUrl} (in ${configurationPath()})\n`);
  const used = usedEnvironment();
  if (used !== name) {
    const now = used === undefined ? "No environment" : used;
    process.stdout.write(`${now} is used where no --env is given; "wsfs env use ${name}" changes that\n`);
  }
  return EXIT.ok;
}

/**
 * Refuses another base URL while a login is saved: the tokens of that login would go to another gateway. Throws a
 * Failure.
 */
export function checkMove(name: string, before: Entry | undefined, baseUrl: string | undefined): void {
  const addressOf = (given: Entry["baseUrl"] | undefined) => given ?? (name === LOCAL ? localBaseUrl() : undefined);
  const address = addressOf(before?.baseUrl);
  const isMoved = address !== undefined && address !== addressOf(baseUrl);
  if (!isMoved || !existsSync(loginPath(name, userFolders()))) return;
  throw new Failure(`${name} is ${address}, which you are signed in to: "wsfs logout --env ${name}" first`);
}

export async function envShow(values: Values<"env show">): Promise<number> {
  const { NAME: name } = values.positionals;
  if (values.settings) {
    const { entrySettings } = await import("./entry-settings.ts");
    process.stdout.write(`${JSON.stringify(entrySettings(chooseEnvironment(name)))}\n`);
    return EXIT.ok;
  }
  const known = readConfiguration();
  checkKnown(name, known, true);
  const { entry, baseUrl, loginFile } = chooseEnvironment(name);
  const all: Partial<Record<string, unknown>> = { "base-url": baseUrl, ...entry };
  const isSignedIn = existsSync(loginFile);
  const given = known.environments[name] ?? {};
  // The values as they are written in the file: "20G", not the bytes.
  const rows = FILE_FLAGS.flatMap((flag): [string, unknown][] => {
    const key = keyOf(flag);
    return all[flag] === undefined ? [] : [[key, given[key] ?? all[flag]]];
  });
  if (values.json) process.stdout.write(`${JSON.stringify({ name, isSignedIn, ...Object.fromEntries(rows) })}\n`);
  else process.stdout.write(rows.map(([key, value]) => `${key.padEnd(13)}  ${printable(String(value))}\n`).join(""));
  return EXIT.ok;
}

export async function envUse(values: Values<"env use">): Promise<number> {
  const { NAME: name } = values.positionals;
  await changeConfiguration((known) => {
    checkKnown(name, known, true);
    return { ...known, environment: name };
  });
  process.stdout.write(`${name} is used where no --env is given\n`);
  return EXIT.ok;
}

export async function envRemove(values: Values<"env remove">): Promise<number> {
  const { NAME: name } = values.positionals;
  await changeConfiguration((known) => {
    const { environment, environments } = known;
    checkKnown(name, known, false);
    // Without the entry, no command could sign out, and the next environment of this name would get the login's tokens.
    checkMove(name, environments[name], undefined);
    const { [name]: _, ...others } = environments;
    return { ...(environment === undefined || environment === name ? {} : { environment }), environments: others };
  });
  process.stdout.write(`${name} is no environment any more\n`);
  return EXIT.ok;
}
