/**
 * Runs the program that replays through the mount what others changed (native/replayer), for those who watch it
 * (vfs/replay.ts). It is started with the first such change, asked who watches what, and ended when there has been none
 * for a while. Should it hang or die, programs that watch miss changes, and nothing else does. Knows lines, and no request.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { compiled } from "../lib/compiled.ts";
import type { Logger } from "../lib/log.ts";
import type { Clock, Timer } from "../lib/runtime.ts";
import type { Replay, Replays } from "../vfs/replay.ts";

export interface ReplayerOptions {
  readonly mountpoint: string;
  readonly connection: number;
  readonly replays: Replays;
  /** Writes down who replays, for a daemon after this one. */
  readonly keep: (thread: number) => void;
  readonly clock: Pick<Clock, "elapsed" | "setTimer">;
  readonly log: Logger;
}

export interface Replayer {
  close(): void;
}

/** The kernel is told first that its caches are old (fuse/kernel-cache.ts). */
const GATHER_MS = 20;
/** Who watches is asked anew after so long, where somebody did and where nobody did … */
const WATCHED_MS = 100;
const UNWATCHED_MS = 500;
/** … but so seldom that it takes no more than a twentieth of the time. */
const WATCHED_SHARE = 20;
const IDLE_MS = 60_000;
/** An answer takes no longer, unless something is wrong. */
const ANSWER_MS = 10_000;
/** After a failure. */
const PAUSE_MS = 30_000;
/** A call of one that ended, also under the daemon before this one, comes right away, if ever. */
const FORMER_MS = 10_000;

const EEXIST = 17;
const EISDIR = 21;

interface Program {
  /** Its answer. Rejects when there is none. */
  ask(...fields: string[]): Promise<string>;
  end(): void;
}

export function startReplayer(options: ReplayerOptions): Replayer {
  const { replays, clock, log, keep } = options;
  let program: Program | undefined;
  let askAgainAt = Number.NEGATIVE_INFINITY;
  let isGoing = false;
  let isClosed = false;
  let idle: Timer | undefined;
  let former = clock.setTimer(FORMER_MS, forgetFormer);

  function begin(): void {
    if (isGoing || isClosed) return;
    isGoing = true;
    clock.setTimer(Math.max(GATHER_MS, askAgainAt - clock.elapsed()), () => void go());
  }

  async function go(): Promise<void> {
    idle?.cancel();
    if (isClosed) return;
    try {
      program ??= await start();
      await lookWhoWatches(program);
      await replayAll(program);
      idle = clock.setTimer(IDLE_MS, end);
    } catch (error) {
      if (!isClosed) log.warn({ err: error }, "programs that watch the mount may not hear of what others changed");
      end();
      askAgainAt = clock.elapsed() + PAUSE_MS;
    }
    isGoing = false;
    if (replays.isAny) begin();
  }

  /** By which thread its calls come is found out by a name it looks up. */
  async function start(): Promise<Program> {
    const started = startProgram(options);
    const name = `.wsfs-${randomUUID()}`;
    const thread = replays.seek(name);
    try {
      const errno = await started.ask("look", "", name);
      const by = thread();
      if (by === undefined || by === 0) throw new Error(`its calls do not come to this mount (errno ${errno})`);
      replays.by = by;
      keep(by);
      return started;
    } catch (error) {
      started.end();
      throw error;
    }
  }

  async function lookWhoWatches(by: Program): Promise<void> {
    const asked = clock.elapsed();
    const watched = new Set((await by.ask("watched")).split(" ").filter(Boolean).map(Number));
    const took = clock.elapsed() - asked;
    askAgainAt = asked + Math.max(watched.size > 0 ? WATCHED_MS : UNWATCHED_MS, took * WATCHED_SHARE);
    replays.watch(watched);
  }

  async function replayAll(by: Program): Promise<void> {
    for (let replay = replays.next(); replay !== undefined; replay = replays.next()) {
      const fields = fieldsOf(replay);
      if (fields === undefined) continue;
      const errno = Number(await by.ask(...fields));
      // The kernel knows it there by now, or it was a folder.
      if (replay.what === "made" && errno === EEXIST) await by.ask("attributes", ...fields.slice(1, 3));
      else if (replay.what === "moved" && errno === EEXIST) await by.ask("attributes", ...fields.slice(3, 5));
      else if (replay.what === "gone" && errno === EISDIR) await by.ask(...fields.slice(0, 3), "folder");
      else if (errno !== 0) log.debug({ replay, errno }, "a change was not replayed");
      if (clock.elapsed() >= askAgainAt) await lookWhoWatches(by);
    }
  }

  function fieldsOf(replay: Replay): string[] | undefined {
    const folder = replays.pathOf(replay.folder);
    if (folder === undefined) return undefined;
    const fields = [replay.what, folder, replay.name];
    if (replay.what === "made" || replay.what === "gone") return [...fields, replay.kind];
    if (replay.what !== "moved") return fields;
    const target = replays.pathOf(replay.to.folder);
    return target === undefined ? undefined : [...fields, target, replay.to.name];
  }

  function forgetFormer(): void {
    replays.formerly = undefined;
  }

  /** A call it has made may still be on its way. */
  function end(): void {
    program?.end();
    program = undefined;
    if (replays.by === undefined) return;
    replays.formerly = replays.by;
    replays.by = undefined;
    former.cancel();
    former = clock.setTimer(FORMER_MS, forgetFormer);
  }

  replays.onAny(begin);
  return {
    close() {
      isClosed = true;
      former.cancel();
      idle?.cancel();
      end();
    },
  };
}

/** Five fields a question, a line an answer. */
function startProgram({ mountpoint, connection, clock, log }: ReplayerOptions): Program {
  const child: ChildProcess = spawn(compiled("wsfs-replayer"), [mountpoint, String(connection)], {
    cwd: "/",
    stdio: ["pipe", "pipe", "ignore"],
  });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("a process without pipes");
  let answer: { resolve(line: string): void; reject(error: Error): void } | undefined;
  let over: Error | undefined;

  function fail(error: Error): void {
    over ??= error;
    answer?.reject(error);
    answer = undefined;
    child.kill("SIGKILL");
  }

  child.on("error", fail);
  child.on("exit", (code, signal) => fail(new Error(`the process that replays ended (${signal ?? code})`)));
  stdin.on("error", fail);
  createInterface({ input: stdout }).on("line", (line) => {
    answer?.resolve(line);
    answer = undefined;
  });
  log.debug({ pid: child.pid }, "a process replays what others changed");

  return {
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

const FIELDS = 5;
