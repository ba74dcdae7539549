/**
 * The table of everything that may be set: every command with its arguments, flags (flags.ts) and examples. It knows no
 * command line parser; command-line.ts builds one from it.
 */

import type { Command } from "./command.ts";
import { FLAGS, type Flag, type FlagName } from "./flags.ts";
import { GATEWAY_COMMANDS } from "./gateway-commands.ts";
import { HISTORY_COMMANDS } from "./history-commands.ts";
import { SERVICE_COMMANDS } from "./service-commands.ts";
import type * as values from "./values.ts";

/** Flags that are fixed when a mount is made. */
const OF_THE_MOUNT = [
  "read-only",
  "transport",
  "no-passthrough",
  "no-restart",
  "background",
  "allow-other",
  "owners",
] as const;

/** Flags of a mount that a reload refuses. */
export const FIXED = ["base-url", "workspace", "mount-path", "mount-at", "state-dir", ...OF_THE_MOUNT] as const;

export const COMMANDS = {
  start: {
    dir: "optional",
    summary: "A local gateway and a mount of its workspace in one",
    notes: [
      "DIR defaults to ~/Workspace, and is made if it is missing.",
      "The gateway keeps its port. If it dies while a mount uses it, it is started again.",
    ],
    flags: ["data", "state-dir", "transport", "owners", "profile", "wait", "background", "json", "log-level", "debug"],
    examples: [
      ["wsfs start", "mount ~/Workspace; Ctrl-C unmounts"],
      ["wsfs start ~/work --background", "mount ~/work and return"],
    ],
  },
  mount: {
    dir: "required",
    summary: "Mount a workspace at DIR",
    flags: [
      "env",
      "base-url",
      "workspace",
      "mount-path",
      "mount-at",
      "token-file",
      "profile",
      "state-dir",
      "cache-size",
      "keep-free",
      "unsent-limit",
      "names-ahead",
      ...OF_THE_MOUNT,
      "durability",
      "wait",
      "shorten-waits",
      "log-level",
      "debug",
    ],
    hidden: ["shorten-waits"],
    required: ["base-url", "workspace", "token-file"],
    orEnvironment: true,
    examples: [
      ["wsfs mount ~/work --workspace main", "of the gateway that you are signed in to (wsfs login)"],
      ["wsfs mount ~/x --workspace main --path /projects/x", "only that folder"],
      ["wsfs mount ~/then --workspace main --at yesterday", "as it was, read-only"],
      ["wsfs mount ~/work --base-url URL --workspace main --token-file ~/.token", "Ctrl-C unmounts"],
      [
        "WSFS_BASE_URL=URL wsfs mount ~/work --workspace main --token-file ~/.token --background",
        "return once it is usable",
      ],
    ],
  },
  login: {
    dir: "none",
    summary: "Sign in to a gateway: approve a code in any browser",
    flags: ["env", "scope", "store", "no-browser", "json", "debug"],
    examples: [
      ["wsfs login --store keyring", "kept by the keyring of your session, not in a file"],
      ["wsfs login", "the local gateway of wsfs start, or the default environment"],
      [
        "wsfs login --env production --scope account.workspace.read --scope node.file.read --scope node.node.read-all",
        "for reading only",
      ],
    ],
  },
  logout: {
    dir: "none",
    summary: "End the login at the gateway, and remove it here",
    flags: ["env", "force", "debug"],
    examples: [["wsfs logout --env production", "mounts that use the login go on from their caches"]],
  },
  whoami: {
    dir: "none",
    summary: "Show who is signed in, and the roles of that account",
    flags: ["env", "json", "debug"],
    examples: [["wsfs whoami --json | jq -r '.workspaces[].name'", "the workspaces there are"]],
  },
  token: {
    dir: "none",
    summary: "Print an access token of the login; it is good for minutes",
    flags: ["env", "scope", "workspace", "debug"],
    examples: [
      ['curl -H "Authorization: Bearer $(wsfs token --scope account.workspace.read)" URL/v1/workspaces', "for curl"],
    ],
  },
  call: {
    dir: "none",
    positionals: ["METHOD", "PATH"],
    summary: "Call the gateway with a token of your login; exit code 4 or 5 for an answer 4xx or 5xx",
    flags: ["env", "call-scope", "workspace", "query", "body", "form", "output", "stream", "include", "debug"],
    examples: [
      ["wsfs call GET /v1/workspaces", "with a token of just the scope it needs"],
      ["wsfs call POST /v1/files/notes.txt --workspace main --form file=@notes.txt", "an upload"],
      ["wsfs call GET /v1/journal/stream --workspace main --stream", "a line of JSON for each change, as it comes"],
    ],
  },
  env: {
    dir: "none",
    summary: "The environments: named gateways in the configuration file",
    flags: ["json", "debug"],
    examples: [["wsfs env", "as wsfs env list"]],
  },
  "env list": {
    dir: "none",
    summary: "List the environments; * is the default",
    flags: ["json", "debug"],
    examples: [["wsfs env list", "local is the gateway of wsfs start"]],
  },
  "env add": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Add an environment, or change it",
    flags: ["base-url", "workspace", "profile", "issuer", "debug"],
    required: ["base-url"],
    examples: [
      ["wsfs env add production --base-url https://gateway.example.com --workspace main", ""],
      ["wsfs env add team --base-url https://team.example.com", "then: wsfs env use team, or --env team"],
    ],
  },
  "env show": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Show an environment of the configuration file",
    flags: ["json", "settings", "debug"],
    // For a daemon that follows the file: the settings of a mount in this entry.
    hidden: ["settings"],
    examples: [["wsfs env show production", "one key a line"]],
  },
  "env set": {
    dir: "none",
    positionals: ["NAME", "KEY", "VALUE"],
    summary: "Set one key of an environment; mounts that use it adopt it within seconds",
    flags: ["debug"],
    examples: [
      ["wsfs env set production cache-size 20G", "as --cache-size of mount; docs/user/settings.md lists the keys"],
    ],
  },
  "env unset": {
    dir: "none",
    positionals: ["NAME", "KEY"],
    summary: "Remove one key of an environment: the default counts again",
    flags: ["debug"],
    examples: [["wsfs env unset production cache-size", ""]],
  },
  "env use": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Make an environment the default",
    flags: ["debug"],
    examples: [["wsfs env use uat", "until another one is used"]],
  },
  "env remove": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Remove an environment from the configuration",
    flags: ["debug"],
    examples: [["wsfs env remove sprint", "its login stays: wsfs logout ends that"]],
  },
  status: {
    dir: "required",
    summary: "Show the state of the mount at DIR",
    notes: [
      'With --json: {"mounted":true,"pid":DAEMON,"online":true,"live":true,"dirty":N,"uploading":N,"parked":N,"bytesPending":N, ...}.',
      'Of no mount: {"mounted":false} and exit code 3; with "left":[{"stateDir":DIR,"dirty":N,...}] where the last one left something to upload.',
    ],
    flags: ["json", "debug"],
    examples: [["wsfs status ~/work --json", "for programs"]],
  },
  queue: {
    dir: "required",
    summary: "Show what waits to be uploaded from the mount at DIR, and why",
    notes: [
      "Changes under way come first, then refused ones, then the oldest.",
      'With --json: {"sums":{...}}, then {"item":{...}} for each.',
    ],
    flags: ["limit", "json", "debug"],
    examples: [
      ["wsfs queue ~/work", "each change that waits, and what for"],
      [
        "wsfs queue ~/work --limit 0 --json | jq -r 'select(.item.state == \"parked\").item.path'",
        "all refused changes",
      ],
    ],
  },
  "queue retry": {
    dir: "required",
    paths: true,
    summary: "Try refused and waiting changes now: all of them, or those at PATH and below",
    notes: ["Exit code 1 when nothing waits at a PATH."],
    flags: ["json", "debug"],
    examples: [
      ["wsfs queue retry ~/work", "everything"],
      ["wsfs queue retry ~/work ~/work/reports /notes.txt", "a PATH is one on this machine, or one that queue shows"],
    ],
  },
  drain: {
    dir: "required",
    summary: "Upload everything and wait until the gateway shows it",
    notes: [
      "Progress goes to standard error: a bar on a terminal, else a line every 3 s; with --json lines of it go to standard output.",
      "Exit code 0 when everything is uploaded and the gateway's index shows it (--no-settle: when everything is uploaded). Exit code 1 when the time is up, or when a change was refused or is still being written; the command names it. Ctrl-C ends only the waiting.",
    ],
    flags: ["timeout", "no-settle", "json", "debug"],
    examples: [
      ["wsfs drain ~/work --timeout 60", "exit code 1 if a minute was not enough"],
      ["wsfs drain ~/work --json", "a line of progress each time something has changed, then the result"],
    ],
  },
  umount: {
    dir: "required",
    summary: "Unmount DIR; changes that are not uploaded yet stay in the state dir for the next mount",
    notes: [
      "Without --drain the command says how much the next mount still has to upload. With --drain the mount stays, with exit code 1, when not all could be uploaded.",
      "While the gateway does not answer, or there is no login, --drain says so and keeps waiting. Scripts should set a limit.",
      "Exit code 1 when the mount is busy; the command names the processes.",
    ],
    flags: ["drain", "debug"],
    examples: [
      ["wsfs umount ~/work", "at once"],
      ["wsfs umount ~/work --drain=60", "upload everything first, for at most a minute"],
    ],
  },
  reload: {
    dir: "required",
    summary: "Start a new daemon for DIR, of the installed release or with other settings; programs see a pause",
    notes: [
      "Exit code 1 when that failed: a daemon with the former settings then serves. Exit code 2 for a setting that cannot change.",
    ],
    changes: true,
    flags: [
      "env",
      "token-file",
      "profile",
      "cache-size",
      "keep-free",
      "unsent-limit",
      "names-ahead",
      "durability",
      "wait",
      "log-level",
      "json",
      "debug",
      ...FIXED,
    ],
    // A reload refuses these flags with the reason.
    hidden: FIXED,
    examples: [
      ["wsfs reload ~/work", "after an upgrade of wsfs: the same settings"],
      ["wsfs reload ~/work --cache-size 20G --log-level debug", "other settings; all others stay"],
      ["wsfs reload ~/work --env production", "the settings of that environment in the configuration file"],
    ],
  },
  ...HISTORY_COMMANDS,
  ...GATEWAY_COMMANDS,
  ...SERVICE_COMMANDS,
} as const satisfies Record<string, Command>;

export type CommandName = keyof typeof COMMANDS;

type KindOf<F> = F extends { kind: values.Kind<infer T> } ? T : never;

type ValueOf<F extends Flag, Required> = F["type"] extends "switch"
  ? boolean
  : F["type"] extends "list"
    ? readonly KindOf<F>[]
    : F["type"] extends "optionalValue"
      ? KindOf<F> | true | undefined
      : Required extends true
        ? KindOf<F>
        : F extends { default: unknown }
          ? KindOf<F>
          : KindOf<F> | undefined;

type GivenOf<F extends Flag> = F extends { type: "switch" } ? boolean : KindOf<F>;

type RequiredOf<C> = C extends { orEnvironment: true }
  ? never
  : C extends { required: readonly (infer R)[] }
    ? R
    : never;

/** The checked values of a command's flags, by the flag's name. `dir` is as it was given. */
export type Values<C extends CommandName> = ((typeof COMMANDS)[C] extends { changes: true }
  ? { readonly [F in (typeof COMMANDS)[C]["flags"][number]]: GivenOf<(typeof FLAGS)[F]> | undefined }
  : {
      readonly [F in (typeof COMMANDS)[C]["flags"][number]]: ValueOf<
        (typeof FLAGS)[F],
        F extends RequiredOf<(typeof COMMANDS)[C]> ? true : false
      >;
    }) & {
  readonly dir: (typeof COMMANDS)[C]["dir"] extends "required" ? string : string | undefined;
} & ((typeof COMMANDS)[C] extends {
    paths: true;
  }
    ? { readonly paths: readonly string[] }
    : unknown) &
  ((typeof COMMANDS)[C] extends { rest: string } ? { readonly rest: readonly string[] } : unknown) &
  ((typeof COMMANDS)[C] extends { positionals: readonly (infer P extends string)[] }
    ? { readonly positionals: { readonly [K in P]: string } }
    : unknown) &
  ((typeof COMMANDS)[C] extends { optional: readonly (infer P extends string)[] }
    ? { readonly optional: { readonly [K in P]: string | undefined } }
    : unknown);

/** Flags of different meaning that share a name on the command line. */
const OTHER_NAMES: Readonly<Partial<Record<FlagName, string>>> = {
  "workspace-list": "workspace",
  body: "data",
  "engine-filter": "engine",
  "engine-scope": "scope",
  "call-scope": "scope",
  "key-scope": "scope",
  "wait-end": "wait",
  "deleted-age": "deleted",
  "in-workspace": "workspace",
  "file-version": "version",
  "settle-timeout": "timeout",
  "at-time": "at",
  "mount-at": "at",
  "mount-path": "path",
  "as-name": "as",
  "of-mount": "mount",
  "follow-journal": "follow",
};

/** The flag's name on the command line. */
export function flagName(name: FlagName): string {
  return OTHER_NAMES[name] ?? name;
}

/** The default in words. */
export function defaultOf(flag: Flag): string | undefined {
  if (flag.type !== "value" && flag.type !== "list") return undefined;
  const value = flag.defaultHelp ?? (flag.type === "value" ? flag.default : undefined);
  return value === undefined ? undefined : String(value);
}

export function variableOf(name: FlagName): string | undefined {
  const flag: Flag = FLAGS[name];
  return flag.variable === true ? `WSFS_${flagName(name).toUpperCase().replaceAll("-", "_")}` : undefined;
}

/** Required flags that neither the command line nor a variable gives. `typed` tells whether the line has a flag. */
export function missingFlags(
  name: CommandName,
  typed: (option: string) => boolean,
  environment: NodeJS.ProcessEnv = process.env,
): FlagName[] {
  const { required = [] }: Command = COMMANDS[name];
  return required.filter((flag) => !typed(`--${flagName(flag)}`) && !environment[variableOf(flag) ?? ""]);
}

/** Lists the flags: "a, b and c". A single flag is described in words. */
export function describeMissing(flags: readonly FlagName[], words: readonly string[] = []): string {
  const [only] = flags;
  const items = [...words, ...flags.map(describeFlag)];
  if (only !== undefined && items.length === 1) return `${describeFlag(only)}: ${FLAGS[only].help}`;
  return [...items.slice(0, -2), items.slice(-2).join(" and ")].join(", ");
}

function describeFlag(name: FlagName): string {
  const variable = variableOf(name);
  return `--${flagName(name)}${variable === undefined ? "" : ` (or ${variable})`}`;
}
