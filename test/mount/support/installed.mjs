/**
 * Loaded before each daemon (`node --import`): the file WSFS_INSTALLED says what is wrong with the program that is
 * installed by now, as far as a mount that goes on notices it; without that file nothing is. Its first line counts,
 * and is taken away where it says "once".
 *
 *   half          a part of it is missing: it does not stand its own check
 *   dead          it stands that, and ends at its start
 *   stuck         it stands that, and does nothing as long as that file is there
 *   sick          it ends as soon as it serves
 *   orphan        it kills its supervisor first of all, once
 *   orphan LABEL  it does so at this fault point
 *   dies LABEL    it dies by kill -9 at this fault point, once; also one that runs already
 *   fails LABEL   it ends there by a fault of its own, once; also one that runs already
 *   next LABEL    one that is started by then does
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { systemClock } from "../../../dist/lib/system-clock.js";

const CRASH = 70;
const { WSFS_INSTALLED: file } = process.env;

const lines = () => {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return [];
  }
};
const wrong = () => lines()[0] ?? "";
const isDone = () => {
  const [, ...rest] = lines();
  if (rest.length === 0) rmSync(file);
  else writeFileSync(file, rest.join("\n"));
};

if (isMainThread && file !== undefined && process.argv[1]?.endsWith("/daemon/main.js")) {
  const isCheck = process.argv.includes("--check");
  const atStart = wrong();
  if (atStart === "half" && isCheck) throw new Error("half of the build is missing");
  if (atStart === "dead" && !isCheck) process.exit(CRASH);
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (!isCheck && wrong() === "stuck") Atomics.wait(clock, 0, 0, 20);
  if (atStart === "orphan" && !isCheck) {
    isDone();
    process.kill(process.ppid, "SIGKILL");
  }
  systemClock.step = (label) => {
    if (label === "daemon: ready" && atStart === "sick") setImmediate(() => process.exit(CRASH));
    const now = wrong();
    if (now === `orphan ${label}` && now === atStart) {
      isDone();
      process.kill(process.ppid, "SIGKILL");
    }
    if (now === `fails ${label}`) {
      isDone();
      process.exit(CRASH);
    }
    if (now !== `dies ${label}` && !(now === `next ${label}` && now === atStart)) return;
    isDone();
    process.kill(process.pid, "SIGKILL");
  };
}
