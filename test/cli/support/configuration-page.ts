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
  return `# Configuration

Made of the table of flags (\`src/cli/flags.ts\`) by \`npm run docs\`.

What a command needs to know it takes from the first of these that says it:

1. the flag;
2. the variable of the environment, \`WSFS_\` and the flag's name. An empty one says nothing;
3. for \`wsfs mount\`, \`login\`, \`logout\`, \`whoami\`, \`token\` and \`call\`: the environment's entry in the configuration file;
4. the default.

\`wsfs mount\` takes \`--base-url\` and \`--token-file\` in the place of an environment, not beside one. \`wsfs reload\` takes flags
alone, and \`--env\`: what is not given stays.

## The configuration file

\`$XDG_CONFIG_HOME/wsfs/config.json\`, by default \`~/.config/wsfs/config.json\`. It names environments: gateways, and how their
workspaces are mounted. No secret stands in it: logins are kept elsewhere.

\`\`\`
${JSON.stringify(EXAMPLE, undefined, 2)}
\`\`\`

\`environment\` is the one that is used where none is named (\`wsfs env use\`); without it that is \`production\`, else the only
\`production-REGION\`, else the only one there is, or \`local\`: the gateway of \`wsfs start\`, which needs no entry.
\`wsfs env add\`, \`set\`, \`unset\`, \`show\`, \`list\`, \`use\` and \`remove\` read and change the file; so may any editor. A size is
bytes, or a number with K, M, G or T. A path of \`profile\` begins at the file's folder. A value that is not right is refused by
whatever uses the entry, in one line with the file, the key, what was expected and what stands there.

${table(["key", "flag", "variable", "value", "default", "taken over while mounted", "meaning"], keys)}

A mount that was made with an environment (\`--env\`, or the one that is used where none is named) follows its entry: within
seconds after the file has changed another daemon takes the mount over with what may change, as by \`wsfs reload\`; programs see
a pause. What a flag or a variable said when it was mounted, or a flag of \`wsfs reload\` since, stays. What cannot change while
mounted is told by \`wsfs status\` and \`daemon.log\`, and counts for the next mount; so is a file with a fault, which changes
nothing. \`wsfs reload DIR --env NAME\` takes over what an entry says also where a flag had said otherwise, and the mount follows
that one from then on. A configuration that lies inside a wsfs mount is not followed, nor is a profile's own file; of a
configuration that is a link, its target is watched.

## All other flags

${table(["flag", "variable", "value", "default", "commands", "meaning"], others)}

## Other variables

${table(
  ["variable", "meaning"],
  [
    [
      "`XDG_CONFIG_HOME`, `XDG_STATE_HOME`, `XDG_DATA_HOME`",
      "where configuration, state dirs and logins, and the data of `wsfs start` are, each in `wsfs` below it",
    ],
    ["`WSFS_RUNTIME_DIR`", "where daemons are found; the same for all commands"],
  ],
)}
`;
}
