/** The values of flags and variables, checked by the table of flags, with defaults for the others. */
import type { Command } from "./command.ts";
import { EXIT, Failure } from "./failure.ts";
import { FLAGS, type Flag, type FlagName } from "./flags.ts";
import { COMMANDS, type CommandName, describeMissing, flagName, type Values, variableOf } from "./options.ts";
import * as values from "./values.ts";

/** The name in `Given` for the words after "--". */
export const REST = "--";

/** The values that the parser found, by the flag's name on the command line. Absent: not given. */
export type Given = Readonly<Record<string, unknown>>;

/** Flags override variables, variables override defaults. Throws a Failure (usage) that names the flag or variable. */
export function resolveValues<C extends CommandName>(
  commandName: C,
  given: Given,
  environment: NodeJS.ProcessEnv = process.env,
): Values<C> {
  const command: Command = COMMANDS[commandName];
  const result: Record<string, unknown> = { dir: dirOf(commandName, command, given.DIR) };
  if (command.paths === true) result.paths = pathsOf(commandName, given.PATH);
  const missing: FlagName[] = [];
  if (command.positionals !== undefined) result.positionals = positionalsOf(commandName, command.positionals, given);
  if (command.optional !== undefined) result.optional = optionalOf(commandName, command.optional, given);
  if (command.rest !== undefined) result.rest = restOf(commandName, command.rest, given[REST]);
  for (const name of command.flags) {
    const flag: Flag = FLAGS[name];
    const option = `--${flagName(name)}`;
    const variable = command.changes === true ? undefined : variableOf(name);
    const fromFlag = given[flagName(name)];
    const fromVariable = variable === undefined ? undefined : environment[variable] || undefined;
    const [source, raw] = fromFlag === undefined && variable ? [variable, fromVariable] : [option, fromFlag];
    const otherwise = () => (command.changes === true ? undefined : defaultOf(flag));
    const value = raw === undefined ? otherwise() : checkedValue(flag, source, raw);
    const isNeeded = command.required?.includes(name) === true && command.orEnvironment !== true;
    if (isNeeded && raw === undefined) missing.push(name);
    result[name] = value;
  }
  if (missing.length > 0) throw new Failure(`${commandName} needs ${describeMissing(missing)}`, EXIT.usage);
  return result as Values<C>;
}

/** The flags that are given on the command line or by a variable. */
export function givenFlags(
  name: CommandName,
  given: Given,
  environment: NodeJS.ProcessEnv = process.env,
): ReadonlySet<FlagName> {
  const { flags, changes }: Command = COMMANDS[name];
  const byVariable = (flag: FlagName) => changes !== true && Boolean(environment[variableOf(flag) ?? ""]);
  return new Set(flags.filter((flag) => given[flagName(flag)] !== undefined || byVariable(flag)));
}

function dirOf(name: string, command: Command, given: unknown): string | undefined {
  if (typeof given === "string" && given !== "") return given;
  if (given === "") throw new Failure(`${name}: expected a folder as DIR, got ""`, EXIT.usage);
  if (command.dir === "required") throw new Failure(`${name} needs a folder: wsfs ${name} DIR`, EXIT.usage);
  return undefined;
}

function positionalsOf(name: string, words: readonly string[], given: Given): Record<string, string> {
  const entries = words.map((word): [string, string] => {
    const value = given[word];
    if (typeof value === "string" && value !== "") return [word, value];
    throw new Failure(`${name} needs ${word}: wsfs ${name} ${words.join(" ")}`, EXIT.usage);
  });
  return Object.fromEntries(entries);
}

function optionalOf(name: string, words: readonly string[], given: Given): Record<string, string | undefined> {
  const entries = words.map((word): [string, string | undefined] => {
    const value = given[word];
    if (value === "") throw new Failure(`${name}: expected something as ${word}, got ""`, EXIT.usage);
    return [word, typeof value === "string" ? value : undefined];
  });
  return Object.fromEntries(entries);
}

function restOf(name: string, word: string, given: unknown): string[] {
  const words: string[] = Array.isArray(given) ? given.map(String) : [];
  if (words.length > 0 && words[0] !== "") return words;
  throw new Failure(`${name} needs a command after "--": wsfs ${name} … -- ${word}…`, EXIT.usage);
}

function pathsOf(name: string, given: unknown): string[] {
  const paths: unknown[] = Array.isArray(given) ? given : [];
  return paths.map((path) => {
    if (typeof path !== "string" || path === "")
      throw new Failure(`${name}: expected a path as PATH, got ""`, EXIT.usage);
    return path;
  });
}

function defaultOf(flag: Flag): unknown {
  if (flag.type === "switch") return false;
  if (flag.type === "list") return [];
  return flag.type === "value" ? flag.default : undefined;
}

/** Throws a Failure (usage) with the source of the text, the expected form and the text. */
export function checkedValue(flag: Flag, source: string, raw: unknown): unknown {
  if (flag.type === "switch") return typeof raw === "boolean" ? raw : parseAt(source, raw, values.parseSwitch);
  if (flag.type === "list") {
    const items: unknown[] = Array.isArray(raw) ? raw : [raw];
    return items.map((item) => parseAt(source, item, flag.kind.parse));
  }
  if (Array.isArray(raw)) throw new Failure(`${source} may be given only once`, EXIT.usage);
  if (flag.type === "optionalValue" && raw === "") return true;
  return parseAt(source, raw, flag.kind.parse);
}

function parseAt<T>(source: string, raw: unknown, parse: (text: string) => T): T {
  const given = String(raw);
  try {
    return parse(given);
  } catch (cause) {
    const expected = cause instanceof Error ? cause.message : String(cause);
    // A password in an address must not get into a log.
    const shown = given.replace(/(?<=:\/\/)[^/@]*@/, "…@");
    throw new Failure(`${source}: expected ${expected}, got "${shown}"`, EXIT.usage, { cause });
  }
}
