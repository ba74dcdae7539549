/** Prepares the command line for its parser: words that the parser would misread are made explicit or refused. */
import { EXIT, Failure } from "./failure.ts";
import { FLAGS, type Flag, type FlagName } from "./flags.ts";
import { parseSwitch } from "./values.ts";

/** The parser's own switches. */
const PARSERS_OWN = ["help", "version"];

/** `taken`: names of the command's own flags, which hide the parser's. Throws a Failure (usage). */
export function explicitArguments(argv: readonly string[], taken: readonly string[] = []): string[] {
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
  const given = new Set<string>();
  const own = PARSERS_OWN.filter((name) => !taken.includes(name));
  return argv.map((argument, index) => (index < end ? explicit(argument, given, own) : argument));
}

function explicit(argument: string, given: Set<string>, own: readonly string[]): string {
  const [, name = "", value] = /^--([^=]+)(?:=(.*))?$/s.exec(argument) ?? [];
  const flag: Flag | undefined = Object.hasOwn(FLAGS, name) ? FLAGS[name as FlagName] : undefined;
  const isSwitch = flag?.type === "switch" || own.includes(name);
  // Other flags that are given twice become a list in the parser.
  if (isSwitch && given.has(name)) throw new Failure(`--${name} may be given only once`, EXIT.usage);
  given.add(name);
  // Without "=", the parser would take the next word for the value.
  if (flag?.type === "optionalValue" && value === undefined) return `${argument}=`;
  if (!isSwitch || value === undefined) return argument;
  return `--${name}=${switchValue(name, value)}`;
}

/** Needed because the parser takes every value but "true" for false. */
function switchValue(name: string, given: string): boolean {
  try {
    return parseSwitch(given);
  } catch {
    throw new Failure(`--${name}: expected no value, or 1 or 0, got "${given}"`, EXIT.usage);
  }
}
