/**
 * A gateway of `wsfs start` as a process: a session of its own, so that Ctrl-C does not reach it; its words go to gateway.log
 * in its data folder.
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
/** Where the gateway finds the pipe that says for how long it is wanted without a mount. */
export const WATCH_FD = 3;

const announced = z.object({ baseUrl: z.string(), workspace: z.string() });
export type Announced = z.infer<typeof announced>;

export interface StartedGateway {
  /** Undefined: it has ended before it served; the log says why. */
  readonly announced: Promise<Announced | undefined>;
  readonly logPath: string;
  /** From now on it lives for as long as mounts use it. */
  letGo(): void;
  readonly exited: Promise<void>;
}

/** Throws the system's error where the folder is not there. */
export function startGatewayOf(data: string): StartedGateway {
  const logPath = join(data, "gateway.log");
  const log = openSync(logPath, "a", 0o600);
  const child = spawn(process.execPath, [PROGRAM, "gateway", "--data", data, "--json", "--until-unmounted"], {
    cwd: "/",
    // A daemon's own are none of its.
    env: { ...process.env, [SETTINGS_VARIABLE]: undefined, [CONTROL_VARIABLE]: undefined },
    detached: true,
    stdio: ["ignore", "pipe", log, "pipe"],
  });
  closeSync(log);
  child.unref();
  const watch = child.stdio[WATCH_FD] as Socket;
  watch.on("error", () => {});
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  return { announced: readFirstLine(child.stdout as Readable), logPath, letGo: () => watch.destroy(), exited };
}

async function readFirstLine(output: Readable): Promise<Announced | undefined> {
  for await (const line of createInterface({ input: output })) {
    output.destroy();
    return announced.parse(JSON.parse(line));
  }
  return undefined;
}
