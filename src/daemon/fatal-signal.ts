/**
 * Whether a signal that waits for a thread asks its program to end. The kernel interrupts a call for any signal: for
 * one that stops the program, for the end of a child, for a debugger. Reads text of /proc, which asks no file system.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { constants } from "node:os";

type Signal = keyof typeof constants.signals;

const setOf = (...names: Signal[]) =>
  names.reduce((set, name) => set | (1n << BigInt(constants.signals[name] - 1)), 0n);

/** Also where the program catches it, to end in its own way. */
const ENDS = setOf("SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM");
/** Not caught, they stop a program, or nothing comes of them; others end it. */
const GOES_ON = setOf("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGCHLD", "SIGURG", "SIGWINCH");

/**
 * True where nobody knows: of a thread that is gone, or is not shown to us, or where `proc` is that of another pid
 * namespace than ours, and shows somebody else by that number.
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
  // Of a program under a debugger those it ignores wait as well.
  const waiting = (set("SigPnd") | set("ShdPnd")) & ~(set("SigBlk") | set("SigIgn"));
  return (waiting & (ENDS | ~(set("SigCgt") | GOES_ON))) !== 0n;
}
