/**
 * The one table of what may be set: every command with its arguments, flags and examples; every
 * flag with its variable, kind, default and help. Knows no parser of command lines; main.ts builds one
 * from it.
 */
import { SCOPES } from "../contract/scopes.ts";
import { EXIT, Failure } from "./failure.ts";
import * as values from "./values.ts";

interface Common {
  readonly help: string;
  /** Set by WSFS_ and the flag's name in capitals as well. */
  readonly variable?: boolean;
}

/** One value. Absent and without a default: undefined, or an error where the command requires it. */
interface ValueFlag extends Common {
  readonly type: "value";
  readonly kind: values.Kind<unknown>;
  readonly default?: unknown;
  readonly defaultHelp?: string;
}

/** May be given several times. */
interface ListFlag extends Common {
  readonly type: "list";
  readonly kind: values.Kind<unknown>;
  readonly defaultHelp?: string;
}

interface SwitchFlag extends Common {
  readonly type: "switch";
}

/** `--flag` or `--flag=VALUE`. */
interface OptionalValueFlag extends Common {
  readonly type: "optionalValue";
  readonly kind: values.Kind<unknown>;
}

export type Flag = ValueFlag | ListFlag | SwitchFlag | OptionalValueFlag;

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
const CACHE_SIZE = 10 * 1024 ** 3;
const MAX_UPLOAD = 64 * 1024 ** 3;

const late = { type: "value", kind: values.jittered, default: { ms: 0, jitterMs: 0 }, defaultHelp: "0" } as const;
const speed = { type: "value", kind: values.speed, default: 0, defaultHelp: "as fast as can be" } as const;

export const FLAGS = {
  "base-url": { type: "value", kind: values.baseUrl, variable: true, help: "Address of the gateway" },
  workspace: { type: "value", kind: values.named("NAME"), variable: true, help: "Workspace, by name or id" },
  "token-file": {
    type: "value",
    kind: values.named("FILE"),
    variable: true,
    help: "File with the access token; read again when the gateway refuses the one in use",
  },
  "state-dir": {
    type: "value",
    kind: values.named("DIR"),
    variable: true,
    defaultHelp: "below $XDG_STATE_HOME/wsfs, by workspace",
    help: "Folder for metadata, unsent bytes and cache",
  },
  "cache-size": {
    type: "value",
    kind: values.size,
    variable: true,
    default: CACHE_SIZE,
    defaultHelp: "10G",
    help: "How many bytes may be kept beside the unsent ones",
  },
  "keep-free": {
    type: "value",
    kind: values.size,
    variable: true,
    defaultHelp: "a twentieth of the disk, at most 1G",
    help: "How much of the state dir's disk the cache leaves free",
  },
  "unsent-limit": {
    type: "value",
    kind: values.size,
    variable: true,
    defaultHelp: "as much as the disk takes",
    help: "How many bytes may wait to be uploaded; a program that writes more gets ENOSPC",
  },
  "read-only": { type: "switch", variable: true, help: "Refuse every change" },
  "no-passthrough": {
    type: "switch",
    variable: true,
    help: "Have the daemon read and write local files, not the kernel by itself",
  },
  "no-restart": {
    type: "switch",
    variable: true,
    help: "Have a crash of the daemon end the mount, instead of a new one taking it over",
  },
  background: { type: "switch", help: "Return once the mount is usable" },
  "allow-other": { type: "switch", variable: true, help: "Let other users in, as far as file modes allow" },
  durability: {
    type: "value",
    kind: values.oneOf("local", "remote"),
    variable: true,
    default: "local",
    help: "What close and fsync wait for: this machine's disk, or the gateway",
  },
  wait: {
    type: "value",
    kind: values.seconds,
    variable: true,
    default: 10,
    help: "How long to ask a gateway again that fails at the start",
  },
  /** For tests of what happens at the limits: see daemon/waiting.ts. */
  "shorten-waits": { type: "value", kind: values.divisor, default: 1, help: "" },
  "log-level": {
    type: "value",
    kind: values.oneOf(...LOG_LEVELS),
    variable: true,
    default: "info",
    help: "What goes to daemon.log in the state dir",
  },
  debug: { type: "switch", variable: true, help: "Log everything, and show the stack of an error" },
  json: { type: "switch", help: "Print JSON" },
  timeout: { type: "value", kind: values.seconds, help: "Give up after that many seconds" },
  "no-settle": { type: "switch", help: "Do not wait until the gateway's index and journal show it" },
  limit: { type: "value", kind: values.itemCount, default: 100, help: "Show at most that many (0: all)" },
  drain: { type: "optionalValue", kind: values.seconds, help: "Upload everything first, for at most S seconds" },
  data: { type: "value", kind: values.named("DIR"), variable: true, help: "Folder of the local gateway" },
  host: { type: "value", kind: values.named("H"), default: "127.0.0.1", help: "Address to listen on" },
  port: {
    type: "value",
    kind: values.port,
    defaultHelp: "the one of last time, else a free one",
    help: "Port to listen on",
  },
  "workspace-list": { type: "list", kind: values.named("NAME"), defaultHelp: "one", help: "Workspaces, made if new" },
  latency: { ...late, help: "Delay each answer, half of it before the effect" },
  "path-lag": { ...late, help: "Show changes late by path and in listings" },
  "journal-lag": { ...late, help: "Show changes late in the journal" },
  "id-lag": { ...late, help: "Answer 404 by the id of a node that is not older" },
  "fail-rate": {
    type: "value",
    kind: values.rate,
    default: 0,
    help: "Share of requests to fail: 503, reset before and reset after the effect",
  },
  "max-upload": {
    type: "value",
    kind: values.size,
    default: MAX_UPLOAD,
    defaultHelp: "64G",
    help: "Largest file to take",
  },
  quota: { type: "list", kind: values.quota, defaultHelp: "none", help: "How much each workspace, or one, may hold" },
  quiet: { type: "switch", help: "No line for each request" },
  fault: {
    type: "list",
    kind: values.fault,
    defaultHelp: "none",
    help: "Share of requests, of all or of one operation, to fail: error, unavailable, throttled, reset-before, reset-during, reset-after, truncated-upload, truncated-answer, ignored-range",
  },
  "retry-after": { type: "value", kind: values.retrySeconds, default: 1, help: "What a throttled answer (429) says" },
  "upload-speed": { ...speed, help: "Take contents in so slowly, bytes a second" },
  "download-speed": { ...speed, help: "Send answers so slowly, bytes a second" },
  "token-life": {
    type: "value",
    kind: values.lifeSeconds,
    defaultHelp: "as the token says",
    help: "End every token that many seconds after its issue",
  },
  "clock-skew": {
    type: "value",
    kind: values.skew,
    default: 0,
    help: "Set the gateway's clock ahead, or with - behind",
  },
  bare: { type: "switch", help: "Speak only what every gateway can, in other words; mount it with its profile" },
  profile: {
    type: "value",
    kind: values.named("FILE"),
    variable: true,
    help: "How another gateway words things and what it lacks, as JSON",
  },
  faults: { type: "switch", help: "Open the control endpoint /faults (GET, PATCH), without a token" },
  scope: {
    type: "list",
    kind: { ...values.oneOf(...SCOPES), placeholder: "S" },
    defaultHelp: "all",
    help: `Scope the token carries, one of ${SCOPES.join(" ")}`,
  },
  ttl: {
    type: "value",
    kind: values.seconds,
    default: 30 * 86_400,
    defaultHelp: "30 days",
    help: "How long the token is good",
  },
  /** Of the gateway that `start` keeps: see gateway-watch.ts. */
  "until-unmounted": { type: "switch", help: "" },
} as const satisfies Record<string, Flag>;

export type FlagName = keyof typeof FLAGS;

export interface Command {
  /** What follows the command's words: one folder. */
  readonly dir: "required" | "optional" | "none";
  /** Any number of paths after the folder. */
  readonly paths?: true;
  readonly summary: string;
  readonly flags: readonly FlagName[];
  readonly required?: readonly FlagName[];
  readonly hidden?: readonly FlagName[];
  /** Of what is already there: what is not given stays, whatever defaults and variables say. */
  readonly changes?: true;
  readonly examples: readonly (readonly [string, string])[];
}

export const COMMANDS = {
  start: {
    dir: "optional",
    summary: "Local gateway and mount in one",
    flags: ["data", "state-dir", "profile", "wait", "background", "json", "log-level", "debug"],
    examples: [
      ["wsfs start", "mount ~/Workspace; Ctrl-C unmounts"],
      ["wsfs start ~/work --background", "mount ~/work and return"],
    ],
  },
  mount: {
    dir: "required",
    summary: "Mount a workspace at DIR",
    flags: [
      "base-url",
      "workspace",
      "token-file",
      "profile",
      "state-dir",
      "cache-size",
      "keep-free",
      "unsent-limit",
      "read-only",
      "no-passthrough",
      "no-restart",
      "background",
      "allow-other",
      "durability",
      "wait",
      "shorten-waits",
      "log-level",
      "debug",
    ],
    hidden: ["shorten-waits"],
    required: ["base-url", "workspace", "token-file"],
    examples: [
      [
        "wsfs mount ~/work --base-url https://gateway.example.com --workspace main --token-file ~/.token",
        "Ctrl-C unmounts",
      ],
      [
        "WSFS_BASE_URL=… wsfs mount ~/work --workspace main --token-file ~/.token --background",
        "return once it is usable",
      ],
    ],
  },
  status: {
    dir: "required",
    summary: "Say how the mount at DIR is doing",
    flags: ["json", "debug"],
    examples: [["wsfs status ~/work --json", "for programs"]],
  },
  queue: {
    dir: "required",
    summary: "Show what waits to be uploaded from the mount at DIR, and why it does",
    flags: ["limit", "json", "debug"],
    examples: [
      ["wsfs queue ~/work", "what is under way, what was refused, then the oldest first"],
      [
        "wsfs queue ~/work --limit 0 --json | jq -r 'select(.item.state == \"parked\").item.path'",
        "all that was refused",
      ],
    ],
  },
  "queue retry": {
    dir: "required",
    paths: true,
    summary: "Try now what was refused or waits: all, or what is at PATH and below",
    flags: ["json", "debug"],
    examples: [
      ["wsfs queue retry ~/work", "everything"],
      ["wsfs queue retry ~/work ~/work/reports /notes.txt", "a PATH is one on this machine, or one that queue shows"],
    ],
  },
  drain: {
    dir: "required",
    summary: "Upload everything and wait until the gateway shows it",
    flags: ["timeout", "no-settle", "json", "debug"],
    examples: [
      ["wsfs drain ~/work --timeout 60", "exit code 1 if a minute was not enough"],
      ["wsfs drain ~/work --json", "a line of progress each time something has changed, then the result"],
    ],
  },
  umount: {
    dir: "required",
    summary: "Unmount DIR; what is not uploaded yet stays in the state dir for the next mount",
    flags: ["drain", "debug"],
    examples: [
      ["wsfs umount ~/work", "at once"],
      ["wsfs umount ~/work --drain=60", "upload everything first, for at most a minute"],
    ],
  },
  reload: {
    dir: "required",
    summary:
      "Have a new daemon serve DIR, of the release that is installed now or with other settings; programs see a pause",
    changes: true,
    flags: [
      "token-file",
      "profile",
      "cache-size",
      "keep-free",
      "unsent-limit",
      "durability",
      "wait",
      "log-level",
      "json",
      "debug",
      "base-url",
      "workspace",
      "state-dir",
      "read-only",
      "no-passthrough",
      "no-restart",
      "background",
      "allow-other",
    ],
    // Refused, with the reason.
    hidden: [
      "base-url",
      "workspace",
      "state-dir",
      "read-only",
      "no-passthrough",
      "no-restart",
      "background",
      "allow-other",
    ],
    examples: [
      ["wsfs reload ~/work", "after an upgrade of wsfs: the same settings"],
      ["wsfs reload ~/work --cache-size 20G --log-level debug", "other settings; what is not given stays"],
    ],
  },
  gateway: {
    dir: "none",
    summary: "Serve a local gateway: the development environment of the platform",
    flags: [
      "data",
      "host",
      "port",
      "workspace-list",
      "json",
      "latency",
      "path-lag",
      "journal-lag",
      "id-lag",
      "fail-rate",
      "fault",
      "retry-after",
      "upload-speed",
      "download-speed",
      "token-life",
      "clock-skew",
      "faults",
      "bare",
      "max-upload",
      "quota",
      "quiet",
      "debug",
      "until-unmounted",
    ],
    hidden: ["until-unmounted"],
    required: ["data"],
    examples: [
      ["wsfs gateway --data ~/gateway --port 8080 --workspace main", "ends with Ctrl-C"],
      ["wsfs gateway --data ~/gateway --path-lag 3000+500 --fault upload:reset-after=0.1", "late, and loses answers"],
    ],
  },
  "gateway token": {
    dir: "none",
    summary: "Print an access token for a local gateway",
    flags: ["data", "workspace", "scope", "ttl", "debug"],
    required: ["data"],
    examples: [["wsfs gateway token --data ~/gateway --workspace main --ttl 3600 > token", "a token for an hour"]],
  },
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

type RequiredOf<C> = C extends { required: readonly (infer R)[] } ? R : never;

/** The checked values of a command's flags, by the flag's name; `dir` as it was given. */
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
    : unknown);

/** The flag's name on the command line: the table has two of the name "workspace". */
export function flagName(name: FlagName): string {
  return name === "workspace-list" ? "workspace" : name;
}

export function variableOf(name: FlagName): string | undefined {
  const flag: Flag = FLAGS[name];
  return flag.variable === true ? `WSFS_${flagName(name).toUpperCase().replaceAll("-", "_")}` : undefined;
}

/** What the command line parser found: by the flag's name on the command line; absent where not given. */
export type Given = Readonly<Record<string, unknown>>;

/** Flags before variables before defaults. Throws a Failure (usage) that names the flag or variable at fault. */
export function resolveValues<C extends CommandName>(
  commandName: C,
  given: Given,
  environment: NodeJS.ProcessEnv = process.env,
): Values<C> {
  const command: Command = COMMANDS[commandName];
  const result: Record<string, unknown> = { dir: dirOf(commandName, command, given.DIR) };
  if (command.paths === true) result.paths = pathsOf(commandName, given.PATH);
  for (const name of command.flags) {
    const flag: Flag = FLAGS[name];
    const option = `--${flagName(name)}`;
    const variable = command.changes === true ? undefined : variableOf(name);
    const fromFlag = given[flagName(name)];
    const fromVariable = variable === undefined ? undefined : environment[variable] || undefined;
    const [source, raw] = fromFlag === undefined && variable ? [variable, fromVariable] : [option, fromFlag];
    const otherwise = () => (command.changes === true ? undefined : defaultOf(flag));
    const value = raw === undefined ? otherwise() : checkedValue(flag, source, raw);
    if (value === undefined && command.required?.includes(name) === true) {
      const or = variable === undefined ? "" : ` (or ${variable})`;
      throw new Failure(`${commandName} needs ${option}${or}: ${flag.help}`, EXIT.usage);
    }
    result[name] = value;
  }
  return result as Values<C>;
}

function dirOf(name: string, command: Command, given: unknown): string | undefined {
  if (typeof given === "string" && given !== "") return given;
  if (given === "") throw new Failure(`${name}: expected a folder as DIR, got ""`, EXIT.usage);
  if (command.dir === "required") throw new Failure(`${name} needs a folder: wsfs ${name} DIR`, EXIT.usage);
  return undefined;
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

function checkedValue(flag: Flag, source: string, raw: unknown): unknown {
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
    // Not for a log: what somebody has put into an address.
    const shown = given.replace(/(?<=:\/\/)[^/@]*@/, "…@");
    throw new Failure(`${source}: expected ${expected}, got "${shown}"`, EXIT.usage, { cause });
  }
}
