/**
 * The processes of executions. Each program is begun in a folder of its own, its output is read, and it is ended with
 * everything it began. An execution is over once its program has ended. Processes it leaves running are told to end,
 * and killed after the grace. This module knows no SQL and no HTTP.
 *
 * The folder exists from before the program begins until none of its processes is left. If the gateway dies, the next
 * one learns from the folders which executions may have left processes.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { Socket } from "node:net";
import path from "node:path";
import { promisify } from "node:util";
import { type ElapsedTime, earliestOf, minus, plus } from "../../lib/clocks.ts";
import { deferred } from "../../lib/deferred.ts";
import { describeError } from "../../lib/log.ts";
import { type Clock, sleep, TIMER_MAX_MS, type Timer } from "../../lib/runtime.ts";
import { hasCode } from "../../lib/system-error.ts";
import type { LogWriter } from "./logs.ts";
import { EXECUTION_VARIABLE, endProcesses, type Ours } from "./process-table.ts";

/** Time between SIGTERM and SIGKILL. */
export const TERM_GRACE_MS = 5000;
/**
 * The limit for reading the rest of the pipes after the last process has ended. Other processes may still hold the
 * other ends.
 */
const DRAIN_MS = 1000;
/** Variables that a program gets from the environment of the gateway itself. */
const INHERITED = /^(?:PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR)$/;

export interface EngineRun {
  /** Id of the execution, and name of its folder. */
  readonly id: string;
  readonly command: readonly string[];
  /** The whole environment, except the variables of INHERITED and WSFS_EXECUTION, which is the id. */
  readonly environment: Readonly<Record<string, string>>;
  /** The standard input. It is a file: it has an end, and the gateway need not wait until it is read. */
  readonly input: string;
  /** Files in the folder when the program begins: name and content. */
  readonly files: Readonly<Record<string, string>>;
  readonly timeLimitMs: number;
  /** Closed before `ended` resolves. */
  readonly log: LogWriter;
}

export interface RunEnd {
  /** Null when the program has no exit code: a signal ended it, or it never began. */
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  /** The reason of the end, if the exit code does not tell it. */
  readonly detail: string | null;
}

export interface RunningEngine {
  /**
   * Resolves once the program has ended, no process of the execution and no folder is left, and the log is closed.
   * Never rejects.
   */
  readonly ended: Promise<RunEnd>;
  /**
   * Sends SIGTERM to all processes of the execution, and SIGKILL after the grace (default TERM_GRACE_MS). Resolves as
   * `ended`.
   */
  end(graceMs?: number): Promise<RunEnd>;
}

export interface EngineProcesses {
  start(run: EngineRun): RunningEngine;
  /**
   * Kills the processes left of these executions and of those whose folder is left, and removes the folders. Called
   * before the first `start` of a gateway that may follow one that died. Returns the numbers of processes that could
   * not be killed.
   */
  endLeft(executions: readonly string[]): Promise<readonly number[]>;
}

interface ProcessNeeds {
  /** Parent of all their folders. Created when missing, readable by its owner only. Nothing else may be in it. */
  readonly folder: string;
  readonly clock: Clock;
  readonly environment: NodeJS.ProcessEnv;
}

export function createEngineProcesses({ folder, clock, environment }: ProcessNeeds): EngineProcesses {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // The path as the table of mounts spells it.
  const home = realpathSync(folder);
  const inherited = Object.fromEntries(Object.entries(environment).filter(([name]) => INHERITED.test(name)));
  return {
    start(run) {
      const [command, ...args] = run.command;
      if (command === undefined) throw new Error("expected a command of at least one word");
      const env: Record<string, string | undefined> = {
        ...inherited,
        ...run.environment,
        [EXECUTION_VARIABLE]: run.id,
      };
      const program: Program = {
        // The program gets a session of its own.
        begin: (cwd, stdio) => spawn(command, args, { cwd, env, stdio: [...stdio], detached: true }),
        whyNotBegun: (error, cwd) => whyNotBegun(error, command, env.PATH ?? "", cwd),
      };
      return supervise(clock, run, path.join(home, run.id), program);
    },
    async endLeft(executions) {
      const ids = new Set([...executions, ...readdirSync(home)]);
      if (ids.size === 0) return [];
      const { left } = await endProcesses(clock, { isExecution: (id) => ids.has(id) }, clock.elapsed);
      if (left.length === 0) for (const id of readdirSync(home)) await removeFolder(path.join(home, id));
      return left;
    },
  };
}

interface Program {
  begin(folder: string, stdio: readonly number[]): ChildProcess;
  /** The reason, for people. */
  whyNotBegun(error: Error, folder: string): string;
}

interface ProgramEnd {
  readonly exitCode: number | null;
  readonly detail: string | null;
}

function supervise(clock: Clock, run: EngineRun, place: string, program: Program): RunningEngine {
  /** Resolves when the execution has to end before its program does. */
  const mustEnd = deferred<void>();
  let killAt: ElapsedTime | undefined;
  const endWithin = (graceMs: number) => {
    killAt = earliestOf([killAt, plus(clock.elapsed(), graceMs)]);
    mustEnd.resolve();
  };
  let timedOut = false;
  let isStuck = false;
  const limit = after(clock, run.timeLimitMs, () => {
    timedOut = true;
    endWithin(TERM_GRACE_MS);
  });

  async function runProgram(): Promise<RunEnd> {
    const { stdio, outputs } = await makeFolder(run, place);
    let child: ChildProcess;
    try {
      child = program.begin(place, stdio);
    } catch (error) {
      for (const fd of outputs) closeSync(fd);
      throw error;
    } finally {
      for (const fd of stdio) closeSync(fd);
    }
    const end = programEnd(child, (error) => program.whyNotBegun(error, place));
    const [out, err] = outputs;
    const readers = [
      listen(out, (bytes) => run.log.write("out", bytes)),
      listen(err, (bytes) => run.log.write("err", bytes)),
    ];
    const endedItself = await Promise.race([end.then(() => true), mustEnd.promise.then(() => false)]);
    limit.cancel();
    endWithin(TERM_GRACE_MS);
    const isOurs: Ours = { isExecution: (id) => id === run.id, session: child.pid };
    const { found, left } = await endProcesses(clock, isOurs, () => killAt);
    if (endedItself && found > 0) say(run.log, `It left ${processes(found)} running, which had to end.`);
    // A program that even SIGKILL does not end is not waited for.
    const { exitCode, detail } = await Promise.race(left.length === 0 ? [end] : [end, STUCK]);
    await Promise.race([Promise.all(readers.map(({ closed }) => closed)), sleep(clock, DRAIN_MS)]);
    for (const reader of readers) reader.close();
    await Promise.all(readers.map(({ closed }) => closed));
    isStuck = left.length > 0;
    if (isStuck) say(run.log, `${processes(left.length)} could not be ended even by SIGKILL: ${left.join(", ")}.`);
    return {
      exitCode,
      timedOut,
      detail: timedOut ? `It ran longer than its time limit of ${run.timeLimitMs / 1000} s.` : detail,
    };
  }

  const ended = runProgram()
    .catch((error: unknown): RunEnd => {
      return { exitCode: null, timedOut, detail: `The gateway could not run it: ${describeError(error)}.` };
    })
    .then(async (end) => {
      limit.cancel();
      const kept = isStuck ? undefined : await removeFolder(place);
      if (kept !== undefined) say(run.log, kept);
      await run.log.close();
      return end;
    });
  return {
    ended,
    end(graceMs = TERM_GRACE_MS) {
      endWithin(graceMs);
      return ended;
    },
  };
}

const STUCK: Promise<ProgramEnd> = Promise.resolve({ exitCode: null, detail: "Even SIGKILL did not end it." });
const say = (log: LogWriter, line: string) => log.write("gateway", Buffer.from(`${line}\n`));
const processes = (count: number) => (count === 1 ? "1 process" : `${count} processes`);

/** Like setTimer, but for a time of any length. */
function after(clock: Clock, milliseconds: number, callback: () => void): Timer {
  const due = plus(clock.elapsed(), milliseconds);
  const next = (): Timer =>
    clock.setTimer(Math.min(TIMER_MAX_MS, Math.max(0, minus(due, clock.elapsed()))), () => {
      if (clock.elapsed() >= due) callback();
      else timer = next();
    });
  let timer = next();
  return { cancel: () => timer.cancel() };
}

interface Begun {
  /** Descriptors of the program: 0, 1 and 2. */
  readonly stdio: readonly number[];
  /** The other ends of 1 and 2. */
  readonly outputs: readonly [number, number];
}

/**
 * Makes the folder, its files, and the program's input and outputs: a file and two named pipes, whose names are then
 * removed. The pipes that Node makes are sockets, and a program cannot open /dev/stderr when it is a socket.
 */
async function makeFolder(run: EngineRun, place: string): Promise<Begun> {
  mkdirSync(place, { mode: 0o700 });
  for (const [name, content] of Object.entries(run.files))
    writeFileSync(path.join(place, name), content, { mode: 0o600 });
  const [input, out, err] = [".in", ".out", ".err"].map((name) => path.join(place, name)) as [string, string, string];
  writeFileSync(input, run.input, { mode: 0o600 });
  await promisify(execFile)("mkfifo", ["-m", "600", "--", out, err]);
  const opened: number[] = [];
  const open = (file: string, flags: number) => {
    const fd = openSync(file, flags);
    opened.push(fd);
    return fd;
  };
  try {
    const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;
    // The reading end is opened first: that never waits.
    const outputs = [open(out, O_RDONLY | O_NONBLOCK), open(err, O_RDONLY | O_NONBLOCK)] as const;
    const stdio = [open(input, O_RDONLY), open(out, O_WRONLY), open(err, O_WRONLY)];
    for (const file of [input, out, err]) unlinkSync(file);
    return { stdio, outputs };
  } catch (error) {
    for (const fd of opened) closeSync(fd);
    throw error;
  }
}

function programEnd(child: ChildProcess, whyNotBegun: (error: Error) => string): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ exitCode: null, detail: whyNotBegun(error) }));
    child.once("exit", (exitCode, signal) => {
      resolve({ exitCode, detail: signal === null ? null : `It was ended by ${signal}.` });
    });
  });
}

function whyNotBegun(error: Error, command: string, searched: string, place: string): string {
  const name = `The command ${JSON.stringify(command)}`;
  if (hasCode(error, "EACCES")) return `${name} may not be executed.`;
  if (!hasCode(error, "ENOENT")) return `${name} could not be started: ${describeError(error)}.`;
  const folders = command.includes("/") ? [place] : searched.split(":");
  const isThere = folders.some((folder) => existsSync(path.resolve(folder, command)));
  return isThere ? `${name} is there, but not the interpreter that its first line names.` : `${name} is not there.`;
}

interface Reader {
  readonly closed: Promise<void>;
  close(): void;
}

function listen(fd: number, hear: (bytes: Uint8Array) => void): Reader {
  const socket = new Socket({ fd, readable: true, writable: false });
  socket.on("data", (bytes) => {
    hear(bytes);
    // Other work gets its turn between two pieces: a program can print faster than lines are made of its output.
    socket.pause();
    setImmediate(() => socket.resume());
  });
  // An error closes the socket as well.
  socket.on("error", () => {});
  return {
    closed: new Promise((resolve) => socket.once("close", () => resolve())),
    close: () => socket.destroy(),
  };
}

/**
 * Returns why the folder is kept, if it is. A file system mounted in the folder does not belong to it: removing the
 * folder would remove its files.
 */
async function removeFolder(place: string): Promise<string | undefined> {
  const mounted = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .map((escaped) =>
      escaped.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
    .find((point) => point.startsWith(`${place}/`));
  if (mounted !== undefined) return `Its folder ${place} is kept: something is mounted at ${mounted}.`;
  try {
    await rm(place, { recursive: true, force: true });
    return undefined;
  } catch (error) {
    return `Its folder ${place} is kept: ${describeError(error)}.`;
  }
}
