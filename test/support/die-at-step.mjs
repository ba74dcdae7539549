/**
 * Loaded before a program of dist/ (`node --import`): it ends as by kill -9 when it comes by the
 * fault point WSFS_DIE_AT, but only the first program of all that does; the file WSFS_DIE_ONCE is
 * the mark that one did.
 */
import { closeSync, openSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { systemClock } from "../../dist/lib/system-clock.js";

const { WSFS_DIE_AT: wanted, WSFS_DIE_ONCE: once } = process.env;

if (isMainThread && wanted !== undefined && once !== undefined) {
  systemClock.step = (label) => {
    if (label !== wanted) return;
    try {
      closeSync(openSync(once, "wx"));
    } catch {
      return;
    }
    process.kill(process.pid, "SIGKILL");
  };
}
