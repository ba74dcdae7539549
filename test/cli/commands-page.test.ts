/** docs/user/commands.md, made of the table of commands (`npm run docs` writes it), and the README's few. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Command } from "../../src/cli/command.ts";
import { FLAGS, type Flag, type FlagName } from "../../src/cli/flags.ts";
import { COMMANDS, type CommandName, flagName, variableOf } from "../../src/cli/options.ts";

const PAGE = fileURLToPath(new URL("../../docs/user/commands.md", import.meta.url));
const INTRODUCTION = `# Commands

This page is made from the table of commands (\`src/cli/options.ts\`) by \`npm run docs\`. Every command takes \`--help\`. It also
takes \`--debug\` (or \`WSFS_DEBUG=1\`), which logs everything and shows the stack of an error.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | it failed |
| 2 | the command line was not understood |
| 3 | nothing is mounted there |
| 4, 5 | \`wsfs call\` only: the gateway refused the call, the gateway failed |
`;

/** Of a heading, as GitHub makes it. */
const anchorOf = (name: string) => `#wsfs-${name.replaceAll(" ", "-")}`;

function contents(names: readonly CommandName[]): string {
  const rows = names.map((name) => `| [wsfs ${name}](${anchorOf(name)}) | ${COMMANDS[name].summary} |`);
  return ["| command | what it does |", "| --- | --- |", ...rows, ""].join("\n");
}

function section(name: CommandName): string {
  const command: Command = COMMANDS[name];
  const hidden: readonly FlagName[] = command.hidden ?? [];
  const optional = (command.optional ?? []).map((word) => `[${word}]`);
  const words = [
    ...(command.positionals ?? []),
    ...optional,
    { required: "DIR", optional: "[DIR]", none: "" }[command.dir],
  ];
  const rest = command.rest === undefined ? [] : ["[flags]", "--", `${command.rest} ...`];
  const paths = command.paths === true ? ["[PATH ...]"] : [];
  const usage = ["wsfs", name, ...words, ...paths, ...rest].filter((word) => word !== "");
  const flags = command.flags.filter((flag) => flag !== "debug" && !hidden.includes(flag));
  const rows = flags.map((flag) =>
    row(flag, command.required?.includes(flag) === true, command.orEnvironment === true),
  );
  const examples = command.examples.map(([line, meaning]) => (meaning === "" ? line : `${line}    # ${meaning}`));
  return [
    `## wsfs ${name}`,
    "",
    `${command.summary}.`,
    "",
    ...["```", usage.join(" "), "```", ""],
    ...(command.notes === undefined ? [] : [command.notes.join(" "), ""]),
    ...(rows.length === 0 ? [] : ["| flag | variable | meaning |", "| --- | --- | --- |", ...rows, ""]),
    ...["```", ...examples, "```", ""],
  ].join("\n");
}

function row(name: FlagName, isRequired: boolean, orEnvironment: boolean): string {
  const flag: Flag = FLAGS[name];
  const value =
    flag.type === "switch" ? "" : flag.type === "optionalValue" ? `[=${placeholder(flag)}]` : ` ${placeholder(flag)}`;
  const many = flag.type === "list" ? " ..." : "";
  const otherwise = "defaultHelp" in flag ? flag.defaultHelp : "default" in flag ? flag.default : undefined;
  const notes = [
    isRequired ? `required${orEnvironment ? ", here or by the environment" : ""}` : undefined,
    otherwise === undefined ? undefined : `default: ${String(otherwise)}`,
  ];
  const note = notes.filter((one) => one !== undefined).join("; ");
  const variable = variableOf(name);
  const cells = [
    `\`--${flagName(name)}${value}${many}\``,
    variable === undefined ? "" : `\`${variable}\``,
    `${flag.help}${note === "" ? "" : ` (${note})`}`,
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

const placeholder = (flag: Exclude<Flag, { type: "switch" }>) => flag.kind.placeholder;

test("docs/user/commands.md is what the table of commands gives", () => {
  const names = Object.keys(COMMANDS) as CommandName[];
  const made = [INTRODUCTION, contents(names), ...names.map(section)].join("\n");
  if (process.env.WSFS_WRITE_TABLES === "1") writeFileSync(PAGE, made);
  expect(readFileSync(PAGE, "utf8")).toBe(made);
});

test("every command that the README shows is one, and it shows five", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const shown = /## Commands\n[\s\S]*?```\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const lines = shown.split("\n").filter((line) => line !== "");
  expect(lines).toHaveLength(5);
  const named = lines.flatMap((line) => {
    const [, usage = ""] = /^wsfs (.+?)(?: {2}|$)/.exec(line) ?? [];
    return usage.split(", ").map((one) => one.split(" ")[0] ?? "");
  });
  expect(named.filter((name) => !Object.keys(COMMANDS).includes(name))).toEqual([]);
});
