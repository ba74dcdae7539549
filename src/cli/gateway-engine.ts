/**
 * `wsfs gateway engine …`: the engines of a local gateway, whether it runs or not. They are never changed over HTTP.
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { SCOPES } from "../contract/scopes.ts";
import { EXIT, Failure } from "./failure.ts";
import { withAccounts } from "./gateway-user.ts";
import type { Values } from "./options.ts";
import { printable } from "./wording.ts";
import { absolute } from "./working-folder.ts";

type Engines = import("../gateway/accounts/index.ts").Engines;
type EngineEntry = import("../gateway/accounts/index.ts").EngineEntry;

/** The files of the workspace and nothing else. */
const DEFAULT_SCOPES = SCOPES.filter((scope) => scope.startsWith("node."));

export async function engineAdd(values: Values<"gateway engine add">): Promise<number> {
  const { checkSchema } = await import("../gateway/engines/index.ts");
  const inputSchema = values["input-schema"] === undefined ? null : readSchema(values["input-schema"]);
  return withAccounts(values.data, async ({ engines }) => {
    if (inputSchema !== null) checkSchema(inputSchema);
    const scopes = values["engine-scope"];
    const [program = "", ...rest] = values.rest;
    // The engine runs in another folder, so that a relative path must be made absolute.
    const command = [program.includes("/") ? absolute(program) : program, ...rest];
    const engine = engines.add({
      name: values.positionals.NAME,
      description: values.description,
      command,
      timeLimitSeconds: values["time-limit"],
      scopes: scopes.length > 0 ? [...new Set(scopes)] : DEFAULT_SCOPES,
      inputSchema,
    });
    process.stdout.write(`There is an engine ${engine.name}\n`);
    for (const word of rest) {
      if (path.isAbsolute(word) || !existsSync(absolute(word))) continue;
      process.stderr.write(
        `wsfs: ${printable(word)} is there, but the engine runs in another folder: name it by its whole path\n`,
      );
    }
    return EXIT.ok;
  });
}

export async function engineList(values: Values<"gateway engine list">): Promise<number> {
  return withAccounts(values.data, async ({ engines }) => {
    const all = engines.list();
    if (values.json) process.stdout.write(all.map((one) => `${JSON.stringify(asJson(one))}\n`).join(""));
    else if (all.length === 0) process.stdout.write("There are no engines. wsfs gateway engine add makes one.\n");
    else {
      const width = Math.max(...all.map(({ name }) => name.length));
      process.stdout.write(all.map((one) => `${one.name.padEnd(width)}  ${commandLine(one)}\n`).join(""));
    }
    return EXIT.ok;
  });
}

export async function engineShow(values: Values<"gateway engine show">): Promise<number> {
  return withAccounts(values.data, async ({ engines }) => {
    const engine = required(engines, values.positionals.NAME);
    if (values.json) process.stdout.write(`${JSON.stringify(asJson(engine))}\n`);
    else {
      const { name, id, description, timeLimitSeconds, scopes, inputSchema } = engine;
      const lines = [
        ["name", name],
        ["id", id],
        ["description", description === "" ? "none" : printable(description)],
        ["command", commandLine(engine)],
        ["time limit", `${timeLimitSeconds} s`],
        ["scopes", scopes.join(" ")],
        ["input", inputSchema === null ? "any JSON" : JSON.stringify(inputSchema)],
      ];
      process.stdout.write(lines.map(([word = "", value]) => `${word.padEnd(11)}  ${value}\n`).join(""));
    }
    return EXIT.ok;
  });
}

export async function engineRemove(values: Values<"gateway engine remove">): Promise<number> {
  return withAccounts(values.data, async ({ engines }) => {
    const engine = required(engines, values.positionals.NAME);
    engines.remove(engine.id);
    process.stdout.write(`There is no engine ${engine.name} any more\n`);
    return EXIT.ok;
  });
}

const asJson = ({ createdAt, ...rest }: EngineEntry) => ({ ...rest, createdAt: new Date(createdAt).toISOString() });

/** The command as it would be typed in a shell. */
const commandLine = ({ command }: EngineEntry) =>
  command
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${printable(word).replaceAll("'", "'\\''")}'`))
    .join(" ");

function required(engines: Engines, name: string): EngineEntry {
  const engine = engines.find(name);
  if (engine !== undefined) return engine;
  const names = engines.list().map((one) => one.name);
  const others =
    names.length === 0 ? "there is none" : `there ${names.length === 1 ? "is" : "are"} ${names.join(", ")}`;
  throw new Failure(`there is no engine ${name}; ${others}`);
}

function readSchema(file: string): Record<string, unknown> {
  let schema: unknown;
  try {
    schema = JSON.parse(readFileSync(absolute(file), "utf8"));
  } catch (cause) {
    const why = cause instanceof SyntaxError ? "it is no JSON" : (cause as NodeJS.ErrnoException).code;
    throw new Failure(`--input-schema: ${file} cannot be read (${why})`, EXIT.failure, { cause });
  }
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return { ...schema };
  throw new Failure(`--input-schema: ${file} is no JSON Schema: expected an object`);
}
