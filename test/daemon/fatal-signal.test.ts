/** Of a program that is stopped, all signals but the last one wait. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasFatalSignal } from "../../src/daemon/fatal-signal.ts";
import { until } from "../support/child.ts";

const PROGRAM = `
import signal, sys, time
for name in sys.argv[1:]: signal.signal(getattr(signal, name), lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
print("ready", flush=True)
while True: time.sleep(60)
`;

async function tellStopped(caught: readonly NodeJS.Signals[], signals: readonly NodeJS.Signals[]): Promise<boolean> {
  const child = spawn("python3", ["-c", PROGRAM, ...caught], { stdio: ["ignore", "pipe", "ignore"] });
  const { pid = 0 } = child;
  try {
    await once(child.stdout, "data");
    child.kill("SIGSTOP");
    await until("it is stopped", () => / \(.*\) T /.test(readFileSync(`/proc/${pid}/stat`, "latin1")));
    for (const signal of signals) child.kill(signal);
    return hasFatalSignal(pid);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
}

test.each([
  ["nothing", [], [], false],
  ["a child's end, a timer it waits for", ["SIGALRM"], ["SIGCHLD", "SIGALRM", "SIGURG", "SIGWINCH"], false],
  ["one it does not want to hear of now", [], ["SIGUSR2"], false],
  ["a stop", [], ["SIGTSTP"], false],
  ["an end, which it catches", ["SIGINT"], ["SIGINT"], true],
  ["an end, which it does not catch", [], ["SIGTERM"], true],
  ["what ends it since it does not catch it", [], ["SIGUSR1"], true],
] as const)("a program that is told %s: %j %j %s", async (_, caught, signals, isEnd) => {
  expect(await tellStopped(caught, signals)).toBe(isEnd);
});

test("of a thread that is not there nobody knows", () => {
  expect(hasFatalSignal(0)).toBe(true);
});

/** A /proc of these: who "self" is, and the signals of thread 7. */
function procOf(self: number, signals: string): string {
  const proc = mkdtempSync(join(tmpdir(), "wsfs-proc-"));
  symlinkSync(String(self), join(proc, "self"));
  mkdirSync(join(proc, "7"));
  writeFileSync(join(proc, "7/status"), signals);
  return proc;
}

test("what a debugger is shown of signals the program ignores ends nothing; another namespace's /proc tells nothing", () => {
  const ignored =
    "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000001\nSigBlk:\t0\nSigIgn:\t0000000000000001\nSigCgt:\t0\n";
  const ours = procOf(process.pid, ignored);
  const others = procOf(process.pid + 1, ignored);
  expect([hasFatalSignal(7, ours), hasFatalSignal(7, others)]).toEqual([false, true]);
  for (const proc of [ours, others]) rmSync(proc, { recursive: true });
});
