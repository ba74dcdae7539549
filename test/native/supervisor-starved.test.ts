/** The supervisor on a machine that has no process for it for a while, or nobody who reads what it says. */
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import {
  buildSupervisor,
  canMount,
  expectNothingLeft,
  patiently,
  ready,
  run,
  start,
  starved,
  type Trial,
} from "./supervisor-trial.ts";

const NO_PROCESS = "Resource temporarily unavailable";
const OPTIONS = ["--options", "default_permissions", "--crashes", "2"];
const SILENCE_S = 3;

let folder: string;
let supervisor: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-supervisor-starved-"));
  file = join(folder, "no-process");
  supervisor = buildSupervisor(folder, "no-process.c", ["fork", "kill"]);
});
afterEach(() => rmSync(file, { force: true }));
afterAll(() => rmSync(folder, { recursive: true }));

const says = (trial: Trial, text: string) => vi.waitFor(() => expect(trial.stderr()).toContain(text), patiently);

/** A mount whose daemon was killed, and no other could be started. */
async function begin(...options: readonly string[]): Promise<Trial> {
  const wrapper = ["env", `WSFS_NO_PROCESS_FILE=${file}`];
  const trial = start("serve", { supervisor, wrapper, options: [...OPTIONS, ...options] });
  await ready(trial);
  writeFileSync(file, "");
  process.kill(trial.daemonPid(), "SIGKILL");
  await says(trial, `cannot start the daemon: ${NO_PROCESS}; it is tried again`);
  return trial;
}

const END = [
  { how: "it was tried for as long as a daemon may be silent", signal: undefined, code: 1 },
  { how: "somebody asks for the end", signal: "SIGTERM", code: 0 },
] as const;

describe.skipIf(!canMount)("no process can be made (root and /dev/fuse)", () => {
  it("for some seconds after a daemon died: it is replaced then, and that was one crash", async () => {
    const trial = await begin();
    await starved(trial, 3);
    rmSync(file);
    await vi.waitFor(() => expect(trial.log()).toContain("resend 0\n"), patiently);
    expect((await run("ls", trial.dir)).code).toBe(0);
    expect(trial.log()).toContain("restarts 1 the daemon ended unexpectedly (signal 9)\n");
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expectNothingLeft(trial);
  });

  it.each(END)(
    "until $how: the mount is detached once it can be, and nobody else is killed",
    async ({ signal, code }) => {
      const trial = await begin("--silence", String(SILENCE_S));
      if (signal !== undefined) trial.supervisor.kill(signal);
      await says(trial, `cannot detach ${trial.dir} yet: ${NO_PROCESS}`);
      // Each second: first for a daemon, then for the unmount, for longer than a daemon that is there may be silent.
      await starved(trial, 2 * SILENCE_S + 4);
      expect(trial.supervisor.exitCode).toBe(null);
      rmSync(file);
      expect(await trial.exited()).toBe(code);
      expectNothingLeft(trial);
      expect(trial.stderr()).not.toContain("kill(");
      expect(trial.stderr().match(/cannot detach/g)).toHaveLength(1);
    },
  );
});

it.skipIf(!canMount)(
  "a daemon that dies is replaced where nobody reads what is said (root and /dev/fuse)",
  async () => {
    const fifo = join(folder, "stderr");
    expect((await run("mkfifo", fifo)).code).toBe(0);
    const reader = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
    try {
      expect(() => {
        for (;;) writeSync(reader, "x".repeat(4096));
      }).toThrow("EAGAIN");
      const trial = start("serve", { wrapper: ["sh", "-c", 'exec "$@" 2> "$0"', fifo], options: [...OPTIONS] });
      await ready(trial);
      process.kill(trial.daemonPid(), "SIGKILL");
      await vi.waitFor(() => expect(trial.log()).toContain("resend 0\n"), patiently);
      expect((await run("ls", trial.dir)).code).toBe(0);
      trial.supervisor.kill("SIGTERM");
      expect(await trial.exited()).toBe(0);
      expectNothingLeft(trial);
    } finally {
      closeSync(reader);
    }
  },
);
