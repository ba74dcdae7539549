/**
 * One run of the supervisor with a small daemon of its own (fake-daemon.mjs), for its tests. This
 * process never touches the mount: what does is a child with a kill timer, and mounts are looked
 * up in mountinfo.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";
import { supervisorProgram } from "../../src/lib/addon.ts";
import { patiently } from "../support/patiently.ts";

export const addon = join(import.meta.dirname, "../../native/build/Release/wsfs.node");
const sources = join(import.meta.dirname, "../../native/supervisor");
const fakeDaemon = join(import.meta.dirname, "fake-daemon.mjs");

export { patiently };
export const LIMIT_MS = patiently.timeout;
vi.setConfig({ testTimeout: 3 * LIMIT_MS });

export const isRoot = process.getuid?.() === 0;
export const canMount = (() => {
  try {
    accessSync("/dev/fuse", constants.R_OK | constants.W_OK);
    return isRoot;
  } catch {
    return false;
  }
})();

/** Makes a copy of the supervisor, of whose functions a source beside this has other ones. */
export function buildSupervisor(folder: string, source: string, wrapped: readonly string[]): string {
  const program = join(folder, "wsfs-supervisor");
  const all = readdirSync(sources).filter((name) => name.endsWith(".c"));
  const wrap = wrapped.map((name) => `-Wl,--wrap=${name}`);
  const others = join(import.meta.dirname, source);
  execFileSync("cc", ["-std=gnu11", "-D_GNU_SOURCE", ...wrap, "-o", program, others, ...all], { cwd: sources });
  return program;
}

export interface MountLine {
  readonly minor: number;
  readonly options: string;
  readonly type: string;
  readonly source: string;
  readonly superOptions: string;
}

/** What is mounted at a path, in the mount namespace of a process. */
export function mountsAt(path: string, process: number | "self" = "self"): MountLine[] {
  const escaped = path.replaceAll(" ", "\\040");
  return readFileSync(`/proc/${process}/mountinfo`, "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .filter((fields) => fields[4] === escaped)
    .map((fields) => {
      const dash = fields.indexOf("-");
      return {
        minor: Number(fields[2]?.split(":")[1]),
        options: fields[5] ?? "",
        type: fields[dash + 1] ?? "",
        source: fields[dash + 2] ?? "",
        superOptions: fields[dash + 3] ?? "",
      };
    });
}

/** Runs a program that may touch a mount; killed when it takes too long. */
export async function run(program: string, ...args: string[]): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const [code] = await once(child, "close");
  clearTimeout(timer);
  return { code, stderr };
}

export interface Trial {
  readonly folder: string;
  readonly dir: string;
  readonly supervisor: ChildProcess;
  /** What the supervisor has printed on stderr. */
  stderr(): string;
  /** What came over --status-fd. */
  status(): string;
  /** What the fake daemon has written down. */
  log(): string;
  daemonPid(): number;
  mounts(): MountLine[];
  exited(): Promise<number | null>;
}

export interface Setup {
  readonly dirName?: string;
  /** What becomes of the folder before the supervisor starts. */
  readonly spoil?: (dir: string) => void;
  readonly options?: readonly string[];
  readonly program?: readonly string[];
  /** A descriptor of ours that the supervisor inherits. */
  readonly extraFd?: number;
  /** Leads a process group (and session) of its own. */
  readonly detached?: boolean;
  /** Another build of the program. */
  readonly supervisor?: string;
  /** A program that runs the supervisor in other surroundings. */
  readonly wrapper?: readonly string[];
  /** Whose mount namespace it mounts in. */
  readonly namespace?: number;
  /** Everything of the trial belongs to this user, who is not root. */
  readonly owner?: number;
}

/** Ends what is left of a trial. */
async function end({ supervisor, exited, daemonPid, folder, dir }: Trial): Promise<void> {
  if (supervisor.exitCode === null && supervisor.signalCode === null) {
    supervisor.kill("SIGKILL");
    await exited();
  }
  const pid = daemonPid();
  if (existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL");
  for (const place of [dir, join(folder, "other")]) {
    while (mountsAt(place).length > 0) await run("umount", "-l", place);
  }
  rmSync(folder, { recursive: true });
}

/** Starts a supervisor. The supervisor, its daemon and its mount end with the test at the latest. */
export function start(behaviour: string, setup: Setup = {}): Trial {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-supervisor-"));
  const dir = join(folder, setup.dirName ?? "mount");
  const logPath = join(folder, "log");
  mkdirSync(dir);
  writeFileSync(logPath, "");
  if (setup.owner !== undefined) {
    chmodSync(folder, 0o755);
    chownSync(dir, setup.owner, setup.owner);
    chownSync(logPath, setup.owner, setup.owner);
  }
  setup.spoil?.(dir);
  const [first = "", ...rest] = [...(setup.wrapper ?? []), setup.supervisor ?? supervisorProgram()];
  const supervisor = spawn(
    first,
    [
      ...rest,
      ...["--mountpoint", dir, "--source", "a-workspace", "--status-fd", "3"],
      ...(setup.options ?? ["--options", "default_permissions"]),
      ...["--", ...(setup.program ?? [process.execPath, fakeDaemon, addon, logPath, behaviour])],
    ],
    {
      stdio: ["ignore", "ignore", "pipe", "pipe", ...(setup.extraFd === undefined ? [] : [setup.extraFd])],
      detached: setup.detached ?? false,
    },
  );
  let stderr = "";
  let status = "";
  supervisor.stderr?.on("data", (chunk) => {
    stderr += chunk;
  });
  supervisor.stdio[3]?.on("data", (chunk) => {
    status += chunk;
  });
  const closed = once(supervisor, "close");
  const trial: Trial = {
    folder,
    dir,
    supervisor,
    stderr: () => stderr,
    status: () => status,
    log: () => readFileSync(logPath, "utf8"),
    daemonPid: () => Number(/ pid (\d+)/.exec(trial.log())?.[1]),
    mounts: () => mountsAt(dir, setup.namespace),
    exited: async () => {
      const timer = setTimeout(() => supervisor.kill("SIGKILL"), LIMIT_MS);
      await closed;
      clearTimeout(timer);
      return supervisor.exitCode;
    },
  };
  onTestFinished(() => end(trial));
  return trial;
}

/** Waits until a supervisor with no-process.c has asked so often for a process in vain. */
export function starved(trial: Trial, times: number): Promise<void> {
  const count = () => trial.stderr().match(/^no process$/gm)?.length ?? 0;
  return vi.waitFor(() => expect(count()).toBeGreaterThanOrEqual(times), patiently);
}

/** Waits until the supervisor says over its status descriptor that the mount is usable. */
export async function ready(trial: Trial): Promise<void> {
  await vi.waitFor(() => expect(`${trial.status()}${trial.stderr()}`).not.toBe(""), patiently);
  expect(`${trial.status()}${trial.stderr()}`).toMatch(/^ready \d+\n$/);
}

export function expectNothingLeft(trial: Trial): void {
  expect(trial.mounts()).toEqual([]);
  expect(existsSync(`/proc/${trial.daemonPid()}`)).toBe(false);
}

/** A program that uses the mount: its working directory is in it, until its stdin ends. */
export async function useMount(dir: string, wrapper: readonly string[] = []): Promise<ChildProcess> {
  const [first = "", ...rest] = [...wrapper, "sh", "-c", 'cd "$0" && echo in && read line', dir];
  const user = spawn(first, rest, { stdio: ["pipe", "pipe", "inherit"] });
  const [said] = await once(user.stdout, "data");
  expect(String(said)).toBe("in\n");
  return user;
}

export async function leaveMount(user: ChildProcess): Promise<void> {
  const exit = once(user, "exit");
  user.stdin?.end("\n");
  await exit;
}
