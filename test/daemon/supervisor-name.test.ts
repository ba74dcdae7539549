/** A process with a supervisor's name: told to end where it waits, and only then. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";
import { identifyProcess, type ProcessIdentity } from "../../src/daemon/processes.ts";
import { endWaitingSupervisor } from "../../src/daemon/supervisor-name.ts";

const UID = process.getuid?.() ?? 0;

const NAMED = `
import ctypes, signal, sys
ctypes.CDLL(None).prctl(15, sys.argv[1].encode())
print("named", flush=True)
signal.pause()
`;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

async function named(name: string): Promise<{ child: ChildProcess; identity: ProcessIdentity }> {
  const child = spawn("/usr/bin/python3", ["-c", NAMED, name], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout, "data");
  const identity = identifyProcess(child.pid ?? 0);
  if (identity === undefined) throw new Error("it has ended");
  return { child, identity };
}

it("one that waits for a release is told to end", async () => {
  const { child, identity } = await named("wsfs-waiting");
  const ended = once(child, "exit");
  expect(endWaitingSupervisor(identity, UID)).toBe(true);
  expect(await ended).toEqual([null, "SIGTERM"]);
  // It is gone: whoever asks now finds nobody.
  expect(endWaitingSupervisor(identity, UID)).toBe(false);
});

it("who is another user's is left alone, whatever the record of that user's mount says", async () => {
  const { identity } = await named("wsfs-waiting");
  expect(endWaitingSupervisor(identity, UID + 1)).toBe(false);
});

it("one that looks after a daemon that serves is left alone, and so is another process of the same number", async () => {
  const serving = await named("wsfs-supervisor");
  expect(endWaitingSupervisor(serving.identity, UID)).toBe(false);
  const waiting = await named("wsfs-waiting");
  expect(
    endWaitingSupervisor({ ...waiting.identity, startTime: `${Number(waiting.identity.startTime) - 1}` }, UID),
  ).toBe(false);
  expect([serving.child.signalCode, waiting.child.signalCode]).toEqual([null, null]);
});

it("one that ends before it is told has not been told", async () => {
  const { child, identity } = await named("wsfs-waiting");
  const ended = once(child, "exit");
  const kill = (pid: number, signal?: string | number): true => {
    process.kill(pid, "SIGKILL");
    // As when it was reaped: there is nobody of that number.
    const gone = Object.assign(new Error(`kill ${signal}`), { code: "ESRCH" });
    throw gone;
  };
  expect(endWaitingSupervisor(identity, UID, kill)).toBe(false);
  await ended;
});
