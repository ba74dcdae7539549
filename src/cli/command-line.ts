/**
 * The command line: builds its parser from the table in options.ts, passes the checked values to the command's own file
 * (loaded only then), and turns every failure into one line and an exit code.
 */
import "./working-folder.ts";

import yargs, { type Argv } from "yargs";
import { packageVersion } from "../daemon/version.ts";
import { explicitArguments } from "./arguments.ts";
import type { Command } from "./command.ts";
import { wantsStack } from "./environment.ts";
import { EXIT, exitCodeOf, Failure, lineOf, withoutOperation } from "./failure.ts";
import { FLAGS, type Flag, type FlagName } from "./flags.ts";
import {
  COMMANDS,
  type CommandName,
  defaultOf,
  describeMissing,
  flagName,
  missingFlags,
  type Values,
  variableOf,
} from "./options.ts";
import { guardOutput } from "./output.ts";
import { type Given, givenFlags, REST, resolveValues } from "./resolve-values.ts";

/** Resolves with the exit code. `given`: the flags whose values are not defaults. */
type Run<C extends CommandName> = (values: Values<C>, given: ReadonlySet<FlagName>) => Promise<number>;

const RUN: { readonly [C in CommandName]: () => Promise<Run<C>> } = {
  start: async () => (await import("./start.ts")).start,
  mount: async () => (await import("./mount.ts")).mount,
  status: async () => (await import("./status.ts")).status,
  queue: async () => (await import("./queue.ts")).queue,
  "queue retry": async () => (await import("./queue-retry.ts")).queueRetry,
  drain: async () => (await import("./drain.ts")).drain,
  umount: async () => (await import("./umount.ts")).umount,
  reload: async () => (await import("./reload.ts")).reload,
  list: async () => (await import("./history/list.ts")).list,
  versions: async () => (await import("./history/versions.ts")).versions,
  diff: async () => (await import("./history/diff.ts")).diff,
  restore: async () => (await import("./history/restore.ts")).restore,
  undelete: async () => (await import("./history/undelete.ts")).undelete,
  log: async () => (await import("./history/log.ts")).log,
  undo: async () => (await import("./history/undo.ts")).undo,
  gateway: async () => (await import("./gateway.ts")).gateway,
  "gateway token": async () => (await import("./gateway-token.ts")).gatewayToken,
  "gateway user": async () => (await import("./gateway-user.ts")).userList,
  "gateway user add": async () => (await import("./gateway-user.ts")).userAdd,
  "gateway user list": async () => (await import("./gateway-user.ts")).userList,
  "gateway user remove": async () => (await import("./gateway-user.ts")).userRemove,
  "gateway user password": async () => (await import("./gateway-user.ts")).userPassword,
  "gateway engine": async () => (await import("./gateway-engine.ts")).engineList,
  "gateway engine add": async () => (await import("./gateway-engine.ts")).engineAdd,
  "gateway engine list": async () => (await import("./gateway-engine.ts")).engineList,
  "gateway engine show": async () => (await import("./gateway-engine.ts")).engineShow,
  "gateway engine remove": async () => (await import("./gateway-engine.ts")).engineRemove,
  "gateway grant": async () => (await import("./gateway-user.ts")).userList,
  "gateway grant set": async () => (await import("./gateway-user.ts")).grantSet,
  "gateway grant remove": async () => (await import("./gateway-user.ts")).grantRemove,
  "gateway policy": async () => (await import("./gateway-retention.ts")).policyShow,
  "gateway policy set": async () => (await import("./gateway-retention.ts")).policySet,
  "gateway prune": async () => (await import("./gateway-retention.ts")).gatewayPrune,
  "gateway backup": async () => (await import("./gateway-backup.ts")).gatewayBackup,
  "gateway restore": async () => (await import("./gateway-backup.ts")).gatewayRestore,
  login: async () => (await import("./login.ts")).login,
  logout: async () => (await import("./logout.ts")).logout,
  whoami: async () => (await import("./whoami.ts")).whoami,
  token: async () => (await import("./token.ts")).token,
  call: async () => (await import("./call.ts")).call,
  env: async () => (await import("./env.ts")).envList,
  "env list": async () => (await import("./env.ts")).envList,
  "env add": async () => (await import("./env.ts")).envAdd,
  "env show": async () => (await import("./env.ts")).envShow,
  "env set": async () => (await import("./env-set.ts")).envSet,
  "env unset": async () => (await import("./env-set.ts")).envUnset,
  "env use": async () => (await import("./env.ts")).envUse,
  "env remove": async () => (await import("./env.ts")).envRemove,
  workspaces: async () => (await import("./workspaces.ts")).workspacesList,
  "workspaces list": async () => (await import("./workspaces.ts")).workspacesList,
  "workspaces create": async () => (await import("./workspaces.ts")).workspacesCreate,
  engines: async () => (await import("./engines.ts")).enginesList,
  "engines list": async () => (await import("./engines.ts")).enginesList,
  "engines show": async () => (await import("./engines.ts")).enginesShow,
  installations: async () => (await import("./engines.ts")).installationsList,
  "installations list": async () => (await import("./engines.ts")).installationsList,
  "installations create": async () => (await import("./engines.ts")).installationsCreate,
  "installations remove": async () => (await import("./engines.ts")).installationsRemove,
  executions: async () => (await import("./executions.ts")).executionsList,
  "executions list": async () => (await import("./executions.ts")).executionsList,
  "executions run": async () => (await import("./executions.ts")).executionsRun,
  "executions show": async () => (await import("./executions.ts")).executionsShow,
  "executions logs": async () => (await import("./executions.ts")).executionsLogs,
  "executions cancel": async () => (await import("./executions.ts")).executionsCancel,
  keys: async () => (await import("./keys.ts")).keysList,
  "keys list": async () => (await import("./keys.ts")).keysList,
  "keys create": async () => (await import("./keys.ts")).keysCreate,
  "keys revoke": async () => (await import("./keys.ts")).keysRevoke,
  triggers: async () => (await import("./triggers.ts")).triggersList,
  "triggers list": async () => (await import("./triggers.ts")).triggersList,
  "triggers create": async () => (await import("./triggers.ts")).triggersCreate,
  "triggers show": async () => (await import("./triggers.ts")).triggersShow,
  "triggers enable": async () => (await import("./triggers.ts")).triggersEnable,
  "triggers disable": async () => (await import("./triggers.ts")).triggersDisable,
  "triggers remove": async () => (await import("./triggers.ts")).triggersRemove,
};

/** The chosen command. It is thrown out of the parser, because yargs would write the command's help after its run. */
class Chosen extends Error {
  readonly run: () => Promise<number>;
  constructor(run: () => Promise<number>) {
    super("a command was chosen");
    this.run = run;
  }
}

async function main(words: readonly string[]): Promise<number> {
  const { argv, rest } = splitRest(words);
  const choose = <C extends CommandName>(name: C, given: Given): never => {
    throw new Chosen(async () => {
      const values = resolveValues(name, { ...given, [REST]: rest });
      const command = await RUN[name]();
      return command(values, givenFlags(name, given));
    });
  };
  const program = yargs(explicitArguments(argv, flagNamesOf(nameOf(argv))))
    .scriptName("wsfs")
    .usage("wsfs COMMAND: a workspace of a remote platform, mounted as a drive")
    .parserConfiguration({ "boolean-negation": false, "camel-case-expansion": false, "parse-numbers": false })
    .version(packageVersion())
    .help()
    .alias("help", "h")
    .strict()
    .demandCommand(1, "expected a command; wsfs --help lists them")
    .wrap(Math.min(120, process.stdout.columns ?? 100))
    .exitProcess(false)
    .fail((message, error) => {
      if (error !== undefined && error.name !== "YError") throw error;
      throw new Failure(usageMessage(message, argv), EXIT.usage);
    });
  if (!takesFolder(argv[0] ?? "")) program.recommendCommands();
  const addCommands = (parser: Argv, prefix: string): void => {
    for (const name of Object.keys(COMMANDS) as CommandName[]) {
      const word = name.slice(prefix.length);
      if (!name.startsWith(prefix) || word.includes(" ")) continue;
      parser.command(
        usageOf(name, word),
        COMMANDS[name].summary,
        (inner) => {
          declare(inner, name);
          addCommands(inner, `${name} `);
        },
        (given) => choose(name, given),
      );
    }
  };
  addCommands(program, "");
  try {
    program.parse();
  } catch (error) {
    if (error instanceof Chosen) return error.run();
    throw error;
  }
  return EXIT.ok;
}

/** If the command takes words after "--", the parser does not get them. For other commands "--" only ends the flags. */
function splitRest(words: readonly string[]): { readonly argv: readonly string[]; readonly rest: readonly string[] } {
  const name = nameOf(words);
  const at = words.indexOf("--");
  if (at === -1 || !isCommand(name) || (COMMANDS[name] as Command).rest === undefined) return { argv: words, rest: [] };
  return { argv: words.slice(0, at), rest: words.slice(at + 1) };
}

const flagNamesOf = (name: string) => (isCommand(name) ? (COMMANDS[name] as Command).flags.map(flagName) : []);

/** The name of the command that the line begins with; its first word if that is no command. */
const nameOf = (argv: readonly string[]) =>
  [3, 2, 1].map((count) => argv.slice(0, count).join(" ")).find(isCommand) ?? argv[0] ?? "";

/** Replaces a message of the parser by our own text, with the dashes that the user typed. */
function usageMessage(message: string, argv: readonly string[]): string {
  const [, unknown] = /^Unknown arguments?: (.*)$/.exec(message) ?? [];
  const word = unknownCommand(argv);
  if (word !== undefined)
    return `unknown command: ${word}${message.startsWith("Did you mean") ? `. ${message}` : "; wsfs --help lists them"}`;
  if (unknown !== undefined) {
    const typed = unknown.split(", ").map((name) => {
      return (
        argv.map((argument) => argument.split("=", 1)[0]).find((word) => word?.replace(/^--?/, "") === name) ?? name
      );
    });
    return `unknown argument: ${typed.join(", ")}`;
  }
  const [, flag] = /^Not enough arguments following: (.*)$/.exec(message) ?? [];
  if (flag !== undefined) return `--${flag} needs a value`;
  if (message.startsWith("Not enough non-option arguments")) return folderNeeded(argv);
  return message;
}

function folderNeeded(argv: readonly string[]): string {
  const name = nameOf(argv);
  if (!isCommand(name)) return `${name} needs a folder: wsfs ${name} DIR`;
  const { positionals }: Command = COMMANDS[name];
  if (positionals !== undefined)
    return `${name} needs ${positionals.join(" and ")}: wsfs ${name} ${positionals.join(" ")}`;
  const typed = (option: string) => argv.some((word) => word === option || word.startsWith(`${option}=`));
  const missing = missingFlags(name, typed);
  if (missing.length === 0) return `${name} needs a folder: wsfs ${name} DIR`;
  return `${name} needs ${describeMissing(missing, ["a folder DIR"])}`;
}

/** True if the next word is a folder. It is no mistyped command then, even if it looks like one. */
function takesFolder(name: string): boolean {
  return isCommand(name) && COMMANDS[name].dir !== "none";
}

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}

/** The line up to the first word that should be a command but is not. */
function unknownCommand(argv: readonly string[]): string | undefined {
  const names: readonly string[] = Object.keys(COMMANDS);
  let known = "";
  for (const word of argv) {
    if (word === "" || word.startsWith("-")) return undefined;
    const name = known === "" ? word : `${known} ${word}`;
    const isThere = names.some((other) => other === name || other.startsWith(`${name} `));
    if (!isThere) return name;
    known = name;
    if (takesFolder(name) || !names.some((other) => other.startsWith(`${name} `))) return undefined;
  }
  return undefined;
}

function usageOf(name: CommandName, word: string): string {
  const { dir, paths, positionals = [], optional = [] }: Command = COMMANDS[name];
  const needed = [...positionals.map((word) => ` <${word}>`), ...optional.map((word) => ` [${word}]`)].join("");
  const folder = dir === "none" ? "" : dir === "required" ? " <DIR>" : " [DIR]";
  return `${word}${needed}${folder}${paths === true ? " [PATH..]" : ""}`;
}

function declare(parser: Argv, name: CommandName): void {
  const command: Command = COMMANDS[name];
  if (command.paths === true) parser.positional("PATH", { type: "string", describe: "What to try: with all below it" });
  for (const word of [...(command.positionals ?? []), ...(command.optional ?? [])])
    parser.positional(word, { type: "string" });
  if (command.rest !== undefined) {
    parser.usage(
      `$0 ${name} ${(command.positionals ?? []).join(" ")} [flags] -- ${command.rest}…\n\n${command.summary}`,
    );
  }
  if (command.dir !== "none") parser.positional("DIR", { type: "string", describe: "The folder of the mount" });
  // Otherwise --version would be the parser's own, which prints the release.
  if (command.flags.includes("file-version")) parser.version(false);
  for (const flag of command.flags) parser.option(flagName(flag), describe(name, flag));
  const examples = command.examples.map(([line, meaning]) => `  ${line}\n      ${meaning}`);
  const notes = (command.notes ?? []).map((note) => `${note}\n`);
  parser.epilogue(`${notes.join("")}${notes.length === 0 ? "" : "\n"}Examples:\n${examples.join("\n")}`);
}

function describe(command: CommandName, name: FlagName) {
  const flag: Flag = FLAGS[name];
  const { required = [], orEnvironment, hidden = [], changes, positionals }: Command = COMMANDS[command];
  const before = changes === true && flag.type === "value" ? "default: as before" : undefined;
  const byDefault = defaultOf(flag);
  const defaultNote = byDefault === undefined ? undefined : `default: ${byDefault}`;
  const otherwise = changes === true ? [before] : [defaultNote, variableOf(name)];
  const notes = [required.includes(name) && orEnvironment !== true ? "required" : undefined, ...otherwise].filter(
    (note) => note !== undefined,
  );
  const placeholder = flag.type === "switch" ? "" : `${flag.kind.placeholder}: `;
  return {
    type: flag.type === "switch" ? ("boolean" as const) : ("string" as const),
    requiresArg: flag.type === "value" || flag.type === "list",
    // Commands with lists have no folder that a list could swallow.
    array: flag.type === "list",
    // Otherwise a list would swallow the words behind it.
    ...(flag.type === "list" && positionals !== undefined ? { nargs: 1 } : {}),
    // Commands below this one do not inherit the flag.
    global: false,
    describe: `${placeholder}${flag.help}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`,
    hidden: hidden.includes(name),
  };
}

/** The client's messages begin with an operation. It is replaced by the command that the user ran. */
function lineFor(error: unknown, argv: readonly string[]): string {
  const line = lineOf(error);
  const rest = withoutOperation(line);
  return rest === line ? line : `${nameOf(argv)}: ${rest}`;
}

const LAST_WORDS_MS = 1000;

/** Ends the process when all output is written. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const output = guardOutput();
  let exitCode: number;
  try {
    exitCode = await main(argv);
  } catch (error) {
    if (!(error instanceof Failure && error.shown)) process.stderr.write(`wsfs: ${lineFor(error, argv)}\n`);
    if (wantsStack(argv) && error instanceof Error) console.error(error);
    exitCode = exitCodeOf(error);
  }
  // A handle that a command left open must not keep the process alive. Output must still reach its reader.
  const end = () => {
    const why = exitCode === EXIT.ok ? output.why() : undefined;
    if (why !== undefined) {
      exitCode = EXIT.failure;
      process.stderr.write(`wsfs: ${why}\n`);
    }
    process.stderr.write("", () => process.exit(exitCode));
  };
  // The error of a failed write arrives a moment later.
  process.stdout.write("", () => setImmediate(end));
  setTimeout(() => process.exit(exitCode), LAST_WORDS_MS);
}
