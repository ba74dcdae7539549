/**
 * An exclusive lock file that holds its owner's pid and start time. A lock of a dead process is taken over. This file
 * uses only Node's own modules.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Takes the lock, and blocks the thread until then. Returns the function that releases it. The end of the process
 * releases it too. `say` gets one line when another process has the lock.
 */
export function takeLock(path, say) {
  const mine = `${process.pid} ${startTime(process.pid)}`;
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, mine);
  try {
    let told = false;
    while (!linked(draft, path)) {
      const owner = readOrNothing(path);
      if (owner === undefined) continue; // given back just now
      const [pid = "", started] = owner.split(" ");
      if (startTime(pid) !== started) {
        takeAway(path, owner);
        continue;
      }
      if (!told) say(`waiting for another set-up (process ${pid})`);
      told = true;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  const release = () => {
    if (readOrNothing(path) === mine) rmSync(path, { force: true });
  };
  process.once("exit", release);
  return release;
}

/** Uses link(2), so that the lock appears with its content or not at all. */
function linked(draft, path) {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Removes the file of a dead owner. Only one of several processes can move it. A process that moved a living owner's
 * file puts it back.
 */
function takeAway(path, deadOwner) {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (error.code === "ENOENT") return;
    throw error;
  }
  if (readOrNothing(aside) !== deadOwner) linked(aside, path);
  rmSync(aside, { force: true });
}

/**
 * Returns the start time of a process in clock ticks since boot. A pid with its start time is unique. "gone": there is
 * no such process.
 */
function startTime(pid) {
  const stat = readOrNothing(`/proc/${pid}/stat`);
  if (stat === undefined) return "gone";
  // The start time is field 22. The second field, the name in brackets, may contain anything.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "gone";
}

function readOrNothing(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return undefined;
    throw error;
  }
}
