/** The commands of the service: what one may do at a gateway that one is signed in to. See options.ts. */
import type { Command } from "./command.ts";

export const SERVICE_COMMANDS = {
  workspaces: {
    dir: "none",
    summary: "The workspaces that you may see",
    flags: ["env", "json", "debug"],
    examples: [["wsfs workspaces", "as wsfs workspaces list"]],
  },
  "workspaces list": {
    dir: "none",
    summary: "List the workspaces that you may see",
    flags: ["env", "json", "debug"],
    examples: [["wsfs workspaces list --json | jq -r .name", "their names, one a line"]],
  },
  "workspaces create": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Make a workspace; you are its owner",
    flags: ["env", "json", "debug"],
    examples: [["wsfs workspaces create papers", "then: wsfs mount ~/papers --workspace papers"]],
  },
  engines: {
    dir: "none",
    summary: "The engines of the gateway: programs that can be run on a workspace",
    flags: ["env", "json", "debug"],
    examples: [["wsfs engines", "as wsfs engines list"]],
  },
  "engines list": {
    dir: "none",
    summary: "List the engines of the gateway",
    flags: ["env", "json", "debug"],
    examples: [["wsfs engines list", "the owner of the gateway adds them: wsfs gateway engine add"]],
  },
  "engines show": {
    dir: "none",
    positionals: ["ENGINE"],
    summary: "Show an engine: what it takes and what it may do",
    flags: ["env", "json", "debug"],
    examples: [["wsfs engines show thumbnails", "by name or id"]],
  },
  installations: {
    dir: "none",
    summary: "The engines that are installed in a workspace",
    flags: ["env", "workspace", "json", "debug"],
    examples: [["wsfs installations --workspace main", "as wsfs installations list"]],
  },
  "installations list": {
    dir: "none",
    summary: "List the engines that are installed in a workspace",
    flags: ["env", "workspace", "json", "debug"],
    examples: [["wsfs installations list --workspace main", ""]],
  },
  "installations create": {
    dir: "none",
    positionals: ["ENGINE"],
    summary: "Install an engine in a workspace, which makes its folder",
    flags: ["env", "workspace", "path", "json", "debug"],
    examples: [
      ["wsfs installations create thumbnails --workspace main", "its folder is /Engines/thumbnails"],
      ["wsfs installations create thumbnails --workspace main --path /tools/thumbnails", "or another"],
    ],
  },
  "installations remove": {
    dir: "none",
    positionals: ["ID"],
    summary: "Remove an engine from a workspace; its folder stays",
    flags: ["env", "debug"],
    examples: [["wsfs installations remove ID", "what runs goes on to its end"]],
  },
  executions: {
    dir: "none",
    summary: "What ran in a workspace and runs",
    flags: ["env", "workspace", "state", "engine-filter", "limit", "json", "debug"],
    examples: [["wsfs executions --workspace main", "as wsfs executions list"]],
  },
  "executions list": {
    dir: "none",
    summary: "List what ran in a workspace and runs, newest first",
    flags: ["env", "workspace", "state", "engine-filter", "limit", "json", "debug"],
    examples: [
      ["wsfs executions list --workspace main --state running", ""],
      ["wsfs executions list --workspace main --engine thumbnails --limit 0 --json", "all, for programs"],
    ],
  },
  "executions run": {
    dir: "none",
    positionals: ["ENGINE"],
    summary: "Run an engine in a workspace",
    flags: ["env", "workspace", "input", "follow", "wait-end", "idempotency-key", "json", "debug"],
    examples: [
      [
        "wsfs executions run thumbnails --workspace main --follow",
        "shows its log; exit code 0 if it succeeded, else 1",
      ],
      ["wsfs executions run thumbnails --workspace main --input @sizes.json", "prints the id, for executions logs"],
    ],
  },
  "executions show": {
    dir: "none",
    positionals: ["ID"],
    summary: "Show an execution",
    flags: ["env", "json", "debug"],
    examples: [["wsfs executions show ID --json | jq -r .state", ""]],
  },
  "executions logs": {
    dir: "none",
    positionals: ["ID"],
    summary: "Print what an execution has said: its standard output and error, each to ours",
    flags: ["env", "follow", "json", "debug"],
    examples: [["wsfs executions logs ID --follow", "until it has ended; goes on over lost connections"]],
  },
  "executions cancel": {
    dir: "none",
    positionals: ["ID"],
    summary: "End an execution, and wait until it has ended",
    flags: ["env", "json", "debug"],
    examples: [["wsfs executions cancel ID", "SIGTERM first, SIGKILL some seconds later"]],
  },
  keys: {
    dir: "none",
    summary: "The API keys of a workspace",
    flags: ["env", "workspace", "json", "debug"],
    examples: [["wsfs keys --workspace main", "as wsfs keys list"]],
  },
  "keys list": {
    dir: "none",
    summary: "List the API keys of a workspace",
    flags: ["env", "workspace", "json", "debug"],
    examples: [["wsfs keys list --workspace main", "when each was used last"]],
  },
  "keys create": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Make an API key for a workspace, and print it, this once",
    flags: ["env", "workspace", "key-scope", "expires", "json", "debug"],
    examples: [
      [
        "KEY=$(wsfs keys create backup --workspace main --scope node.node.read-all --scope node.file.read --expires 30d)",
        "for reading only, for a month",
      ],
    ],
  },
  "keys revoke": {
    dir: "none",
    positionals: ["ID"],
    summary: "End an API key, at once",
    flags: ["env", "debug"],
    examples: [["wsfs keys revoke ID", "ID as wsfs keys list shows it"]],
  },
  triggers: {
    dir: "none",
    summary: "What starts engines of a workspace by itself",
    flags: ["env", "workspace", "json", "debug"],
    examples: [["wsfs triggers --workspace main", "as wsfs triggers list"]],
  },
  "triggers list": {
    dir: "none",
    summary: "List what starts engines of a workspace by itself",
    flags: ["env", "workspace", "json", "debug"],
    examples: [["wsfs triggers list --workspace main", ""]],
  },
  "triggers create": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Have an engine started for each change of a kind and place, or at the times of a cron expression",
    flags: ["env", "workspace", "engine", "on-kind", "on-path", "cron", "time-zone", "input", "json", "debug"],
    required: ["engine"],
    examples: [
      [
        "wsfs triggers create pictures --workspace main --engine thumbnails --on-kind created --on-kind updated --on-path '/pictures/**'",
        "for each picture",
      ],
      [
        "wsfs triggers create nightly --workspace main --engine backup --cron '30 2 * * *' --time-zone Europe/Berlin",
        "at half past two",
      ],
    ],
  },
  "triggers show": {
    dir: "none",
    positionals: ["ID"],
    summary: "Show a trigger: when it starts next, and what went wrong last",
    flags: ["env", "json", "debug"],
    examples: [["wsfs triggers show ID", ""]],
  },
  "triggers enable": {
    dir: "none",
    positionals: ["ID"],
    summary: "Switch a trigger on",
    flags: ["env", "json", "debug"],
    examples: [["wsfs triggers enable ID", "changes that came meanwhile are passed over"]],
  },
  "triggers disable": {
    dir: "none",
    positionals: ["ID"],
    summary: "Switch a trigger off",
    flags: ["env", "json", "debug"],
    examples: [["wsfs triggers disable ID", ""]],
  },
  "triggers remove": {
    dir: "none",
    positionals: ["ID"],
    summary: "Remove a trigger; what it has started goes on",
    flags: ["env", "debug"],
    examples: [["wsfs triggers remove ID", ""]],
  },
} as const satisfies Record<string, Command>;
