/**
 * Runs the helper process that replays remote changes through the mount (native/replayer) for programs that watch it
 * (engine/api/replay.ts). It is started with the first such change, asked which folders are watched, and ended when
 * there was no change for a while. If it hangs or dies, watching programs miss changes, and nothing else happens. This
 * file knows lines, not requests.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { EVERYTHING, type Replay, type Replays } from "../engine/api/index.ts";
import { type ElapsedTime, minus, plus } from "../lib/clocks.ts";
import { compiled } from "../lib/compiled.ts";
import type { Logger } from "../lib/log.ts";
import { type Clock, sleep, type Timer } from "../lib/runtime.ts";
import { safeToKill } from "../lib/safe-to-kill.ts";
import { type InodeId, inodeId } from "../metadata/ids.ts";
import { mountAt, readMountTable } from "./mount-table.ts";
import { identifyProcess, isAlive, type ProcessIdentity } from "./processes.ts";

interface ReplayerOptions {
  readonly mountpoint: string;
  readonly connection: number;
  readonly replays: Replays;
  /** The replayers of the daemon before this one. */
  readonly former: readonly ProcessIdentity[];
  /** Records which processes replay, or did and may still have a call under way, for the next daemon. */
  readonly keep: (processes: readonly ProcessIdentity[]) => void;
  readonly clock: Pick<Clock, "elapsed" | "setTimer">;
  readonly log: Logger;
}

interface Replayer {
  close(): void;
}

/** A replay waits this long, so that the kernel gets its invalidations first (fuse/kernel-cache.ts). */
const GATHER_MS = 20;
/** The interval at which the watched folders are asked for, if some were watched, and if none were. */
const WATCHED_MS = 100;
const UNWATCHED_MS = 500;
/** The interval grows, so that asking takes at most a twentieth of the time, but not beyond WATCHED_MOST_MS. */
const WATCHED_SHARE = 20;
const WATCHED_MOST_MS = 3_000;
/** The pause after each replay, in which the mount can be unmounted: it cannot while a replay is under way. */
const REST_MS = 2;
const IDLE_MS = 60_000;
/** An answer takes at most this long, unless something is wrong. */
const ANSWER_MS = 10_000;
/** The pause after a failure. */
const PAUSE_MS = 5_000;
/** The interval of checks whether the replayers of the former daemon have ended. */
const FORMER_MS = 1_000;
/** No path that a system call takes is longer. */
const PATH_BYTES_MAX = 4_000;

const EISDIR = 21;

interface Program {
  readonly process: ProcessIdentity;
  /** Resolves with the answer. Rejects when there is none. */
  ask(...fields: string[]): Promise<string>;
  end(): void;
}

export function startReplayer(options: ReplayerOptions): Replayer {
  const { replays, clock, log, keep } = options;
  /** Replayers that are alive or may be. Each may have a call under way for as long as it lives. */
  let processes = options.former;
  let program: Program | undefined;
  /** Undefined: at once. */
  let askAgainAt: ElapsedTime | undefined;
  let isGoing = false;
  let isClosed = false;
  let idle: Timer | undefined;
  let soon: Timer | undefined;
  let looking: Timer | undefined;

  checkFormer();

  function checkFormer(): void {
    for (const one of processes) if (one !== program?.process && !isAlive(one)) replays.formerly.delete(one.pid);
    processes = processes.filter((one) => one === program?.process || isAlive(one));
    if (processes.some((one) => one !== program?.process)) looking = clock.setTimer(FORMER_MS, checkFormer);
  }

  function begin(): void {
    if (isGoing || isClosed) return;
    isGoing = true;
    soon = clock.setTimer(
      Math.max(GATHER_MS, askAgainAt === undefined ? 0 : minus(askAgainAt, clock.elapsed())),
      () => void go(),
    );
  }

  async function go(): Promise<void> {
    idle?.cancel();
    try {
      program ??= await start();
      await askWatched(program);
      await replayAll(program);
      idle = clock.setTimer(IDLE_MS, end);
    } catch (error) {
      if (!isClosed) log.warn({ err: error }, "programs that watch the mount may not be told of remote changes");
      replays.drop();
      end();
      askAgainAt = plus(clock.elapsed(), PAUSE_MS);
    }
    isGoing = false;
    if (isClosed) end();
    else if (replays.isAny) begin();
  }

  /** Looks up a random name to find out whether the replayer's calls come to this mount, and under which process id. */
  async function start(): Promise<Program> {
    const started = startProgram(options, ended);
    const { pid } = started.process;
    processes = [...processes, started.process];
    replays.formerly.add(pid);
    keep(processes);
    program = started;
    const name = `.wsfs-${randomUUID()}`;
    const by = replays.seek(name);
    const errno = await started.ask("look", "", name);
    if (by() !== pid) throw new Error(`its calls do not come to this mount (errno ${errno}, process ${by()})`);
    replays.formerly.delete(pid);
    replays.by = pid;
    return started;
  }

  /**
   * The process was waited for: none of its calls is under way, and its process id may belong to another process now.
   */
  function ended({ pid }: ProcessIdentity): void {
    if (replays.by === pid) replays.by = undefined;
    if (program?.process.pid === pid) program = undefined;
    replays.formerly.delete(pid);
    processes = processes.filter((one) => one.pid !== pid);
    if (!isClosed) keep(processes);
  }

  async function askWatched(by: Program): Promise<void> {
    const asked = clock.elapsed();
    const watch = replays.asking();
    const watched = new Set((await by.ask("watched")).split(" ").filter(Boolean).map(watchedOf));
    const took = minus(clock.elapsed(), asked);
    const shortest = watched.size > 0 ? WATCHED_MS : UNWATCHED_MS;
    askAgainAt = plus(asked, Math.min(Math.max(shortest, took * WATCHED_SHARE), WATCHED_MOST_MS));
    watch(watched);
  }

  async function replayAll(by: Program): Promise<void> {
    for (let replay = replays.next(); replay !== undefined; replay = replays.next()) {
      const fields = fieldsOf(replay);
      if (fields === undefined) continue;
      await replays.prepare(() => isMountedOver(fields));
      const errno = Number(await by.ask(...fields));
      if (errno !== 0) {
        log.debug({ replay, errno }, "a change could not be replayed");
        replays.failed(errno === EISDIR);
      }
      await sleep(clock, REST_MS);
      if (askAgainAt === undefined || clock.elapsed() >= askAgainAt) await askWatched(by);
    }
  }

  function fieldsOf(replay: Replay): string[] | undefined {
    const folder = pathOf(replay.folder);
    if (folder === undefined) return undefined;
    const fields = [replay.what, folder, replay.name];
    if (replay.what === "made" || replay.what === "gone") return [...fields, replay.kind];
    if (replay.what !== "moved") return fields;
    const target = pathOf(replay.to.folder);
    return target === undefined ? undefined : [...fields, target, replay.to.name];
  }

  function isMountedOver([, folder = "", name = ""]: readonly string[]): boolean {
    return mountAt(readMountTable(), join(options.mountpoint, folder, name)) !== undefined;
  }

  function pathOf(folder: InodeId): string | undefined {
    const path = replays.pathOf(folder);
    return path === undefined || Buffer.byteLength(path) > PATH_BYTES_MAX ? undefined : path;
  }

  /** A call of the replayer may still be under way, so its process id stays known. */
  function end(): void {
    const ending = program;
    program = undefined;
    if (ending === undefined) return;
    if (replays.by !== undefined) replays.formerly.add(replays.by);
    replays.by = undefined;
    ending.end();
  }

  try {
    compiled(PROGRAM);
    replays.onAny(begin);
  } catch (error) {
    log.warn({ err: error }, "programs that watch the mount are not told of remote changes");
  }
  return {
    close() {
      isClosed = true;
      replays.onAny(undefined);
      for (const timer of [idle, soon, looking]) timer?.cancel();
      end();
    },
  };
}

const PROGRAM = "wsfs-replayer";
const FIELDS = 5;

/** A question has five fields, an answer is one line. `ended`: there is no such process any more. */
function startProgram(
  { mountpoint, connection, clock, log }: ReplayerOptions,
  ended: (process: ProcessIdentity) => void,
): Program {
  const args = [mountpoint, String(connection), String(process.pid)];
  const child: ChildProcess = safeToKill(
    spawn(compiled(PROGRAM), args, { cwd: "/", stdio: ["pipe", "pipe", "ignore"] }),
  );
  const { stdin, stdout, pid } = child;
  // A failed start is also reported by an event.
  child.on("error", () => {});
  const identity = pid === undefined ? undefined : identifyProcess(pid);
  if (stdin === null || stdout === null || identity === undefined) {
    child.kill("SIGKILL");
    throw new Error(`${PROGRAM} could not be started`);
  }
  let answer: { resolve(line: string): void; reject(error: Error): void } | undefined;
  let over: Error | undefined;

  function fail(error: Error): void {
    over ??= error;
    answer?.reject(error);
    answer = undefined;
    child.kill("SIGKILL");
  }

  child.on("exit", (code, signal) => {
    ended(identity);
    fail(new Error(`${PROGRAM} ended (${signal ?? code})`));
  });
  stdin.on("error", fail);
  createInterface({ input: stdout }).on("line", (line) => {
    answer?.resolve(line);
    answer = undefined;
  });
  log.debug({ replayer: pid }, "started the process that replays remote changes");

  return {
    process: identity,
    async ask(...fields) {
      if (over !== undefined) throw over;
      const line = new Promise<string>((resolve, reject) => {
        answer = { resolve, reject };
      });
      const late = clock.setTimer(ANSWER_MS, () => fail(new Error(`no answer within ${ANSWER_MS} ms`)));
      const all = Array.from({ length: FIELDS }, (_, index) => fields[index] ?? "");
      stdin.write(`${all.join("\0")}\0`);
      return line.finally(() => late.cancel());
    },
    end() {
      over ??= new Error("ended");
      stdin.end();
    },
  };
}

/** An inode by its number. 0 stands for all inodes (native/replayer). */
function watchedOf(number: string): InodeId | typeof EVERYTHING {
  return number === "0" ? EVERYTHING : inodeId(Number(number));
}
