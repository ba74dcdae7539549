/**
 * The daemon or the supervisor of a mount is killed where either starts the other again, so that programs see
 * nothing of it.
 */
import { isSame } from "../../../src/daemon/processes.ts";
import { listServed, type MountRecord } from "../../../src/daemon/runtime-folder.ts";
import { hasCode } from "../../../src/lib/system-error.ts";
import { until } from "../../support/child.ts";
import type { Place, TestMount } from "../../support/wsfs.ts";

/** Of whoever serves it now. */
export function recordOf(place: Place, { dir }: TestMount): MountRecord {
  const served = listServed(place.path("run")).filter(({ mountpoint }) => mountpoint === dir);
  const [newest] = served.sort((a, b) => Number(b.daemon.startTime) - Number(a.daemon.startTime));
  if (newest === undefined) throw new Error(`nobody serves ${dir}`);
  return newest;
}

/** False: it has died by itself meanwhile. */
export function signalDaemon(place: Place, mount: TestMount, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(daemonOf(place, mount), signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
    return false;
  }
}

export const daemonOf = (place: Place, mount: TestMount): number => recordOf(place, mount).daemon.pid;

/** Not before it serves. */
export async function killDaemon(place: Place, mount: TestMount, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  await mount.status();
  process.kill(daemonOf(place, mount), signal);
}

/** Resolves when the daemon has another one: of both at once nobody is left. */
export async function killSupervisor(place: Place, mount: TestMount): Promise<void> {
  await mount.status();
  const { supervisor } = recordOf(place, mount);
  process.kill(supervisor.pid, "SIGKILL");
  await until("it has another supervisor", () => !isSame(recordOf(place, mount).supervisor, supervisor));
}
