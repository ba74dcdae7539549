/** The supervisor with a daemon that dies while it serves: who comes after it, on the same device, and when nobody does. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  canMount,
  expectNothingLeft,
  leaveMount,
  mountsAt,
  patiently,
  ready,
  run,
  start,
  type Trial,
  useMount,
} from "./supervisor-trial.ts";

const OPTIONS = ["--options", "default_permissions"];
/** A successor has as long for its start, beside other tests and in a sanitised build. */
const SILENCE_S = "8";
const REPLACED = "the daemon ended unexpectedly (signal 9); another one takes the mount over";

/** Of the last daemon that was started. */
const lastPid = (trial: Trial) => Number([...trial.log().matchAll(/ pid (\d+)/g)].at(-1)?.[1]);
/** Whether those that were replaced died of themselves, as their successors were told. */
const faults = (trial: Trial) => [...trial.log().matchAll(/^the one before (.*) of itself$/gm)].map(([, how]) => how);
const resumed = (trial: Trial, count: number) =>
  vi.waitFor(() => expect(trial.log().match(/^resend 0$/gm)).toHaveLength(count), patiently);

describe.skipIf(!canMount)("a daemon that dies while it serves (root and /dev/fuse)", () => {
  it("is replaced on the same device, and programs see a pause", async () => {
    const trial = start("hang-getattr", { options: [...OPTIONS, "--crashes", "5"] });
    await ready(trial);
    const [mount] = mountsAt(trial.dir);
    const waiting = run("stat", trial.dir);
    const first = trial.daemonPid();
    await vi.waitFor(() => expect(isWaiting(trial)).toBe(true), patiently);
    process.kill(first, "SIGKILL");
    expect((await waiting).code).toBe(0);
    expect(mountsAt(trial.dir)).toEqual([mount]);
    expect(trial.log()).toContain("restarts 1 the daemon ended unexpectedly (signal 9)\n");
    expect(trial.log().match(new RegExp(`^line mounted ${mount?.minor}$`, "gm"))).toHaveLength(2);
    expect(trial.stderr()).toBe(`wsfs: ${REPLACED}\n`);
    const user = await useMount(trial.dir);
    process.kill(lastPid(trial), "SIGSEGV");
    await resumed(trial, 2);
    expect((await run("ls", trial.dir)).code).toBe(0);
    // Twice more, and the mount is lost: the kernel too kills so, who takes too much memory.
    process.kill(lastPid(trial), "SIGKILL");
    await resumed(trial, 3);
    expect(faults(trial)).toEqual(["did not die", "died", "died"]);
    await leaveMount(user);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expectNothingLeft(trial);
  });

  it("is replaced after a Ctrl-Z in the terminal that the mount was started from", async () => {
    // A group of its own beside its shell's: one that nobody could wake again is not stopped by the kernel.
    const shell = ["setsid", "bash", "-c", `perl -e 'setpgrp; exec @ARGV' "$@" & wait $!`, "bash"];
    const trial = start("serve", { wrapper: shell, options: [...OPTIONS, "--crashes", "5"] });
    await ready(trial);
    const status = () => readFileSync(`/proc/${lastPid(trial)}/status`, "utf8");
    const supervisor = Number(/^PPid:\s+(\d+)/m.exec(status())?.[1]);
    onTestFinished(() => void (existsSync(`/proc/${supervisor}`) && process.kill(supervisor, "SIGCONT")));
    for (const signal of ["SIGTSTP", "SIGTTIN", "SIGTTOU"] as const) process.kill(-supervisor, signal);
    process.kill(lastPid(trial), "SIGKILL");
    await resumed(trial, 1);
    const ignored = BigInt(`0x${/^SigIgn:\s+(\w+)/m.exec(status())?.[1]}`);
    const { SIGTSTP, SIGTTIN, SIGTTOU } = constants.signals;
    for (const signal of [SIGTSTP, SIGTTIN, SIGTTOU]) expect((ignored >> BigInt(signal - 1)) & 1n).toBe(0n);
    expect((await run("umount", trial.dir)).code).toBe(0);
    expect(await trial.exited()).toBe(0);
    expectNothingLeft(trial);
  });

  it("is replaced when it gives no sign of life", async () => {
    const trial = start("silent", { options: [...OPTIONS, "--crashes", "5", "--silence", SILENCE_S] });
    await ready(trial);
    await resumed(trial, 1);
    expect(trial.log()).toContain("restarts 1 the daemon gave no sign of life and was killed (signal 9)\n");
    expect(faults(trial)).toEqual(["died"]);
    expect((await run("ls", trial.dir)).code).toBe(0);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expectNothingLeft(trial);
  });

  it("and whose successors die too is given up after so many within a minute", async () => {
    const trial = start("die-again", { options: [...OPTIONS, "--crashes", "3"] });
    await ready(trial);
    process.kill(trial.daemonPid(), "SIGKILL");
    expect(await trial.exited()).toBe(1);
    expect(trial.log().match(/^restarts /gm)).toHaveLength(2);
    expect(faults(trial)).toEqual(["died", "died"]);
    expect(trial.stderr().trim().split("\n").at(-1)).toBe(
      "wsfs: the daemon ended unexpectedly (exit code 70), 3 times within a minute; the mount is detached, unsent changes are kept and go on with the next mount",
    );
    expectNothingLeft(trial);
  });

  it("is not replaced when it was never ready", async () => {
    const trial = start("die-on-mounted", { options: [...OPTIONS, "--crashes", "5"] });
    expect(await trial.exited()).toBe(1);
    expect(trial.log()).not.toContain("restarts");
    expectNothingLeft(trial);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("ends on %s while its successor is not ready", async (signal) => {
    const trial = start("wait-again", { options: [...OPTIONS, "--crashes", "5"] });
    await ready(trial);
    process.kill(trial.daemonPid(), "SIGKILL");
    await vi.waitFor(() => expect(trial.log()).toContain("waiting again"), patiently);
    trial.supervisor.kill(signal);
    expect(await trial.exited()).toBe(0);
    expect(trial.log()).toContain("line stop");
    expect(trial.stderr()).toBe(`wsfs: ${REPLACED}\n`);
    expectNothingLeft(trial);
  });

  it("leaves a mount that somebody takes off meanwhile off", async () => {
    const trial = start("wait-again", { options: [...OPTIONS, "--crashes", "5", "--silence", SILENCE_S] });
    await ready(trial);
    process.kill(trial.daemonPid(), "SIGKILL");
    await vi.waitFor(() => expect(trial.log()).toContain("waiting again"), patiently);
    // umount(8) would look at the folder first, and wait for the next daemon.
    const umount2 = "import ctypes, sys; sys.exit(ctypes.CDLL(None).umount2(sys.argv[1].encode(), 0))";
    expect((await run("python3", "-c", umount2, trial.dir)).code).toBe(0);
    process.kill(lastPid(trial), "SIGKILL");
    expect(await trial.exited()).toBe(1);
    expect(trial.log().match(/^restarts /gm)).toHaveLength(1);
    expectNothingLeft(trial);
  });
});

describe.skipIf(!canMount)("a supervisor in the place of one that died", () => {
  const adopted = (trial: Trial) => Number(/^supervisor (\d+)$/m.exec(trial.log())?.[1]);
  const end = async (trial: Trial) => {
    process.kill(adopted(trial), "SIGTERM");
    await trial.exited(); // all that have its standard error
    expect(trial.mounts()).toEqual([]); // a daemon without a parent is reaped by others
  };

  it("replaces a daemon that has never given it a sign of life, and counts on", async () => {
    const trial = start("adopt-silent-again", { options: [...OPTIONS, "--crashes", "5"] });
    await ready(trial);
    process.kill(trial.daemonPid(), "SIGKILL");
    await resumed(trial, 1);
    trial.supervisor.kill("SIGKILL");
    await resumed(trial, 2);
    const why = "the daemon gave no sign of life and was killed (not a child of this supervisor)";
    expect(trial.log()).toContain(`restarts 2 ${why}\n`);
    expect((await run("ls", trial.dir)).code).toBe(0);
    await end(trial);
  });

  it("replaces a daemon that was about to take over, and says that it cannot", async () => {
    const trial = start("adopt-fails-again", { options: [...OPTIONS, "--crashes", "5"] });
    await ready(trial);
    const user = await useMount(trial.dir);
    process.kill(trial.daemonPid(), "SIGKILL");
    await resumed(trial, 1);
    trial.supervisor.kill("SIGKILL");
    await resumed(trial, 2);
    expect(trial.log()).toMatch(/^restarts 2 .*: no room for its record$/m);
    expect((await run("ls", trial.dir)).code).toBe(0);
    await leaveMount(user);
    await end(trial);
  });

  it("replaces a daemon that has died before it looked", async () => {
    const trial = start("adopt-late", { options: [...OPTIONS, "--crashes", "5"] });
    await ready(trial);
    trial.supervisor.kill("SIGKILL");
    await resumed(trial, 1);
    expect(trial.log()).toContain("restarts 1 the daemon ended unexpectedly (not a child of this supervisor)\n");
    expect((await run("ls", trial.dir)).code).toBe(0);
    await end(trial);
  });
});

/** A thread of the dead would have to let go of what only a successor can free. */
describe.skipIf(!canMount)("a daemon that is killed while the kernel holds on to a notification of it", () => {
  const stuck = async (options: readonly string[]) => {
    const trial = start("stuck-notify", { options: [...OPTIONS, ...options] });
    await ready(trial);
    const program = run("stat", join(trial.dir, "slow"));
    await vi.waitFor(() => expect(threadsOf(trial.daemonPid())).toContain("wsfs-notify D"), patiently);
    return { trial, program };
  };

  it.each([
    ["from outside", "SIGKILL", [], REPLACED],
    [
      "for its silence",
      "SIGSTOP",
      ["--silence", SILENCE_S],
      REPLACED.replace("ended unexpectedly", "gave no sign of life and was killed"),
    ],
  ] as const)("%s is replaced, and programs go on", async (_, signal, options, line) => {
    const { trial, program } = await stuck(["--crashes", "5", ...options]);
    process.kill(trial.daemonPid(), signal);
    expect(await program).toMatchObject({ code: 1, stderr: expect.stringContaining("No such file") });
    expect(trial.stderr()).toBe(`wsfs: ${line}\n`);
    expect((await run("ls", trial.dir)).code).toBe(0);
    await vi.waitFor(() => expect(existsSync(`/proc/${trial.daemonPid()}`)).toBe(false), patiently);
    expect((await run("ls", trial.dir)).code).toBe(0);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expect(trial.log().match(/^restarts /gm)).toHaveLength(1);
    expectNothingLeft(trial);
  });

  it("and is not to be replaced leaves no mount, and nobody waits", async () => {
    const { trial, program } = await stuck([]);
    process.kill(trial.daemonPid(), "SIGKILL");
    expect((await program).code).toBe(1);
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toContain("the daemon ended unexpectedly (signal 9); the mount is detached");
    expect(trial.mounts()).toEqual([]);
  });
});

/** Name and state of each. */
function threadsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    return stat.replace(/^\d+ \((.*)\) (.) .*$/s, "$1 $2");
  });
}

describe.skipIf(!canMount)("a daemon that gives way (root and /dev/fuse)", () => {
  const given = (trial: Trial) => [...trial.log().matchAll(/^settings (.*)$/gm)].map(([, text]) => text);
  // Without --crashes: a daemon that dies would end the mount.
  const begin = async (behaviour: string, options: string[] = []) => {
    const trial = start(behaviour, {
      wrapper: ["env", "WSFS_DAEMON_SETTINGS=first"],
      options: [...OPTIONS, ...options],
    });
    await ready(trial);
    return trial;
  };
  const end = async (trial: Trial) => {
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expectNothingLeft(trial);
  };

  it("has a successor with the settings it asked for, and nothing is counted or said", async () => {
    const trial = await begin("reload");
    const user = await useMount(trial.dir);
    process.kill(trial.daemonPid(), "SIGUSR1");
    await resumed(trial, 1);
    process.kill(lastPid(trial), "SIGUSR1");
    await resumed(trial, 2);
    expect(given(trial)).toEqual([
      "goodxxxxxxxxxxxxxxxx 100000 reload tag:1",
      "goodxxxxxxxxxxxxxxxx 100000 reload tag:1",
    ]);
    expect(trial.log().match(/^restarts .*$/gm)).toEqual(["restarts 0", "restarts 0"]);
    expect(trial.stderr()).toBe("");
    expect((await run("ls", trial.dir)).code).toBe(0);
    await leaveMount(user);
    await end(trial);
  });

  it("has one with the settings of before when that one cannot serve, which counts for nothing", async () => {
    const trial = await begin("reload-bad");
    process.kill(trial.daemonPid(), "SIGUSR1");
    await resumed(trial, 1);
    const why = "the daemon ended unexpectedly (exit code 70)";
    expect(given(trial)).toEqual(["bad 3 reload tag:1", `first 5 reload tag:1 ${why}`]);
    expect(trial.log().match(/^restarts .*$/gm)).toEqual(["restarts 0", "restarts 0"]);
    expect(trial.stderr()).toContain(`the new daemon cannot serve: ${why}`);
    expect((await run("ls", trial.dir)).code).toBe(0);
    await end(trial);
  });

  /** Nobody can serve after it, whatever the settings; deaths are counted as ever. */
  const beginDead = async () => {
    const trial = await begin("reload-dead", ["--crashes", "2"]);
    const user = await useMount(trial.dir);
    const waiting = run("stat", trial.dir);
    process.kill(trial.daemonPid(), "SIGUSR1");
    await vi.waitFor(() => expect(given(trial).length).toBeGreaterThan(3), patiently);
    return { trial, user, waiting };
  };

  it("and after which nobody can serve leaves a mount that waits for one who can", async () => {
    const { trial, user, waiting } = await beginDead();
    const why = "the daemon ended unexpectedly (exit code 70)";
    expect(given(trial).slice(0, 3)).toEqual([
      "other 5 reload tag:1",
      `first 5 reload tag:1 ${why}`,
      `first 5 reload tag:1 ${why}`,
    ]);
    rmSync(join(trial.folder, "log.dead"));
    await resumed(trial, 1);
    expect((await waiting).code).toBe(0);
    expect((await run("ls", trial.dir)).code).toBe(0);
    await leaveMount(user);
    await end(trial);
  });

  it("and after which nobody can serve ends at a signal", async () => {
    const { trial, user, waiting } = await beginDead();
    trial.supervisor.kill("SIGTERM");
    await trial.exited();
    await waiting;
    await leaveMount(user);
    expectNothingLeft(trial);
  });

  it("and whose successor dies later has one with the same settings after it, which is a crash", async () => {
    const trial = await begin("reload", ["--crashes", "5"]);
    process.kill(trial.daemonPid(), "SIGUSR1");
    await resumed(trial, 1);
    await vi.waitFor(async () => expect((await run("ls", trial.dir)).code).toBe(0), patiently);
    process.kill(lastPid(trial), "SIGKILL");
    await resumed(trial, 2);
    expect(given(trial)[1]).toBe("goodxxxxxxxxxxxxxxxx 100000 reload tag:1");
    expect(trial.log()).toContain("restarts 1 the daemon ended unexpectedly (signal 9)\n");
    await end(trial);
  });
});

/** The request of a program came to the daemon, which does not answer it. */
function isWaiting(trial: Trial): boolean {
  return trial.log().includes("request 3\n");
}
