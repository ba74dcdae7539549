/**
 * An exclusive lock file that holds its owner's pid and start time. One left behind by a dead
 * process is taken over. Uses only Node's own modules.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Waits, blocking, until the lock is ours; returns the function that gives it back. It is also
 * given back when the process exits. `say` gets one line when there is somebody to wait for.
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

/** link(2): the lock appears with its content, or not at all. */
function linked(draft, path) {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/** Only one of many can move a dead owner's file; who moved a living one's instead puts it back. */
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

/** In clock ticks since boot; pid and this together never come back. "gone" when there is none. */
function startTime(pid) {
  const stat = readOrNothing(`/proc/${pid}/stat`);
  if (stat === undefined) return "gone";
  // Field 22; the second, the name in brackets, may hold anything.
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
