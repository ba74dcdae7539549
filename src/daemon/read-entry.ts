/**
 * Asks the command (`wsfs env show --settings`) what the configuration file says about a mount: only the command line
 * knows the table of keys. It is a process of its own, because the file or a profile that it names may lie behind a
 * mount.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type EntrySettings, entrySettings } from "./entry-settings.ts";
import { CONTROL_VARIABLE, SETTINGS_VARIABLE } from "./settings.ts";

const PROGRAM = fileURLToPath(new URL("../cli/main.js", import.meta.url));
const LIMIT_MS = 30_000;
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** Rejects with the error line that the command prints for a person who runs it. */
export function readEntrySettings(name: string): Promise<EntrySettings> {
  const options = {
    cwd: "/",
    // The child must not inherit this daemon's own settings and control socket.
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
