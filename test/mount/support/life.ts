/** A daemon with an engine of one empty folder (fake-daemon.mjs), behind the real supervisor. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { listServed } from "../../../src/daemon/runtime-folder.ts";
import { type DaemonSettings, SETTINGS_VARIABLE } from "../../../src/daemon/settings.ts";
import { supervisorProgram } from "../../../src/lib/compiled.ts";
import { type Finished, finished, until } from "../../support/child.ts";
import type { Place } from "../../support/wsfs.ts";

const DAEMON = fileURLToPath(new URL("fake-daemon.mjs", import.meta.url));

export interface Life {
  readonly dir: string;
  readonly daemon: number;
  readonly supervisor: number;
  /** The supervisor has said so: from here on a signal ends a mount, not a start. */
  isReady(): boolean;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Finished>;
}

/** A supervisor and its daemon, which may never get as far as a mount. */
export function launchIn(place: Place, workspace: string, name = "m", stateDir = "s"): Omit<Life, "daemon"> {
  const dir = place.path(name);
  mkdirSync(dir);
  const settings: DaemonSettings = {
    mountId: randomUUID(),
    crashes: 0,
    mountpoint: dir,
    baseUrl: "http://127.0.0.1:9",
    workspace,
    tokenFile: place.path("token"),
    stateDir: place.path(stateDir),
    stateHome: place.path("state"),
    runtimeFolder: place.path("run"),
    cacheSize: 1000,
    patienceMs: 0,
    shortenWaits: 1,
    readOnly: false,
    passthrough: true,
    durability: "local",
    logLevel: "debug",
    foreground: true,
  };
  const args = ["--mountpoint", dir, "--source", "test", "--options", "default_permissions", "--status-fd", "3"];
  const child = spawn(supervisorProgram(), [...args, "--", process.execPath, DAEMON], {
    cwd: "/",
    env: { ...place.env, [SETTINGS_VARIABLE]: JSON.stringify(settings) },
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  let status = "";
  child.stdio[3]?.on("data", (data: Buffer) => {
    status += data.toString();
  });
  return {
    dir,
    supervisor: child.pid ?? 0,
    isReady: () => /^ready /m.test(status),
    kill: (signal) => child.kill(signal),
    ended: finished(child),
  };
}

/** Resolves when it is usable. */
export async function mountedIn(place: Place, workspace = "ok", name = "m", stateDir = "s"): Promise<Life> {
  const life = launchIn(place, workspace, name, stateDir);
  const record = () => listServed(place.path("run")).find(({ mountpoint }) => mountpoint === life.dir);
  await until("the mount is usable", () => life.isReady() && record() !== undefined);
  return { ...life, daemon: record()?.daemon.pid ?? 0 };
}

/** A program that has the mount as its current folder. */
export async function occupy(dir: string) {
  const child = spawn("bash", ["-c", `cd '${dir}' && exec sleep 100`], { stdio: "ignore" });
  // By its name: before, bash has the folder.
  await until("it is there", () => readFileSync(`/proc/${child.pid}/comm`, "utf8") === "sleep\n");
  return child;
}
