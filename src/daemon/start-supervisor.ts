/**
 * Starts a supervisor in the place of one that died. It gets the device and looks after this daemon as if it had
 * started it. This file knows the program's command line, and nothing of the messages between the two.
 */
import { spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { openControl, socketPair } from "../fuse/native.ts";
import { supervisorProgram } from "../lib/compiled.ts";
import type { Logger } from "../lib/log.ts";
import type { DaemonSettings } from "./settings.ts";
import type { OpenLineSocket } from "./supervisor-link.ts";
import { heartbeatLimitSeconds } from "./waiting.ts";

const CONTROL_FD = 3;
const DEVICE_FD = 4;
/** The largest number that the program takes. A longer time means no more. */
const SERVED_MS_MAX = 2 ** 31 - 1;

interface NewSupervisor {
  readonly open: OpenLineSocket;
  readonly pid: number;
}

/** Undefined: no supervisor could be started, and the log says why. */
export function startSupervisor(
  settings: DaemonSettings,
  device: number,
  /** For how long this daemon has served, in milliseconds. Undefined: it has not said yet that it serves. */
  servedMs: number | undefined,
  log: Logger,
): NewSupervisor | undefined {
  const [own, theirs] = socketPair("seqpacket");
  try {
    const child = spawn(
      supervisorProgram(),
      [
        ...["--adopt", String(process.pid), "--control-fd", String(CONTROL_FD), "--device-fd", String(DEVICE_FD)],
        ...["--mountpoint", settings.mountpoint, "--crashes", String(settings.crashes)],
        ...(servedMs === undefined ? [] : ["--served", String(Math.min(Math.floor(servedMs), SERVED_MS_MAX))]),
        ...["--silence", String(heartbeatLimitSeconds(settings.shortenWaits))],
        ...["--", process.execPath, ...process.execArgv, ...process.argv.slice(1)],
      ],
      { cwd: "/", env: process.env, detached: true, stdio: ["ignore", "inherit", "inherit", theirs, device] },
    );
    child.on("error", (error) => log.error({ err: error }, "no supervisor can be started"));
    child.unref();
    if (child.pid === undefined) throw new Error("no process");
    return { open: (onLine, onEnd) => openControl(own, onLine, onEnd), pid: child.pid };
  } catch (error) {
    log.error({ err: error }, "no supervisor can be started");
    closeSync(own);
    return undefined;
  } finally {
    closeSync(theirs);
  }
}
