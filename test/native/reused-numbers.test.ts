/**
 * The kernel gives the numbers of a mount, its id and that of its device, to the next one as soon
 * as it is gone. A supervisor whose mount somebody took off must leave that next one alone.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { canMount, patiently, ready, run, start, type Trial } from "./supervisor-trial.ts";

interface Numbers {
  readonly id: number;
  readonly minor: number;
}

function numbersAt(path: string): Numbers {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const fields = lines.map((line) => line.split(" ")).findLast((found) => found[4] === path);
  return { id: Number(fields?.[0]), minor: Number(fields?.[2]?.split(":")[1]) };
}

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) {
    const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    const below = lines.map((line) => line.split(" ")[4] ?? "").filter((path) => path.startsWith(`${folder}/`));
    for (const path of below.reverse()) await run("umount", path);
    rmSync(folder, { recursive: true });
  }
});

const TRIES = 10;
/** So many numbers below the wanted ones are free only after a great clearing up. */
const MOUNTS_MAX = 100;

/** A file system that has both numbers; undefined when another program of this machine has taken one of them. */
async function takeNumbers(wanted: Numbers): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-numbers-"));
  folders.push(folder);
  let count = 0;
  const mount = async (...args: string[]) => {
    const path = join(folder, String(count++));
    mkdirSync(path);
    expect((await run("mount", ...args, path)).code).toBe(0);
    return { path, ...numbersAt(path) };
  };
  // The lowest that is free is given: fill up until both are taken.
  const made = [];
  while (made.length < MOUNTS_MAX) {
    const last = await mount("-t", "tmpfs", "stranger");
    made.push(last);
    if (last.id === wanted.id && last.minor === wanted.minor) return last.path;
    if (made.some(({ id }) => id >= wanted.id) && made.some(({ minor }) => minor >= wanted.minor)) break;
  }
  const first = made.find(({ id }) => id === wanted.id);
  const second = made.find(({ minor }) => minor === wanted.minor);
  if (first === undefined || second === undefined) return undefined;
  // Free only the two wanted numbers: a bind mount keeps the device's of the one, another takes the id of the other.
  await mount("--bind", first.path);
  for (const { path } of [first, second]) expect((await run("umount", path)).code).toBe(0);
  if (second.id < wanted.id) await mount("--bind", folder);
  const stranger = await mount("-t", "tmpfs", "stranger");
  return stranger.id === wanted.id && stranger.minor === wanted.minor ? stranger.path : undefined;
}

/** A supervisor whose mount is gone, its daemon still there, and a mount that has its numbers. */
async function strange(): Promise<{ trial: Trial; stranger: string } | undefined> {
  for (let tries = 0; tries < TRIES; tries++) {
    const trial = start("stays");
    await ready(trial);
    const numbers = numbersAt(trial.dir);
    expect((await run("umount", trial.dir)).code).toBe(0);
    await vi.waitFor(() => expect(trial.log()).toContain("device ENODEV"), patiently);
    const stranger = await takeNumbers(numbers);
    if (stranger !== undefined) return { trial, stranger };
    trial.supervisor.kill("SIGTERM");
    await trial.exited();
  }
  return undefined;
}

describe.skipIf(!canMount)(
  "a supervisor whose mount was taken off leaves a stranger's of the same numbers alone",
  () => {
    const ENDS: readonly { what: string; code: number; end: (trial: Trial) => void }[] = [
      { what: "when it is told to end", code: 0, end: (trial) => trial.supervisor.kill("SIGTERM") },
      {
        what: "when its daemon asks for the unmount",
        code: 0,
        end: (trial) => process.kill(trial.daemonPid(), "SIGUSR2"),
      },
      { what: "when its daemon is killed", code: 1, end: (trial) => process.kill(trial.daemonPid(), "SIGKILL") },
    ];
    it.for(ENDS)("$what", async ({ code, end }, { skip }) => {
      const found = await strange();
      // Only where other programs mount and unmount all the time.
      if (found === undefined) return skip("the numbers were always taken by another program");
      const { trial, stranger } = found;
      const before = numbersAt(stranger);
      end(trial);
      await trial.exited();
      expect(numbersAt(stranger)).toEqual(before);
      expect(trial.supervisor.exitCode).toBe(code);
    });
  },
);
