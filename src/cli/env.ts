/** `wsfs env list|add|use|remove`: the environments in the configuration file. */
import { existsSync } from "node:fs";
import { userFolders } from "./environment.ts";
import {
  checkEnvironmentName,
  configurationPath,
  defaultEnvironment,
  LOCAL,
  localBaseUrl,
  loginPath,
  readConfiguration,
  writeConfiguration,
} from "./environments.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Values } from "./options.ts";
import { absolute } from "./working-folder.ts";

export async function envList(values: Values<"env list">): Promise<number> {
  const known = readConfiguration();
  const folders = userFolders();
  const local = localBaseUrl(folders);
  const used = process.env.WSFS_ENV || defaultEnvironment(known, local !== undefined);
  const names = new Set([...Object.keys(known.environments), ...(local === undefined ? [] : [LOCAL])]);
  const rows = [...names].sort().map((name) => ({
    name,
    baseUrl: known.environments[name]?.baseUrl ?? (name === LOCAL ? local : undefined) ?? "",
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

export async function envAdd(values: Values<"env add">): Promise<number> {
  const { NAME: name } = values.positionals;
  checkEnvironmentName(name);
  const known = readConfiguration();
  const { profile, workspace } = values;
  const before = known.environments[name]?.baseUrl;
  // Its tokens would go to the other gateway.
  if (before !== undefined && before !== values["base-url"] && existsSync(loginPath(name, userFolders()))) {
    throw new Failure(`${name} is ${before}, which you are signed in to: "wsfs logout --env ${name}" first`);
  }
  const entry = {
    ...known.environments[name],
    baseUrl: values["base-url"],
    ...(profile === undefined ? {} : { profile: absolute(profile) }),
    ...(workspace === undefined ? {} : { workspace }),
  };
  writeConfiguration({ ...known, environments: { ...known.environments, [name]: entry } });
  process.stdout.write(`${name} is ${entry.baseUrl} (in ${configurationPath()})\n`);
  return EXIT.ok;
}

export async function envUse(values: Values<"env use">): Promise<number> {
  const { NAME: name } = values.positionals;
  const known = readConfiguration();
  checkKnown(name, Object.keys(known.environments));
  writeConfiguration({ ...known, environment: name });
  process.stdout.write(`${name} is used where no --env is given\n`);
  return EXIT.ok;
}

export async function envRemove(values: Values<"env remove">): Promise<number> {
  const { NAME: name } = values.positionals;
  const { environment, environments } = readConfiguration();
  checkKnown(name, Object.keys(environments), false);
  const { [name]: _, ...others } = environments;
  writeConfiguration({
    ...(environment === undefined || environment === name ? {} : { environment }),
    environments: others,
  });
  const signedIn = existsSync(loginPath(name, userFolders()));
  const left = signedIn ? `; its login is still there: "wsfs logout --env ${name}" ends that first` : "";
  process.stdout.write(`${name} is no environment any more${left}\n`);
  return EXIT.ok;
}

function checkKnown(name: string, names: readonly string[], orLocal = true): void {
  if (names.includes(name) || (orLocal && name === LOCAL)) return;
  const there =
    names.length === 0 ? "none is configured" : `there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`;
  throw new Failure(`there is no environment "${name}": ${there}`, EXIT.usage);
}
