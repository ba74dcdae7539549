/**
 * A supervisor in the place of one that died: it is given the device, and looks after this daemon as if it had
 * started it. Knows how the program is called, and nothing of what the two tell each other.
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
/** As the program takes it; longer says no more. */
const SERVED_MS_MAX = 2 ** 31 - 1;

export interface NewSupervisor {
  readonly open: OpenLineSocket;
  readonly pid: number;
}

/** Undefined, and the log says why: there is none. */
export function startSupervisor(
  settings: DaemonSettings,
  device: number,
  /** For how long we have served; undefined: we have not said yet that we do. */
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
