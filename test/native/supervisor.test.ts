/** The supervisor: the daemon it starts, the mount it makes and detaches, and what it says when things go wrong. */
import {
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { supervisorProgram } from "../../src/lib/addon.ts";
import { compilePreload } from "../support/preload.ts";
import {
  addon,
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

describe("without a mount", () => {
  it("prints the daemon's reason and ends with its code", async () => {
    const trial = start("refuse");
    expect(await trial.exited()).toBe(2);
    expect(trial.stderr()).toBe("wsfs: some text about what is wrong\n");
    expect(trial.status()).toBe("failed 2 some text about what is wrong\n");
    expectNothingLeft(trial);
  });

  it("says which program cannot be run", async () => {
    const trial = start("", { program: ["/nonexistent/daemon", "x"] });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe("wsfs: cannot run /nonexistent/daemon: No such file or directory\n");
    expect(trial.status()).toContain("failed 1 ");
  });

  it("says how the daemon ended when it gave no reason", async () => {
    const trial = start("die");
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe("wsfs: the daemon ended before the mount was made (exit code 4)\n");
    expect(trial.status()).toContain("failed 1 the daemon ended");
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("ends the daemon on %s while it prepares", async (signal) => {
    const trial = start("wait");
    await vi.waitFor(() => expect(trial.log()).toContain("waiting"), patiently);
    trial.supervisor.kill(signal);
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe("wsfs: stopped before the mount was usable\n");
    expect(trial.log()).toContain("line stop");
    expectNothingLeft(trial);
  });

  it("says nothing of what the daemon fails at because it is told to end", async () => {
    const trial = start("complain");
    await vi.waitFor(() => expect(trial.log()).toContain("waiting"), patiently);
    trial.supervisor.kill("SIGINT");
    expect(await trial.exited()).toBe(1);
    expect(trial.log()).toContain("line stop");
    expect(trial.stderr()).toBe("wsfs: stopped before the mount was usable\n");
    expect(trial.status()).toBe("failed 1 stopped before the mount was usable\n");
  });

  it("kills a daemon that stops giving signs of life", async () => {
    const trial = start("deaf", { options: ["--silence", "1"], program: silentAfterOneLine });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(
      "wsfs: the daemon gave no sign of life and was killed before the mount was made (signal 9)\n",
    );
  });

  it("gives up when the command that started it is gone before the mount is usable", async () => {
    const trial = start("wait");
    await vi.waitFor(() => expect(trial.log()).toContain("waiting"), patiently);
    trial.supervisor.stdio[3]?.destroy();
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe("wsfs: the command that started the mount is gone\n");
    expect(trial.log()).toContain("line stop");
    expectNothingLeft(trial);
  });

  it("gives the daemon a session of its own and only its own descriptors", async () => {
    const secret = join(tmpdir(), `wsfs-secret-${process.pid}`);
    writeFileSync(secret, "");
    const trial = start("wait", { extraFd: openSync(secret, "r") });
    rmSync(secret);
    await vi.waitFor(() => expect(trial.log()).toContain("waiting"), patiently);
    const pid = trial.daemonPid();
    expect(trial.log()).toContain(`session ${pid} pid ${pid}`);
    expect(trial.log()).toContain("environment 3");
    const descriptors = /descriptors (.*)/.exec(trial.log())?.[1] ?? "";
    expect(descriptors).toMatch(/"3=socket:/);
    expect(descriptors).not.toContain("wsfs-secret");
    for (const owner of [pid, trial.supervisor.pid]) {
      const open = readdirSync(`/proc/${owner}/fd`).map((fd) => readlinkSync(`/proc/${owner}/fd/${fd}`));
      expect(open.filter((target) => target.includes("wsfs-secret"))).toEqual([]);
    }
    // The status pipe is the supervisor's alone: it would never end for its reader otherwise.
    const statusPipe = readlinkSync(`/proc/${trial.supervisor.pid}/fd/3`);
    expect(descriptors).not.toContain(statusPipe);
    expect(readFileSync(`/proc/${trial.supervisor.pid}/comm`, "utf8")).toBe("wsfs-supervisor\n");
    trial.supervisor.kill("SIGTERM");
    await trial.exited();
  });

  it("refuses a wrong command line with one line and the usage", async () => {
    const program = supervisorProgram();
    const cases: [string[], string][] = [
      [["--source", "x", "--", "true"], "--mountpoint is missing"],
      [["--mountpoint", "/x", "--", "true"], "--source is missing"],
      [["--mountpoint", "/x", "--source", "x"], "the program to run is missing"],
      [["--mountpoint"], "--mountpoint needs a value"],
      [["--nonsense"], "unknown option --nonsense"],
      [["--status-fd", "2x"], "--status-fd: expected a number from 3, got '2x'"],
      [["--status-fd", "99"], "--status-fd: descriptor 99 is not open"],
    ];
    for (const [args, message] of cases) {
      const { code, stderr } = await run(program, ...args);
      expect(code).toBe(2);
      expect(stderr.split("\n")[0]).toBe(`wsfs-supervisor: ${message}`);
    }
  });
});

/** What LD_PRELOAD is to be for processes that get SIGINT each time before setsid(). */
function interruptedSetsid(): string {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-setsid-"));
  writeFileSync(
    join(folder, "setsid.c"),
    `#include <signal.h>
     #include <sys/syscall.h>
     #include <unistd.h>
     pid_t setsid(void) { kill(getpid(), SIGINT); return syscall(SYS_setsid); }`,
  );
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return compilePreload(join(folder, "setsid.c"), join(folder, "setsid.so"));
}

/** Says one line on the control socket, then sleeps for good. */
const silentAfterOneLine = [
  process.execPath,
  "-e",
  `const addon = require(${JSON.stringify(addon)});
   const control = addon.openControl(3, () => {}, () => process.exit());
   addon.controlSend(control, "heartbeat", -1);
   setInterval(() => {}, 1e6);`,
];

describe.skipIf(!canMount)("with a mount (root and /dev/fuse)", () => {
  it("has mounted when it says ready, with the options asked for", async () => {
    const trial = start("serve", {
      dirName: "with space",
      options: ["--options", "default_permissions,allow_other,max_read=65536", "--read-only"],
    });
    await ready(trial);
    const [mount, ...others] = mountsAt(trial.dir);
    expect(others).toEqual([]);
    expect(mount).toMatchObject({ type: "fuse.wsfs", source: "a-workspace" });
    expect(mount?.options.split(",")).toEqual(expect.arrayContaining(["ro", "nosuid", "nodev"]));
    expect(mount?.superOptions).toContain("default_permissions,allow_other,max_read=65536");
    expect(trial.status()).toBe(`ready ${trial.daemonPid()}\n`);
    expect(trial.log()).toContain(`line mounted ${mount?.minor}\nconnection ${mount?.minor}\n`);
    expect((await run("ls", trial.dir)).code).toBe(0);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toBe("");
    expectNothingLeft(trial);
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "detaches on %s and ends with 0, also when it comes twice",
    async (signal) => {
      const trial = start("slow-end");
      await ready(trial);
      trial.supervisor.kill(signal);
      await vi.waitFor(() => expect(trial.log()).toContain("device ENODEV"), patiently);
      expect(mountsAt(trial.dir)).toEqual([]);
      trial.supervisor.kill(signal);
      trial.supervisor.kill("SIGINT");
      expect(await trial.exited()).toBe(0);
      expect(trial.log()).toContain("ending slowly");
      expect(trial.log().match(/line stop/g)).toHaveLength(1);
      expect(trial.stderr()).toBe("");
      expectNothingLeft(trial);
    },
  );

  it("is not stopped half way by a Ctrl-C of the whole process group", async () => {
    const trial = start("serve", { detached: true });
    await ready(trial);
    for (let i = 0; i < 5; i++) process.kill(-(trial.supervisor.pid ?? 0), "SIGINT");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toBe("");
    expectNothingLeft(trial);
  });

  it("forwards what the daemon reports to the starter", async () => {
    const trial = start("note");
    await vi.waitFor(() => expect(trial.status()).toContain("ready"), patiently);
    expect(trial.status()).toBe(`note the first\nnote the second\nready ${trial.daemonPid()}\n`);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
  });

  it("stays mounted when the command that started it ends later", async () => {
    const trial = start("serve");
    await ready(trial);
    trial.supervisor.stdio[3]?.destroy();
    expect((await run("ls", trial.dir)).code).toBe(0);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toBe("");
  });

  it("is not stopped half way by a Ctrl-C that comes just before a child of it leaves the process group", async () => {
    const trial = start("serve", { wrapper: ["env", `LD_PRELOAD=${interruptedSetsid()}`] });
    await ready(trial);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toBe("");
    expectNothingLeft(trial);
  });

  it("does not mount over what was mounted there meanwhile", async () => {
    const trial = start("late");
    await vi.waitFor(() => expect(trial.log()).toContain("waiting"), patiently);
    expect((await run("mount", "-t", "tmpfs", "other", trial.dir)).code).toBe(0);
    process.kill(trial.daemonPid(), "SIGUSR2");
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(`wsfs: cannot mount on ${trial.dir}: another mount was made there at the same time\n`);
    expect(trial.mounts().map(({ type }) => type)).toEqual(["tmpfs"]);
  });

  it("ends quietly with 0 when anybody unmounts", async () => {
    const trial = start("serve");
    await ready(trial);
    expect((await run("umount", trial.dir)).code).toBe(0);
    expect(await trial.exited()).toBe(0);
    expect(trial.log()).toContain("device ENODEV");
    expect(trial.stderr()).toBe("");
    expectNothingLeft(trial);
  });

  it("detaches a mount in use on SIGTERM, and says so", async () => {
    const trial = start("serve");
    await ready(trial);
    const user = await useMount(trial.dir);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toBe(`wsfs: programs still use ${trial.dir}: it is detached, and ends for them now\n`);
    expect(trial.log()).toContain("line stop");
    expectNothingLeft(trial);
    await leaveMount(user);
  });

  it("answers busy to the daemon that asks, leaves the mount, and unmounts when it is free", async () => {
    const trial = start("serve");
    await ready(trial);
    const user = await useMount(trial.dir);
    process.kill(trial.daemonPid(), "SIGUSR2");
    await vi.waitFor(() => expect(trial.log()).toContain("line busy Device or resource busy"), patiently);
    expect(mountsAt(trial.dir)).toHaveLength(1);
    await leaveMount(user);
    process.kill(trial.daemonPid(), "SIGUSR2");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toBe("");
    expectNothingLeft(trial);
  });

  it("leaves nothing mounted when the daemon is killed, and says it in one line", async () => {
    const trial = start("serve");
    await ready(trial);
    const user = await useMount(trial.dir);
    process.kill(trial.daemonPid(), "SIGKILL");
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(
      "wsfs: the daemon ended unexpectedly (signal 9); the mount is detached, unsent changes are kept and go on with the next mount\n",
    );
    expectNothingLeft(trial);
    await leaveMount(user);
  });

  it("frees programs that wait in the mount when the daemon is killed", async () => {
    const trial = start("hang-getattr");
    await ready(trial);
    const waiting = run("ls", trial.dir);
    await vi.waitFor(() => expect(stuckIn(trial)).toBe(true), patiently);
    process.kill(trial.daemonPid(), "SIGKILL");
    expect(await trial.exited()).toBe(1);
    expect((await waiting).code).toBe(2);
    expectNothingLeft(trial);
  });

  it("kills a daemon that is silent while it serves", async () => {
    const trial = start("silent", { options: ["--silence", "2"] });
    await ready(trial);
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toMatch(
      /^wsfs: the daemon gave no sign of life and was killed \(signal 9\); the mount is detached/,
    );
    expectNothingLeft(trial);
  });

  it("kills a daemon that does not end when told to and is silent", async () => {
    const trial = start("deaf", { options: ["--silence", "2"] });
    await ready(trial);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toContain("gave no sign of life");
    expectNothingLeft(trial);
  });

  it("detaches when the daemon says after the mount that it cannot live", async () => {
    const trial = start("fail-after-mount");
    expect(await trial.exited()).toBe(5);
    expect(trial.stderr()).toBe("wsfs: the store is broken\n");
    expect(trial.status()).toBe("failed 5 the store is broken\n");
    expectNothingLeft(trial);
  });

  it("detaches when the daemon dies between mount and ready", async () => {
    const trial = start("die-on-mounted");
    expect(await trial.exited()).toBe(1);
    expect(trial.status()).toContain("failed 1 the daemon ended unexpectedly (exit code 3)");
    expectNothingLeft(trial);
  });

  it("forwards that the daemon did not end well after a stop", async () => {
    const trial = start("ends-with-9");
    await ready(trial);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toContain("the daemon ended with exit code 9");
    expectNothingLeft(trial);
  });

  it("leaves alone what somebody mounted over it", async () => {
    const trial = start("serve");
    await ready(trial);
    expect((await run("mount", "-t", "tmpfs", "over", trial.dir)).code).toBe(0);
    const before = trial.mounts();
    expect(before).toHaveLength(2);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toContain(`cannot detach ${trial.dir}: Device or resource busy`);
    expect(trial.mounts()).toEqual(before);
  });

  it.each([
    ["SIGTERM", "SIGTERM", 0],
    ["the end of the daemon", "SIGKILL", 1],
  ] as const)("takes copies of its mount off too on %s, over it and elsewhere", async (_, signal, code) => {
    const trial = start("serve");
    await ready(trial);
    const other = join(trial.folder, "other");
    mkdirSync(other);
    for (const place of [trial.dir, other]) expect((await run("mount", "--bind", trial.dir, place)).code).toBe(0);
    expect([trial.mounts(), mountsAt(other)].map((mounts) => mounts.length)).toEqual([2, 1]);
    if (signal === "SIGTERM") trial.supervisor.kill(signal);
    else process.kill(trial.daemonPid(), signal);
    expect(await trial.exited()).toBe(code);
    expect(mountsAt(other)).toEqual([]);
    expectNothingLeft(trial);
  });

  it("detaches its mount where it was moved to", async () => {
    const trial = start("serve");
    await ready(trial);
    const moved = join(trial.folder, "moved");
    mkdirSync(moved);
    // mount --move is refused below a shared mount: then there is nothing to show here.
    const { code } = await run("mount", "--move", trial.dir, moved);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expect(mountsAt(code === 0 ? moved : trial.dir)).toEqual([]);
    expectNothingLeft(trial);
  });

  it("keeps the device from every process but the daemon and itself", async () => {
    const trial = start("serve");
    await ready(trial);
    const holders = readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => holdsDevice(pid, trial.supervisor.pid ?? 0));
    expect(holders.map(Number).sort()).toEqual([trial.supervisor.pid ?? 0, trial.daemonPid()].sort());
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
  });

  it("leaves no child behind and no descriptor open, whatever happened meanwhile", async () => {
    const trial = start("serve");
    await ready(trial);
    const pid = trial.supervisor.pid ?? 0;
    const opened = () => readdirSync(`/proc/${pid}/fd`).length;
    const user = await useMount(trial.dir);
    // By now the supervisor is at rest: it has closed what it read when the mount became ready.
    const before = opened();
    for (let i = 1; i <= 5; i++) {
      process.kill(trial.daemonPid(), "SIGUSR2");
      await vi.waitFor(() => expect(trial.log().match(/line busy/g)).toHaveLength(i), patiently);
    }
    expect(opened()).toBe(before);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
    expect(children).toEqual([trial.daemonPid()]);
    await leaveMount(user);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
  });

  it.each([
    ["is missing", "No such file or directory", (dir: string) => rmdirSync(dir)],
    [
      "is a file",
      "Not a directory",
      (dir: string) => {
        rmdirSync(dir);
        writeFileSync(dir, "");
      },
    ],
  ])("says in one line that the folder %s", async (_, message, spoil) => {
    const trial = start("serve", { spoil });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(`wsfs: cannot mount on ${trial.dir}: ${message}\n`);
    expect(trial.status()).toContain(`failed 1 cannot mount on ${trial.dir}`);
    expect(trial.log()).toContain("line stop");
  });

  it("says which options the kernel refuses", async () => {
    const trial = start("serve", { options: ["--options", "nonsense=1"] });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(`wsfs: cannot mount on ${trial.dir}: the kernel refuses the options 'nonsense=1'\n`);
  });
});

/** Whether a request waits in the kernel: some process sits in request_wait_answer. */
function stuckIn(trial: Trial): boolean {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/cmdline`, "utf8") === `ls\0${trial.dir}\0` &&
          readFileSync(`/proc/${pid}/stack`, "utf8").includes("request_wait_answer")
        );
      } catch {
        return false;
      }
    });
}

/** Holds a /dev/fuse of the same connection as the supervisor's. */
function holdsDevice(pid: string, supervisor: number): boolean {
  return connections(pid).some((connection) => connections(String(supervisor)).includes(connection));
}

function connections(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`)
      .filter((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === "/dev/fuse")
      .map((fd) => /fuse_connection:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8"))?.[1] ?? "?");
  } catch {
    return [];
  }
}
