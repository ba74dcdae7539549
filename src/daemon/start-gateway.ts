/**
 * Starts a gateway of `wsfs start` as a process. It has a session of its own, so that Ctrl-C does not reach it. Its
 * output goes to gateway.log in its data folder.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { CONTROL_VARIABLE, SETTINGS_VARIABLE } from "./settings.ts";

const PROGRAM = fileURLToPath(new URL("../cli/main.js", import.meta.url));
/** The descriptor of a pipe in the gateway. While the pipe is open, the gateway is wanted even without a mount. */
export const WATCH_FD = 3;

const announced = z.object({ baseUrl: z.string(), workspace: z.string() });
type Announced = z.infer<typeof announced>;

interface StartedGateway {
  /** Undefined: the gateway ended before it served. The log says why. */
  readonly announced: Promise<Announced | undefined>;
  readonly logPath: string;
  /** Closes that pipe: from now on the gateway lives for as long as mounts use it. */
  letGo(): void;
  readonly exited: Promise<void>;
}

/** Throws the system's error when the folder does not exist, and an Error when there can be no process. */
export function startGatewayOf(data: string): StartedGateway {
  const logPath = join(data, "gateway.log");
  const log = openSync(logPath, "a", 0o600);
  const child = spawn(process.execPath, [PROGRAM, "gateway", "--data", data, "--json", "--until-unmounted"], {
    cwd: "/",
    // The child must not inherit a daemon's own settings and control socket.
    env: { ...process.env, [SETTINGS_VARIABLE]: undefined, [CONTROL_VARIABLE]: undefined },
    detached: true,
    stdio: ["ignore", "pipe", log, "pipe"],
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  child.unref();
  // Without descriptors there are no pipes either.
  if (child.pid === undefined) throw new Error("no process can be started for the gateway");
  const watch = child.stdio[WATCH_FD] as Socket;
  watch.on("error", () => {});
  return { announced: readFirstLine(child.stdout as Readable), logPath, letGo: () => watch.destroy(), exited };
}

async function readFirstLine(output: Readable): Promise<Announced | undefined> {
  for await (const line of createInterface({ input: output })) {
    output.destroy();
    return announced.parse(JSON.parse(line));
  }
  return undefined;
}
