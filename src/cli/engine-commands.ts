/** The commands by which the owner of a local gateway says which programs it may run. See options.ts. */
import type { Command } from "./command.ts";

export const ENGINE_COMMANDS = {
  "gateway engine": {
    dir: "none",
    summary: "The engines of a local gateway: programs that it runs on workspaces",
    flags: ["data", "json", "debug"],
    required: ["data"],
    examples: [["wsfs gateway engine --data ~/gateway", "as wsfs gateway engine list"]],
  },
  "gateway engine add": {
    dir: "none",
    positionals: ["NAME"],
    rest: "COMMAND",
    summary: "Add an engine: a command that the gateway runs as its own Unix user",
    notes: [
      "Add only what you trust: an engine may do on this machine whatever the gateway may.",
      "It runs in an empty folder of its own, so files of yours are named by whole paths. Its input is on standard input, as JSON; WSFS_BASE_URL and WSFS_TOKEN lead to the gateway, WSFS_WORKSPACE and WSFS_FOLDER say where it is installed. Exit code 0 is success; what it prints is its log.",
    ],
    flags: ["data", "description", "time-limit", "engine-scope", "input-schema", "debug"],
    required: ["data"],
    examples: [
      [
        "wsfs gateway engine add thumbnails --data ~/gateway --time-limit 600 -- node ~/engines/thumbnails.js",
        "then: wsfs installations create thumbnails",
      ],
    ],
  },
  "gateway engine list": {
    dir: "none",
    summary: "List the engines with their commands",
    flags: ["data", "json", "debug"],
    required: ["data"],
    examples: [["wsfs gateway engine list --data ~/gateway", ""]],
  },
  "gateway engine show": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Show an engine: its command, what it takes, what it may do",
    flags: ["data", "json", "debug"],
    required: ["data"],
    examples: [["wsfs gateway engine show thumbnails --data ~/gateway", ""]],
  },
  "gateway engine remove": {
    dir: "none",
    positionals: ["NAME"],
    summary: "Remove an engine: what runs goes on, what waits is cancelled at its turn",
    flags: ["data", "debug"],
    required: ["data"],
    examples: [["wsfs gateway engine remove thumbnails --data ~/gateway", "its folders in workspaces stay"]],
  },
} as const satisfies Record<string, Command>;
