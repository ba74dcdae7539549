/**
 * Finds the processes of executions in /proc, by either of two marks. The first is WSFS_EXECUTION=ID in the
 * environment: it stays when a process changes its parent, group or session. The second is the session of the main
 * program: it stays when sudo or `env -i` removes the variable. This module does not know how an execution is started.
 */
import { readdirSync, readFileSync } from "node:fs";
import { type ElapsedTime, minus } from "../../lib/clocks.ts";
import { type Clock, sleep } from "../../lib/runtime.ts";
import { hasCode } from "../../lib/system-error.ts";

export const EXECUTION_VARIABLE = "WSFS_EXECUTION";

/** Requests are answered after each batch of this many processes looked at. */
const LOOK_AT = 64;
/** Pause between two looks when one found nothing, see `lookWell`. */
const NEXT_LOOK_MS = 10;
/** The number of tries to catch a process that begins another one and ends. */
const CHASES = 50;
/** Interval of checks whether processes that were told to end have ended. */
const POLL_MS = 50;
/** A process that SIGKILL does not end waits for a device for good: a network file system, or a broken disk. */
const UNKILLABLE_MS = 10_000;

/** Tells the processes to act on from all others. */
export interface Ours {
  isExecution(id: string): boolean;
  /**
   * Number of the session that the main program began. The kernel does not reuse it as long as the program or a process
   * of its session exists. These processes are searched at once when the program has ended.
   */
  readonly session?: number | undefined;
}

/** True if the process existed and could be acted on. */
type Act = (pid: number) => boolean;

/** Applies the act to each process of ours. Returns those it could act on. Waits while no file can be opened. */
async function look(clock: Clock, ours: Ours, act: Act): Promise<number[]> {
  for (;;) {
    try {
      return await lookOnce(clock, ours, act);
    } catch (error) {
      if (!hasCode(error, "EMFILE", "ENFILE", "ENOMEM")) throw error;
      await sleep(clock, POLL_MS);
    }
  }
}

async function lookOnce(clock: Clock, ours: Ours, act: Act): Promise<number[]> {
  const before = newestProcess();
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found: number[] = [];
  for (const [index, pid] of pids.map(Number).entries()) {
    if (index % LOOK_AT === LOOK_AT - 1) await new Promise<void>((resolve) => clock.soon(resolve));
    if (isOurs(pid, ours) && act(pid)) found.push(pid);
  }
  // A process that begins another and ends at once, as a fork chain does, may be in no list. It is met by looking at
  // the newest process numbers.
  for (let tries = 0; tries < CHASES && found.length === 0 && newestProcess() !== before; tries += 1) {
    const newest = newestProcess();
    for (let pid = newest; pid > newest - 4; pid -= 1) if (isOurs(pid, ours) && act(pid)) found.push(pid);
  }
  return found;
}

/** Number of the process that was begun last on this machine. */
const newestProcess = (): number => Number(readProc("/proc/loadavg").trim().split(" ").at(-1));

function isOurs(pid: number, { isExecution, session }: Ours): boolean {
  if (pid === process.pid) return false;
  // A zombie has ended; its parent has not asked for its exit code yet.
  const [state, sid] = sessionOf(pid);
  if (state === undefined || state === "Z" || state === "X") return false;
  if (session !== undefined && sid === session) return true;
  const id = /(?:^|\0)WSFS_EXECUTION=([^\0]*)\0/.exec(readProc(`/proc/${pid}/environ`))?.[1];
  return id !== undefined && isExecution(id);
}

function sessionOf(pid: number): readonly [state: string | undefined, session: number] {
  const stat = readProc(`/proc/${pid}/stat`);
  // The name before it is in parentheses, and may itself contain parentheses and spaces.
  const [state, , , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return [stat === "" ? undefined : state, Number(session)];
}

/** Empty when the process is gone or belongs to another user. */
function readProc(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ESRCH", "EACCES", "EPERM")) return "";
    throw error;
  }
}

/**
 * Returns no process only after three looks: a process has no environment for a moment while it executes another
 * program, and a process that began another and ended may have been missed along with it.
 */
async function lookWell(clock: Clock, ours: Ours, act: Act): Promise<number[]> {
  for (let looks = 1; ; looks += 1) {
    const found = await look(clock, ours, act);
    if (found.length > 0 || looks === 3) return found;
    await sleep(clock, NEXT_LOOK_MS);
  }
}

/** A process may have become that of another user (setuid); then the gateway can do nothing. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if (hasCode(error, "ESRCH", "EPERM")) return false;
    throw error;
  }
}

interface Ended {
  /** Number of processes at the beginning. */
  readonly found: number;
  /** Numbers of the processes that even SIGKILL did not end. */
  readonly left: readonly number[];
}

/** Sends SIGTERM, and SIGKILL at `killAt` (undefined: not yet). Resolves as soon as no process is left. */
export async function endProcesses(clock: Clock, ours: Ours, killAt: () => ElapsedTime | undefined): Promise<Ended> {
  const isOver = () => {
    const at = killAt();
    return at !== undefined && clock.elapsed() >= at;
  };
  // A stopped process receives the signal when it continues. Processes begun later get no SIGTERM: they may be the
  // clean-up of those that got it.
  let pids = isOver() ? [] : await lookWell(clock, ours, (pid) => signal(pid, "SIGTERM") && signal(pid, "SIGCONT"));
  const found = pids.length;
  while (pids.length > 0 && !isOver()) {
    await sleep(clock, POLL_MS);
    pids = await lookWell(clock, ours, (pid) => signal(pid, 0));
  }
  return { found, left: pids.length > 0 || isOver() ? await killProcesses(clock, ours) : [] };
}

/**
 * Stops all processes first, until there is no new one. Processes that begin others as fast as they are killed begin
 * none while they are stopped, and they keep the places (RLIMIT_NPROC) that others of them would take.
 */
async function killProcesses(clock: Clock, ours: Ours): Promise<readonly number[]> {
  const started = clock.elapsed();
  const isOver = () => minus(clock.elapsed(), started) > UNKILLABLE_MS;
  for (;;) {
    const stopped = new Set<number>();
    const stop: Act = (pid) => {
      stopped.add(pid);
      return signal(pid, "SIGSTOP");
    };
    for (let before = -1; before < stopped.size && !isOver(); ) {
      before = stopped.size;
      await lookWell(clock, ours, stop);
    }
    if (stopped.size === 0) return [];
    // Stopped processes are killed also when the time is over: none is left stopped.
    for (const pid of stopped) signal(pid, "SIGKILL");
    if (!isOver()) continue;
    await sleep(clock, POLL_MS);
    return lookWell(clock, ours, (pid) => signal(pid, 0));
  }
}
