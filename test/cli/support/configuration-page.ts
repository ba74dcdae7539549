/** docs/user/settings.md, made of the tables of flags and commands. Knows nothing of how they are parsed. */

import type { Command } from "../../../src/cli/command.ts";
import { FILE_FLAGS, type FileFlag, keyOf } from "../../../src/cli/environment-entry.ts";
import { FLAGS, type Flag, type FlagName } from "../../../src/cli/flags.ts";
import { COMMANDS, defaultOf, flagName, variableOf } from "../../../src/cli/options.ts";
import { ON_RELOAD } from "../../../src/daemon/reload-settings.ts";

const EXAMPLE = {
  environment: "production",
  environments: {
    production: { baseUrl: "https://gateway.example.com", workspace: "main", cacheSize: "20G" },
    uat: { baseUrl: "https://uat.example.com", issuer: "https://login.example.com", readOnly: true },
  },
};

const row = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [row(head), row(head.map(() => "---")), ...rows.map(row)].join("\n");
const code = (text: string | undefined) => (text === undefined ? "" : `\`${text}\``);
const valuesOf = (flag: Flag) => (flag.type === "switch" ? "`true`, `false`" : code(flag.kind.placeholder));
/** On the command line. */
const flagOf = (name: FlagName) => code(`--${flagName(name)}`);

function whileMounted(name: FileFlag): string {
  const { setting }: Flag = FLAGS[name];
  if (setting === undefined) return "with the next sign-in";
  return ON_RELOAD[setting].may ? "yes" : `no: ${ON_RELOAD[setting].why}`;
}

function commandsOf(name: FlagName): string {
  const commands = Object.entries(COMMANDS).filter(([, { flags, hidden = [] }]: [string, Command]) => {
    return flags.includes(name) && !hidden.includes(name);
  });
  return commands.length === Object.keys(COMMANDS).length ? "all" : commands.map(([command]) => command).join(", ");
}

export function configurationPage(): string {
  const keys = FILE_FLAGS.map((name) => {
    const flag: Flag = FLAGS[name];
    const variable = code(variableOf(name));
    return [
      code(keyOf(name)),
      flagOf(name),
      variable,
      valuesOf(flag),
      defaultOf(flag) ?? "",
      whileMounted(name),
      flag.help,
    ];
  });
  const others = (Object.keys(FLAGS) as FlagName[]).flatMap((name) => {
    const flag: Flag = FLAGS[name];
    if (flag.file === true || flag.help === "") return [];
    const value = flag.type === "switch" ? "" : code(flag.kind.placeholder);
    return [[flagOf(name), code(variableOf(name)), value, defaultOf(flag) ?? "", commandsOf(name), flag.help]];
  });
  return `# Settings

This page is made from the table of flags (\`src/cli/flags.ts\`) by \`npm run docs\`.

A command takes each setting from the first of these that has it:

1. the flag;
2. the environment variable, \`WSFS_\` and the flag's name. An empty one counts as absent;
3. for \`wsfs mount\`, \`login\`, \`logout\`, \`whoami\`, \`token\` and \`call\`: the environment's entry in the configuration file;
4. the default.

\`wsfs mount\` takes \`--base-url\` and \`--token-file\` in the place of an environment, not beside one. \`wsfs reload\` takes flags
alone, and \`--env\`: all other settings stay.

## The configuration file

\`$XDG_CONFIG_HOME/wsfs/config.json\`, by default \`~/.config/wsfs/config.json\`. It names environments: gateways, and how their
workspaces are mounted. No secret stands in it: logins are kept elsewhere.

\`\`\`
${JSON.stringify(EXAMPLE, undefined, 2)}
\`\`\`

\`environment\` is the default (\`wsfs env use\`). Without it the default is \`production\`, else the only \`production-REGION\`, else
\`local\`, the gateway of \`wsfs start\`, which needs no entry, else the only environment there is. \`wsfs env add\` says so where
another one than the new one is used.

\`wsfs env add\`, \`set\`, \`unset\`, \`show\`, \`list\`, \`use\` and \`remove\` read and change the file; so may any editor. A size is
bytes, or a number with K, M, G or T. A path of \`profile\` begins at the file's folder. A wrong value is refused by the command that
uses the entry, in one line: the file, the key, the expected value and the value there.

${table(["key", "flag", "variable", "value", "default", "taken over while mounted", "meaning"], keys)}

A mount that was made with an environment (\`--env\`, or the default) follows its entry. Within seconds after the file has changed,
another daemon takes the mount over with the settings that may change, as by \`wsfs reload\`; programs see a pause.

- A setting that a flag or a variable gave at the mount, or a flag of \`wsfs reload\` since, stays.
- A setting that cannot change while mounted counts for the next mount. \`wsfs status\` and \`daemon.log\` name it. They also name a
  file with a fault, which changes nothing.
- \`wsfs reload DIR --env NAME\` takes over an entry even where a flag had said otherwise. The mount follows that entry from then on.
- A configuration inside a wsfs mount is not followed, nor is the file of a profile. If the configuration is a link, its target is
  watched.

## All other flags

${table(["flag", "variable", "value", "default", "commands", "meaning"], others)}

## Other variables

${table(
  ["variable", "meaning"],
  [
    [
      "`XDG_CONFIG_HOME`, `XDG_STATE_HOME`, `XDG_DATA_HOME`",
      "folders of the configuration, of state dirs and logins, and of the data of `wsfs start`; each in `wsfs` below it",
    ],
    ["`WSFS_RUNTIME_DIR`", "folder in which commands find daemons; the same for all commands"],
  ],
)}
`;
}
