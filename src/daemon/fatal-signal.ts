/**
 * Tells whether a signal that is pending for a thread asks its program to end. The kernel interrupts a call for any
 * signal, for example when the program is stopped, when a child ends, or for a debugger. This file reads text of /proc,
 * which sends no request to a mount.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { constants } from "node:os";

type Signal = keyof typeof constants.signals;

const setOf = (...names: Signal[]) =>
  names.reduce((set, name) => set | (1n << BigInt(constants.signals[name] - 1)), 0n);

/** These signals end a program, also when the program catches them to end in its own way. */
const ENDS = setOf("SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM");
/** Uncaught, these signals stop a program or do nothing. All other uncaught signals end it. */
const GOES_ON = setOf("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGCHLD", "SIGURG", "SIGWINCH");

/**
 * Also true where the state of the thread is unknown: the thread is gone, or we may not see it, or `proc` belongs to
 * another pid namespace than ours and shows another process under that number.
 */
export function hasFatalSignal(thread: number, proc = "/proc"): boolean {
  let text: string;
  try {
    if (readlinkSync(`${proc}/self`) !== String(process.pid)) return true;
    text = readFileSync(`${proc}/${thread}/status`, "latin1");
  } catch {
    return true;
  }
  const set = (name: string) => BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]+)$`, "m").exec(text)?.[1] ?? "0"}`);
  // A debugger keeps ignored signals of its program pending too.
  const waiting = (set("SigPnd") | set("ShdPnd")) & ~(set("SigBlk") | set("SigIgn"));
  return (waiting & (ENDS | ~(set("SigCgt") | GOES_ON))) !== 0n;
}
