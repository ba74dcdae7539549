/**
 * Loaded before each daemon (`node --import`): it ends as by kill -9 at a place where none has ended yet, and so does
 * the one that takes over. A place is a fault point that matches WSFS_DIE_LABELS, and where the program on the mount is
 * by then. They meet in the folder WSFS_DIE_FOLDER:
 *
 *   at     what the program wrote last of where it is
 *   gap    read at the start and at SIGUSR2: so many fault points a daemon lives at least; not there: nobody dies
 *   heard  is there once that was read
 *   seen   a line for each place somebody came by who was to die; those of them where nobody died were come by only by
 *          daemons that had not lived so long
 *   died   a line for each death
 */
import { appendFileSync, existsSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { systemClock } from "../../../dist/lib/system-clock.js";

const { WSFS_DIE_LABELS: labels, WSFS_DIE_FOLDER: folder } = process.env;

if (isMainThread && labels !== undefined && folder !== undefined) {
  const wanted = new RegExp(labels);
  const path = (name) => join(folder, name);
  const lines = (name) => (existsSync(path(name)) ? readFileSync(path(name), "utf8").split("\n") : []);
  const [seen, died] = [new Set(lines("seen")), new Set(lines("died"))];
  const at = openSync(path("at"), "r");
  const word = Buffer.alloc(16);
  let gap = Number.POSITIVE_INFINITY;
  let passed = 0;
  const read = () => {
    gap = existsSync(path("gap")) ? Number(readFileSync(path("gap"), "utf8")) : Number.POSITIVE_INFINITY;
    writeFileSync(path("heard"), "");
  };
  process.on("SIGUSR2", read);
  read();
  systemClock.step = (label) => {
    if (gap === Number.POSITIVE_INFINITY || !wanted.test(label)) return;
    passed += 1;
    const place = `${word.toString("utf8", 0, readSync(at, word, 0, word.length, 0)).trim()} ${label}`;
    if (!seen.has(place)) {
      seen.add(place);
      appendFileSync(path("seen"), `${place}\n`);
    }
    if (passed < gap || died.has(place)) return;
    appendFileSync(path("died"), `${place}\n`);
    process.kill(process.pid, "SIGKILL");
  };
}
