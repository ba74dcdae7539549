/**
 * Reads the state of a supervisor from its process name, which `ps` shows too: while no daemon serves, no other process
 * can be asked.
 */
import { readFileSync } from "node:fs";
import { hasCode } from "../lib/system-error.ts";
import { isAlive, type ProcessIdentity, userOf } from "./processes.ts";

/** The process name of a supervisor while no daemon serves: NAME_WAITING in native/supervisor/supervisor.h. */
const WAITING = "wsfs-waiting";

/** True if no daemon could serve after a reload, and the supervisor keeps the mount until one can. */
export function waitsForRelease(supervisor: ProcessIdentity): boolean {
  try {
    return readFileSync(`/proc/${supervisor.pid}/comm`, "utf8").trimEnd() === WAITING && isAlive(supervisor);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ESRCH")) return false;
    throw error;
  }
}

/**
 * Tells a supervisor of this user that waits for a release to end. Other users' processes are never signalled, because
 * the pid comes from a record that its user wrote. False: it does not wait, or it has ended and another process may
 * have its pid.
 */
export function endWaitingSupervisor(supervisor: ProcessIdentity, uid: number, kill = process.kill): boolean {
  try {
    return userOf(supervisor.pid) === uid && waitsForRelease(supervisor) && kill(supervisor.pid, "SIGTERM");
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
    throw error;
  }
}
