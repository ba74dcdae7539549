/**
 * Has the command (`wsfs env show --settings`) say what the configuration file says of a mount: the table of what may stand
 * there is the command line's. A process of its own, for the file, or a profile that it names, may lie behind a mount.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type EntrySettings, entrySettings } from "./entry-settings.ts";
import { CONTROL_VARIABLE, SETTINGS_VARIABLE } from "./settings.ts";

const PROGRAM = fileURLToPath(new URL("../cli/main.js", import.meta.url));
const LIMIT_MS = 30_000;
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** Rejects with the line that the command has for whoever runs it. */
export function readEntrySettings(name: string): Promise<EntrySettings> {
  const options = {
    cwd: "/",
    // A daemon's own are none of its.
    env: { ...process.env, [SETTINGS_VARIABLE]: undefined, [CONTROL_VARIABLE]: undefined },
    timeout: LIMIT_MS,
    killSignal: "SIGKILL",
    maxBuffer: OUTPUT_BYTES_MAX,
  } as const;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [PROGRAM, "env", "show", name, "--settings"], options, (error, output, said) => {
      if (error === null) return resolve(entrySettings.parse(JSON.parse(output)));
      const line = said.split("\n").find((text) => text.startsWith("wsfs: "));
      reject(new Error(line?.slice("wsfs: ".length) ?? `the configuration could not be read: ${error.message}`));
    });
  });
}
