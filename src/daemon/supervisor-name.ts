/** What a supervisor says by its name, in `ps` and to commands: nobody else can be asked while no daemon serves. */
import { readFileSync } from "node:fs";
import { hasCode } from "../lib/system-error.ts";
import { isAlive, type ProcessIdentity, userOf } from "./processes.ts";

/** As native/supervisor/supervisor.c has it. */
const WAITING = "wsfs-waiting";

/** After a reload that no daemon has come to serve of: it keeps the mount until one can. */
export function waitsForRelease(supervisor: ProcessIdentity): boolean {
  try {
    return readFileSync(`/proc/${supervisor.pid}/comm`, "utf8").trimEnd() === WAITING && isAlive(supervisor);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ESRCH")) return false;
    throw error;
  }
}

/**
 * Tells one of the user who mounted, and that waits so, to end: which one it is, that user says. False: it does not, or has
 * ended by itself, and another one may be in its place.
 */
export function endWhoWaits(supervisor: ProcessIdentity, uid: number, kill = process.kill): boolean {
  try {
    return userOf(supervisor.pid) === uid && waitsForRelease(supervisor) && kill(supervisor.pid, "SIGTERM");
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
    throw error;
  }
}
