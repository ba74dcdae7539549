/**
 * The built wsfs as tests use it: a place of its own below the system's temporary folder (home,
 * state, runtime folder, nothing shared with other tests or users), gateways, mounts, and shell
 * commands in them. Whatever serves or touches a mount is a child process; this one never looks
 * into a mount. `cleanUp` leaves nothing mounted or running, whatever the test did.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestContext } from "vitest";
import { getStatus } from "../../src/daemon/control-client.ts";
import { type MountEntry, OUR_TYPE, readMountTable } from "../../src/daemon/mount-table.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "../../src/daemon/processes.ts";
import { daemonSocket, listServed } from "../../src/daemon/runtime-folder.ts";
import { hasCode } from "../../src/lib/system-error.ts";
import { type Finished, type RunOptions, run, spawnUntilLine, until } from "./child.ts";
import type { OrdinaryUser } from "./ordinary-user.ts";
import { sanitiserEnvironment } from "./preload.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
/** For tests alone: what a bench measures is as users run it. */
const NO_TIER_UP = fileURLToPath(new URL("no-tier-up.cjs", import.meta.url));
const FUSE_CONTROL = "/sys/fs/fuse/connections";

export interface TestGateway {
  readonly baseUrl: string;
  readonly workspace: string;
  readonly token: string;
  readonly tokenFile: string;
  readonly data: string;
  readonly pid: number;
  /** SIGTERM, and its end. */
  stop(): Promise<Finished>;
}

export interface TestMount {
  readonly dir: string;
  readonly stateDir: string;
  /** Of the daemon. */
  readonly pid: number;
  readonly supervisorPid: number;
  status(): Promise<Record<string, unknown>>;
  /** A bash script with DIR as its folder. */
  sh(script: string, options?: RunOptions): Promise<Finished>;
  /** Rejects when it fails; the arguments follow DIR. */
  umount(...args: string[]): Promise<Finished>;
}

export interface Place {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** The built command, for node. */
  readonly program: string;
  /** A path below `folder`; nothing is made. */
  path(name: string): string;
  wsfs(args: readonly string[], options?: RunOptions): Promise<Finished>;
  /** Stays; ended by cleanUp at the latest. */
  spawnWsfs(args: readonly string[]): ChildProcess;
  /** Any program; it ends with the place. */
  spawn(program: string, args: readonly string[]): ChildProcess;
  gateway(options?: { name?: string; args?: readonly string[] }): Promise<TestGateway>;
  /** What `wsfs status --json` prints of a mount. */
  status(dir: string): Promise<Record<string, unknown>>;
  /** With --background, into a fresh folder. */
  mount(gateway: TestGateway, options?: { name?: string; args?: readonly string[] }): Promise<TestMount>;
  sh(script: string, options?: RunOptions): Promise<Finished>;
  /** Any program. */
  run(program: string, args: readonly string[], options?: RunOptions): Promise<Finished>;
  cleanUp(): Promise<void>;
}

/**
 * `program`: the command of another build. `user`: whom all of it belongs to, and who runs it; without: us. `node`: the
 * program of another release of Node.
 */
export function createPlace(program = MAIN, user?: OrdinaryUser, node = process.execPath): Place {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "wsfs-test-")));
  user?.own(folder);
  const as = (file: string, args: readonly string[], at = folder): [string, readonly string[]] =>
    user === undefined ? [file, args] : user.command(at, file, args);
  const path = (name: string) => join(folder, name);
  const env: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    LC_ALL: "C.UTF-8",
    HOME: path("home"),
    XDG_STATE_HOME: path("state"),
    XDG_DATA_HOME: path("data"),
    WSFS_RUNTIME_DIR: path("run"),
    // Tests that need patience ask for it.
    WSFS_WAIT: "0",
    ...(process.env.VITEST === undefined ? {} : { NODE_OPTIONS: `--require ${NO_TIER_UP}` }),
    ...sanitiserEnvironment(),
  };
  mkdirSync(path("home"));
  user?.own(path("home"));
  const children: ProcessIdentity[] = [];
  const folders = new Set<string>();

  const remember = (pid: number | undefined) => {
    const identity = pid === undefined ? undefined : identifyProcess(pid);
    if (identity !== undefined) children.push(identity);
  };

  const place: Place = {
    folder,
    env,
    program,
    path,
    wsfs: (args, options = {}) =>
      run(...as(node, [program, ...args], options.cwd), {
        cwd: folder,
        ...options,
        env: { ...env, ...options.env },
      }),

    spawn(file, args) {
      const child = spawn(...as(file, args), { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
      remember(child.pid);
      return child;
    },
    spawnWsfs: (args) => place.spawn(node, [program, ...args]),

    async gateway({ name = "gateway", args = [] } = {}) {
      const data = path(name);
      const command = [program, "gateway", "--data", data, "--json", ...args];
      const { child, line, ended } = await spawnUntilLine(...as(node, command), { cwd: folder, env });
      remember(child.pid);
      if (line === undefined) throw new Error(`the gateway did not start: ${(await ended).stderr}`);
      const { baseUrl, workspace, token } = JSON.parse(line) as Record<"baseUrl" | "workspace" | "token", string>;
      const tokenFile = path(`${name}.token`);
      writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
      user?.own(tokenFile);
      const stop = () => {
        child.kill("SIGTERM");
        return ended;
      };
      return { baseUrl, workspace, token, tokenFile, data, pid: child.pid ?? 0, stop };
    },

    status: (dir) => statusOf(path("run"), dir, user?.uid),

    async mount(gateway, { name = "mount", args = [] } = {}) {
      const dir = path(name);
      const stateDir = path(`${name}.state`);
      // What is there may be a mount: this process never touches one.
      if (!folders.has(dir)) {
        mkdirSync(dir, { recursive: true });
        user?.own(dir);
      }
      folders.add(dir);
      const { baseUrl, workspace, tokenFile } = gateway;
      const from = ["--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile];
      check(await place.wsfs(["mount", dir, ...from, "--state-dir", stateDir, "--background", ...args]));
      const record = listServed(path("run")).find(({ mountpoint }) => mountpoint === dir);
      if (record === undefined) throw new Error(`no daemon serves ${dir} although the mount command succeeded`);
      children.push(record.daemon, record.supervisor);
      return {
        dir,
        stateDir,
        pid: record.daemon.pid,
        supervisorPid: record.supervisor.pid,
        status: () => place.status(dir),
        sh: (script, options) => place.sh(`cd '${dir}' || exit 99\n${script}`, options),
        umount: async (...more) => check(await place.wsfs(["umount", dir, ...more], { timeoutMs: 300_000 })),
      };
    },

    // The folder is changed by the shell: spawn's `cwd` would wait for it in this process.
    sh: (script, options) => place.run("bash", ["-c", script], options),

    run: (file, args, options = {}) =>
      run(...as(file, args, options.cwd), { cwd: folder, ...options, env: { ...env, ...options.env } }),

    async cleanUp() {
      const rememberServed = () => {
        for (const record of listServed(path("run"))) children.push(record.daemon, record.supervisor);
      };
      const end = () =>
        until("all processes of the test have ended", () => {
          // A daemon and its supervisor start each other again.
          rememberServed();
          killAll(children);
          return !children.some(isAlive);
        });
      // A mount whose daemon is dead fails all calls, unless a process that nobody knows of has it open.
      await end().catch(async () => {
        for (const mount of mountsBelow(folder, user)) await abort(mount);
        await end();
      });
      for (const mount of allMountsBelow(folder, user)) await detachAsRoot(mount, user);
      if (allMountsBelow(folder, user).length > 0) throw new Error(`still mounted below ${folder}`);
      // A gateway that ends with its mount may still be writing.
      await until("the folder of the test is removed", () => isRemoved(folder));
    },
  };
  return place;
}

/** A place of a test's own, cleaned up with it: for tests that run at the same time. */
export function placeFor({ onTestFinished }: Pick<TestContext, "onTestFinished">): Place {
  const place = createPlace();
  onTestFinished(() => place.cleanUp());
  return place;
}

/**
 * What `wsfs status --json` prints, without a process for each answer: tests ask many times while they wait. As the
 * command does it waits for a daemon that is being replaced. Rejects when nobody serves the mount.
 */
async function statusOf(runtime: string, dir: string, owner: number | undefined): Promise<Record<string, unknown>> {
  const find = () => listServed(runtime).find(({ mountpoint, isOver }) => mountpoint === dir && isOver !== true);
  for (;;) {
    const record = find();
    if (record === undefined) throw new Error(`nobody serves ${dir}`);
    const { daemon } = record;
    try {
      return { mounted: true, ...(await getStatus(daemonSocket(runtime, daemon.pid, owner))) };
    } catch (error) {
      await until("it ends, or has ended", () => !isAlive(daemon), 1000).catch(() => Promise.reject(error));
      const isReplaced = () => find()?.daemon.pid !== daemon.pid;
      await until("another follows it", isReplaced, 15_000).catch(() => Promise.reject(error));
    }
  }
}

/** One may end by itself meanwhile. */
function killAll(children: readonly ProcessIdentity[]): void {
  for (const child of children) {
    try {
      if (isAlive(child)) process.kill(child.pid, "SIGKILL");
    } catch (error) {
      if (!hasCode(error, "ESRCH")) throw error;
    }
  }
}

function isRemoved(folder: string): boolean {
  try {
    rmSync(folder, { recursive: true, force: true });
    return true;
  } catch (error) {
    if (!hasCode(error, "ENOTEMPTY")) throw error;
    return false;
  }
}

/** Throws, with all it said, when the command did not succeed. */
export function check(finished: Finished): Finished {
  if (finished.code === 0) return finished;
  throw new Error(`exit code ${finished.code} (${finished.signal})\n${finished.stdout}\n${finished.stderr}`);
}

/** As the user sees them. */
export function mountsBelow(folder: string, user?: OrdinaryUser): MountEntry[] {
  return allMountsBelow(folder, user).filter(({ type }) => type === OUR_TYPE);
}

/** Whatever their type: what lies in them is not to be removed with the folder. */
function allMountsBelow(folder: string, user?: OrdinaryUser): MountEntry[] {
  const table = user === undefined ? readMountTable() : user.mountTable();
  return table.filter(({ mountpoint }) => mountpoint.startsWith(`${folder}/`));
}

/** Every call that waits for an answer fails. */
async function abort({ connection }: MountEntry): Promise<void> {
  if (!existsSync(join(FUSE_CONTROL, String(connection)))) {
    await run("mount", ["-t", "fusectl", "none", FUSE_CONTROL], { timeoutMs: 5000 });
  }
  const file = join(FUSE_CONTROL, String(connection), "abort");
  if (existsSync(file)) writeFileSync(file, "1");
}

async function detachAsRoot({ mountpoint }: MountEntry, user: OrdinaryUser | undefined): Promise<void> {
  const command = ["-l", mountpoint];
  const [file, args] = user === undefined ? (["umount", command] as const) : user.asRoot("/", "umount", command);
  await run(file, args, { timeoutMs: 5000 });
}
