/** Every flag with its variable, kind, default and help, for all commands. */
import { EXECUTION_STATES } from "../contract/execution-states.ts";
import { GATEWAY_KINDS } from "../contract/journal-kinds.ts";
import { ROLES } from "../contract/roles.ts";
import { KEY_SCOPES, SCOPES } from "../contract/scopes.ts";
import type { DaemonSettings } from "../daemon/settings.ts";
import * as values from "./values.ts";

interface Common {
  readonly help: string;
  /** May also be set by the variable WSFS_ plus the flag's name in capitals. */
  readonly variable?: boolean;
  /** May also stand in an environment's entry of the configuration file, under its name in camel case. */
  readonly file?: boolean;
  /** The setting of a mount that the flag changes. */
  readonly setting?: keyof DaemonSettings;
}

/** One value. If neither a value nor a default is there: undefined, or an error if the command requires the flag. */
interface ValueFlag extends Common {
  readonly type: "value";
  readonly kind: values.Kind<unknown>;
  readonly default?: unknown;
  readonly defaultHelp?: string;
}

/** A flag that may be given several times. */
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

const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
const CACHE_SIZE = 10 * 1024 ** 3;
const NAMES_AHEAD = 1_000_000;
const MAX_UPLOAD = 64 * 1024 ** 3;

const late = { type: "value", kind: values.jittered, default: { ms: 0, jitterMs: 0 }, defaultHelp: "0" } as const;
const speed = { type: "value", kind: values.speed, default: 0, defaultHelp: "unlimited" } as const;

export const FLAGS = {
  "base-url": {
    type: "value",
    kind: values.baseUrl,
    variable: true,
    file: true,
    setting: "baseUrl",
    help: "Address of the gateway",
  },
  workspace: {
    type: "value",
    kind: values.named("NAME"),
    variable: true,
    file: true,
    setting: "workspace",
    help: "Workspace, by name or id",
  },
  "mount-path": {
    type: "value",
    kind: values.workspacePath,
    setting: "path",
    defaultHelp: "all of it",
    help: "Only this folder of the workspace: it is the root of the mount, and nothing above it can be seen",
  },
  "mount-at": {
    type: "value",
    kind: values.moment,
    setting: "at",
    defaultHelp: "now",
    help: "Show everything as it was at this moment, read-only",
  },
  /** For history commands. It has no variable, because without the flag a path lies in a mount. */
  "in-workspace": {
    type: "value",
    kind: values.named("NAME"),
    help: "The path lies in this workspace (name or id), not in a mount",
  },
  "file-version": {
    type: "value",
    kind: values.named("V"),
    help: "The version, written as after @; FILE is then the whole name",
  },
  recursive: { type: "switch", help: "Include everything below the folder" },
  "at-time": { type: "value", kind: values.moment, help: "The state at this moment" },
  deleted: { type: "switch", help: "List deleted files and folders that can be restored" },
  exact: { type: "switch", help: "With --at: delete files and folders that did not exist then" },
  yes: { type: "switch", help: "Do it without asking" },
  last: { type: "value", kind: values.changeCount, help: "The last N changes" },
  "of-mount": {
    type: "value",
    kind: values.named("MOUNT"),
    defaultHelp: "the one PATH is in",
    help: "With --workspace: the mount whose changes are meant, MACHINE:/FOLDER",
  },
  "as-name": { type: "value", kind: values.named("NAME"), help: "The name to restore it under" },
  since: { type: "value", kind: values.moment, help: "Changes since this moment" },
  by: {
    type: "value",
    kind: values.named("WHO"),
    help: "Only changes of this account, or of this mount (MACHINE:/FOLDER, as FROM shows it)",
  },
  "follow-journal": { type: "switch", help: "Show the last changes, oldest first, then new ones as they come" },
  "settle-timeout": {
    type: "value",
    kind: values.seconds,
    default: 60,
    help: "Wait at most this many seconds until the mount has uploaded its changes, and again until it shows the result",
  },
  "token-file": {
    type: "value",
    kind: values.named("FILE"),
    variable: true,
    setting: "tokenFile",
    help: "File with the access token; read again when it changes, or when the gateway refuses the token",
  },
  "state-dir": {
    type: "value",
    kind: values.named("DIR"),
    variable: true,
    defaultHelp: "below $XDG_STATE_HOME/wsfs, by workspace",
    setting: "stateDir",
    help: "Folder for metadata, unsent bytes and cache",
  },
  "cache-size": {
    type: "value",
    kind: values.size,
    variable: true,
    default: CACHE_SIZE,
    defaultHelp: "10G",
    file: true,
    setting: "cacheSize",
    help: "Size of the cache, not counting unsent bytes",
  },
  "keep-free": {
    type: "value",
    kind: values.size,
    variable: true,
    defaultHelp: "a twentieth of the disk, at most 1G",
    file: true,
    setting: "keepFree",
    help: "How much of the state dir's disk the cache leaves free",
  },
  "unsent-limit": {
    type: "value",
    kind: values.size,
    variable: true,
    defaultHelp: "as much as the disk takes",
    file: true,
    setting: "unsentLimit",
    help: "How many bytes may wait to be uploaded; a program that writes more gets ENOSPC",
  },
  "names-ahead": {
    type: "value",
    kind: values.nameCount,
    variable: true,
    default: NAMES_AHEAD,
    defaultHelp: "1000000",
    file: true,
    setting: "namesAhead",
    help: "How many names are kept, so that their folders can be listed offline; so many are read in the background (0: none)",
  },
  "read-only": { type: "switch", variable: true, file: true, setting: "readOnly", help: "Refuse every change" },
  transport: {
    type: "value",
    kind: values.oneOf("kernel", "fuse-native"),
    variable: true,
    default: "kernel",
    file: true,
    setting: "fuseNative",
    help: "How to talk to the kernel: directly, or by libfuse 2, which can do less",
  },
  "no-passthrough": {
    type: "switch",
    variable: true,
    file: true,
    setting: "passthrough",
    help: "Read and write cached files in the daemon, not in the kernel",
  },
  "no-restart": {
    type: "switch",
    variable: true,
    file: true,
    setting: "crashes",
    help: "End the mount when its daemon crashes, instead of starting a new daemon",
  },
  background: { type: "switch", setting: "foreground", help: "Return once the mount is usable" },
  "allow-other": {
    type: "switch",
    variable: true,
    file: true,
    setting: "allowOther",
    help: "Let other users in, as far as file modes allow",
  },
  owners: {
    type: "value",
    kind: values.oneOf("real", "mine"),
    variable: true,
    defaultHelp: "as before with this state dir; a new one: real for root with --allow-other, else mine",
    file: true,
    setting: "owners",
    help: "Who owns files: the users who made them, with chown enforced (real), or you (mine)",
  },
  durability: {
    type: "value",
    kind: values.oneOf("local", "remote"),
    variable: true,
    default: "local",
    file: true,
    setting: "durability",
    help: "What close and fsync wait for: this machine's disk, or the gateway",
  },
  wait: {
    type: "value",
    kind: values.seconds,
    variable: true,
    default: 10,
    file: true,
    setting: "patienceMs",
    help: "How many seconds to retry a gateway that fails at the start",
  },
  /** For tests of limits on waiting: see daemon/waiting.ts. */
  "shorten-waits": { type: "value", kind: values.divisor, default: 1, help: "" },
  "log-level": {
    type: "value",
    kind: values.oneOf(...LOG_LEVELS),
    variable: true,
    default: "info",
    file: true,
    setting: "logLevel",
    help: "Least level of the lines in daemon.log of the state dir",
  },
  debug: {
    type: "switch",
    variable: true,
    setting: "logLevel",
    help: "Log everything, and show the stack of an error",
  },
  json: { type: "switch", help: "Print JSON" },
  timeout: { type: "value", kind: values.seconds, help: "Give up after this many seconds" },
  "no-settle": { type: "switch", help: "Do not wait until the gateway's index and journal show the changes" },
  limit: { type: "value", kind: values.itemCount, default: 100, help: "Show at most this many (0: all)" },
  drain: { type: "optionalValue", kind: values.seconds, help: "Upload everything first, for at most S seconds" },
  data: { type: "value", kind: values.named("DIR"), variable: true, help: "Folder of the local gateway" },
  host: { type: "value", kind: values.named("H"), default: "127.0.0.1", help: "Address to listen on" },
  "allow-host": {
    type: "list",
    kind: values.named("NAME"),
    defaultHelp: "its addresses and localhost",
    help: "Other names that clients know the gateway by",
  },
  "client-id": { type: "value", kind: values.named("ID"), help: "Id of this gateway at --issuer" },
  "client-secret-file": {
    type: "value",
    kind: values.named("FILE"),
    help: "File with the secret of --client-id, if any",
  },
  port: {
    type: "value",
    kind: values.port,
    defaultHelp: "the last one, else a free one",
    help: "Port to listen on",
  },
  "workspace-list": {
    type: "list",
    kind: values.named("NAME"),
    defaultHelp: "those there are, or one",
    help: "Workspaces, made if new",
  },
  latency: { ...late, help: "Delay each answer, half of it before the effect" },
  "path-lag": { ...late, help: "Show changes late by path and in listings" },
  "journal-lag": { ...late, help: "Show changes late in the journal" },
  "id-lag": { ...late, help: "Answer 404 for the id of a node that is younger than this" },
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
    help: "Largest file to accept",
  },
  quota: { type: "list", kind: values.quota, defaultHelp: "none", help: "How much each workspace, or one, may hold" },
  quiet: { type: "switch", help: "No line for each request" },
  fault: {
    type: "list",
    kind: values.fault,
    defaultHelp: "none",
    help: "Share of requests, of all or of one operation, to fail: error, unavailable, throttled, reset-before, reset-during, reset-after, truncated-upload, truncated-answer, ignored-range",
  },
  "retry-after": {
    type: "value",
    kind: values.retrySeconds,
    default: 1,
    help: "Seconds in Retry-After of a throttled answer (429)",
  },
  "upload-speed": { ...speed, help: "Speed of uploads, bytes a second" },
  "download-speed": { ...speed, help: "Speed of answers, bytes a second" },
  "token-life": {
    type: "value",
    kind: values.lifeSeconds,
    defaultHelp: "as the token says",
    help: "End every token this many seconds after its issue",
  },
  "clock-skew": {
    type: "value",
    kind: values.skew,
    default: 0,
    help: "Set the gateway's clock ahead, or with - behind",
  },
  bare: {
    type: "switch",
    help: "Offer only the calls that every gateway has, under other names; mount it with its profile",
  },
  profile: {
    type: "value",
    kind: values.named("FILE"),
    variable: true,
    file: true,
    setting: "profile",
    help: "Profile of another gateway, as JSON: its names for calls and fields, and the features it lacks",
  },
  faults: { type: "switch", help: "Open the control endpoint /faults (GET, PATCH), without a token" },
  scope: {
    type: "list",
    kind: { ...values.oneOf(...SCOPES), placeholder: "S" },
    defaultHelp: "all",
    help: `Scope the token carries, one of ${SCOPES.join(" ")}`,
  },
  "call-scope": {
    type: "list",
    kind: { ...values.oneOf(...SCOPES), placeholder: "S" },
    defaultHelp: "the one that the operation takes",
    help: "Scope the token carries, as wsfs login --help lists them",
  },
  ttl: {
    type: "value",
    kind: values.seconds,
    default: 30 * 86_400,
    defaultHelp: "30 days",
    help: "How long the token is good",
  },
  env: {
    type: "value",
    kind: values.named("NAME"),
    variable: true,
    defaultHelp: 'the one of "wsfs env use", else production, else local',
    help: "Environment to use",
  },
  issuer: {
    type: "value",
    kind: values.issuer,
    file: true,
    defaultHelp: "the gateway itself",
    help: "OAuth or OpenID issuer that people sign in at",
  },
  store: {
    type: "value",
    kind: values.oneOf("file", "keyring"),
    defaultHelp: "as before, else file",
    help: "What keeps the login: an owner-only file, or the keyring of your session (Secret Service)",
  },
  /** For a daemon: see entry-settings.ts. */
  settings: { type: "switch", help: "" },
  "no-browser": { type: "switch", help: "Do not open the page, only show its address" },
  force: { type: "switch", help: "Remove the login here even if the gateway cannot be reached" },
  query: { type: "list", kind: values.pair, defaultHelp: "none", help: "A field of the query" },
  body: {
    type: "value",
    kind: values.named("JSON|@FILE"),
    help: "A JSON body, or a file with one (@- for standard input)",
  },
  form: {
    type: "list",
    kind: values.pair,
    defaultHelp: "none",
    help: "A field of a multipart body; @FILE for a file's content (@- for standard input)",
  },
  output: { type: "value", kind: values.named("FILE"), help: "File for the body; without it, standard output" },
  stream: { type: "switch", help: "Print the data of each server-sent event on a line of its own" },
  include: { type: "switch", help: "Print status and headers first" },
  path: { type: "value", kind: values.named("PATH"), defaultHelp: "/Engines/NAME", help: "Where its folder is" },
  state: { type: "value", kind: values.oneOf(...EXECUTION_STATES), help: "Only executions in this state" },
  engine: { type: "value", kind: values.named("ENGINE"), help: "Name or id of the engine" },
  "engine-filter": { type: "value", kind: values.named("ENGINE"), help: "Only those of this engine" },
  input: {
    type: "value",
    kind: values.named("JSON|@FILE|-"),
    defaultHelp: "none",
    help: "Input of the engine: JSON, a file with it, or - for standard input",
  },
  follow: { type: "switch", help: "Print its log as it grows, until the execution has ended" },
  "wait-end": { type: "switch", help: "Wait until the execution has ended; the exit code says whether it succeeded" },
  "idempotency-key": {
    type: "value",
    kind: values.named("KEY"),
    help: "Two runs with the same key are one run: for scripts that may be run again",
  },
  expires: {
    type: "value",
    kind: values.lifetime,
    defaultHelp: "never",
    help: "How long the key is good: 90m, 12h or 30d",
  },
  "on-kind": {
    type: "list",
    kind: { ...values.oneOf(...GATEWAY_KINDS), placeholder: "KIND" },
    defaultHelp: "every change and activity",
    help: "For changes of this kind: created, updated (a save), moved, changed (attributes), deleted or restored; or for what an execution tells of itself: execution.queued, execution.running, execution.succeeded and so on",
  },
  "on-activity": {
    type: "list",
    kind: values.named("KIND"),
    defaultHelp: "every change and activity",
    help: "For activities of this kind, a word that programs write to the journal",
  },
  "on-path": {
    type: "value",
    kind: values.named("PATTERN"),
    defaultHelp: "every path",
    help: "For changes of nodes with such a path, such as /pictures/** (the folder and all in it) or /**/*.pdf",
  },
  cron: {
    type: "value",
    kind: values.named("CRON"),
    help: "At these times: minute, hour, day of the month, month, day of the week",
  },
  "time-zone": {
    type: "value",
    kind: values.named("ZONE"),
    defaultHelp: "UTC",
    help: "Time zone of --cron, such as Europe/Berlin",
  },
  description: { type: "value", kind: values.text, default: "", defaultHelp: "none", help: "What it does, for people" },
  "time-limit": {
    type: "value",
    kind: values.runSeconds,
    default: 3600,
    help: "End an execution that runs longer",
  },
  "key-scope": {
    type: "list",
    kind: { ...values.oneOf(...KEY_SCOPES), placeholder: "S" },
    help: "What the key may do: a scope, as wsfs login --help lists them",
  },
  "engine-scope": {
    type: "list",
    kind: { ...values.oneOf(...KEY_SCOPES), placeholder: "S" },
    defaultHelp: "those that begin with node., for files",
    help: "What the engine may do in a workspace that it is installed in, as the scope of a token",
  },
  "input-schema": {
    type: "value",
    kind: values.named("FILE"),
    defaultHelp: "any JSON",
    help: "Schema of the engine's input: a JSON Schema (2020-12)",
  },
  "max-executions": {
    type: "value",
    kind: values.executionCount,
    default: 4,
    help: "How many executions of engines run at a time",
  },
  generate: { type: "switch", help: "Make a password, and print it" },
  outside: {
    type: "switch",
    help: "No password: the account goes to the first person who signs in at --issuer under this name",
  },
  "revoke-all": { type: "switch", help: "End all tokens, logins and API keys of the gateway" },
  role: { type: "value", kind: values.oneOf(...ROLES), help: "Role of the account in the workspace" },
  versions: {
    type: "value",
    kind: values.named("STEPS"),
    defaultHelp: "as before",
    help: 'Past contents that are kept, as steps such as "all for 1d, hourly for 7d, monthly for ever" (all, hourly, daily, weekly, monthly, yearly), "all" or "none"',
  },
  "deleted-age": {
    type: "value",
    kind: values.named("AGE"),
    defaultHelp: "as before",
    help: "How long what was deleted can be restored: 12h, 30d, 8w, 2y or ever",
  },
  "dry-run": { type: "switch", help: "Change nothing; only show what would be removed" },
  verify: { type: "switch", help: "Also read the whole backup again at the end and compare hashes" },
  /** For the gateway that `start` keeps: see gateway-watch.ts. */
  "until-unmounted": { type: "switch", help: "" },
} as const satisfies Record<string, Flag>;

/** Flags that make a gateway misbehave. */
export const LAG_FLAGS = ["latency", "path-lag", "journal-lag", "id-lag"] as const;
export const FAULT_FLAGS = ["fail-rate", "fault", "retry-after", "upload-speed", "download-speed"] as const;
export const OUTSIDE_FLAGS = ["issuer", "client-id", "client-secret-file"] as const;

export type FlagName = keyof typeof FLAGS;
