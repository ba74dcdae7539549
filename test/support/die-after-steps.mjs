/**
 * Loaded before each daemon (`node --import`): it ends as by kill -9 at the Nth of its fault points that match
 * WSFS_DIE_LABELS, and so does the one that takes over. N stands in the file WSFS_DIE_FILE, read at the start and at
 * SIGUSR2; without it nobody dies. `.died` beside it has a line for each death, `.heard` is there once N was read.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { systemClock } from "../../dist/lib/system-clock.js";

const { WSFS_DIE_LABELS: labels, WSFS_DIE_FILE: file } = process.env;

if (isMainThread && labels !== undefined && file !== undefined) {
  const wanted = new RegExp(labels);
  let left = 0;
  const read = () => {
    left = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
    writeFileSync(`${file}.heard`, "");
  };
  process.on("SIGUSR2", read);
  read();
  systemClock.step = (label) => {
    if (left === 0 || !wanted.test(label)) return;
    left -= 1;
    if (left > 0) return;
    appendFileSync(`${file}.died`, `${label}\n`);
    process.kill(process.pid, "SIGKILL");
  };
}
