/**
 * The processes of executions, found in /proc: those with WSFS_EXECUTION=ID in their environment, wherever they went (their
 * parent, group and session are theirs to change), and those of the main program's session, as sudo or `env -i` take the
 * variable away. Knows nothing of how an execution is started.
 */
import { readdirSync, readFileSync } from "node:fs";
import { type Clock, sleep } from "../../lib/runtime.ts";
import { hasCode } from "../../lib/system-error.ts";

export const EXECUTION_VARIABLE = "WSFS_EXECUTION";

/** Requests are answered after so many processes that were looked at. */
const LOOK_AT = 64;
/** How long after a look that found nothing the next one is, see `remaining`. */
const SETTLE_MS = 10;
/** How often is looked whether processes that were told to end have ended. */
const POLL_MS = 50;
/** A process that SIGKILL does not end waits for a device for good: that of a network file system, a broken disk. */
const UNKILLABLE_MS = 10_000;

/** Whose processes are meant. */
export interface Ours {
  isExecution(id: string): boolean;
  /**
   * Number of the session that the main program began. It is given to nobody else as long as the program or one of its
   * session is there; they are looked for at once when the program has ended.
   */
  readonly session?: number | undefined;
}

/** Numbers of the processes. Where no file can be opened for now (EMFILE), it looks again. */
async function look(clock: Clock, ours: Ours): Promise<number[]> {
  for (;;) {
    try {
      return await lookOnce(clock, ours);
    } catch (error) {
      if (!hasCode(error, "EMFILE", "ENFILE", "ENOMEM")) throw error;
      await sleep(clock, POLL_MS);
    }
  }
}

/** The newest first: those that fork and exit are met before they are gone. */
async function lookOnce(clock: Clock, ours: Ours): Promise<number[]> {
  const numbers = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => b - a);
  const found: number[] = [];
  for (const [index, pid] of numbers.entries()) {
    if (index % LOOK_AT === LOOK_AT - 1) await new Promise<void>((resolve) => clock.soon(resolve));
    if (pid !== process.pid && isOurs(pid, ours)) found.push(pid);
  }
  return found;
}

function isOurs(pid: number, { isExecution, session }: Ours): boolean {
  // A zombie has ended: whoever began it has yet to ask how.
  const [state, sid] = sessionOf(pid);
  if (state === undefined || state === "Z" || state === "X") return false;
  if (session !== undefined && sid === session) return true;
  const id = /(?:^|\0)WSFS_EXECUTION=([^\0]*)\0/.exec(readProc(`/proc/${pid}/environ`))?.[1];
  return id !== undefined && isExecution(id);
}

function sessionOf(pid: number): readonly [state: string | undefined, session: number] {
  const stat = readProc(`/proc/${pid}/stat`);
  // The name before it is in parentheses, and may hold some, and spaces.
  const [state, , , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return [stat === "" ? undefined : state, Number(session)];
}

/** Empty where the process is gone, or another user's. */
function readProc(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ESRCH", "EACCES", "EPERM")) return "";
    throw error;
  }
}

/**
 * None only after three looks: a process has no environment for a moment while it executes another program, and one that
 * began another and ended may have been missed with it.
 */
async function remaining(clock: Clock, ours: Ours): Promise<number[]> {
  for (let looks = 1; ; looks += 1) {
    const found = await look(clock, ours);
    if (found.length > 0 || looks === 3) return found;
    await sleep(clock, SETTLE_MS);
  }
}

/** Whether there was such a process; one that may not be signalled has become another user's. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if (hasCode(error, "ESRCH", "EPERM")) return false;
    throw error;
  }
}

export interface Ended {
  /** How many were there at first. */
  readonly found: number;
  /** Numbers of those that even SIGKILL did not end. */
  readonly left: readonly number[];
}

/** SIGTERM, and SIGKILL once `killAt` is over, a time of clock.elapsed(); ends as soon as there are none. */
export async function endProcesses(clock: Clock, ours: Ours, killAt: () => number): Promise<Ended> {
  let pids = await remaining(clock, ours);
  const found = pids.length;
  const told = new Set<number>();
  while (pids.length > 0 && clock.elapsed() < killAt()) {
    for (const pid of pids) {
      // Once: a program that hears it twice may give up what it is about to finish. A stopped one hears it when it goes on.
      if (told.has(pid)) continue;
      told.add(pid);
      signal(pid, "SIGTERM");
      signal(pid, "SIGCONT");
    }
    await sleep(clock, POLL_MS);
    pids = await remaining(clock, ours);
  }
  return { found, left: pids.length === 0 ? [] : await killProcesses(clock, ours, pids) };
}

/**
 * All are stopped first, until none is new: those that begin others as fast as they are killed begin none while they are
 * stopped, and keep the places (RLIMIT_NPROC) that others of them would take.
 */
async function killProcesses(clock: Clock, ours: Ours, first: readonly number[]): Promise<number[]> {
  const started = clock.elapsed();
  let pids = [...first];
  while (pids.length > 0 && clock.elapsed() - started < UNKILLABLE_MS) {
    const stopped = new Set<number>();
    for (let isNew = true; isNew && clock.elapsed() - started < UNKILLABLE_MS; ) {
      isNew = false;
      for (const pid of pids) {
        if (stopped.has(pid)) continue;
        stopped.add(pid);
        if (signal(pid, "SIGSTOP")) isNew = true;
      }
      if (isNew) pids = await look(clock, ours);
    }
    for (const pid of new Set([...stopped, ...pids])) signal(pid, "SIGKILL");
    pids = await remaining(clock, ours);
  }
  return pids;
}
