/**
 * A child that could not be started for want of descriptors (EMFILE, ENFILE) has no process id, but Node keeps its
 * handle: `kill`, a `timeout` and an aborted `signal` then signal the number that happens to be in memory. It is mostly
 * 0, which stands for this process and its whole group.
 */
import type { ChildProcess } from "node:child_process";

/** Returns the child of `spawn` or `execFile`. If it was not started, signals for it go nowhere. */
export function safeToKill<Child extends ChildProcess>(child: Child): Child {
  if (child.pid === undefined) child.kill = () => false;
  return child;
}
