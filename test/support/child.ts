/** Child processes of tests: run to their end with a timer, or kept and ended by their pid. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { hasCode } from "../../src/lib/system-error.ts";

export interface Finished {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly input?: string;
  /** Then it and all it has begun get SIGKILL. Default 60,000. */
  readonly timeoutMs?: number;
}

/** Resolves when the process has ended and its output is read; never rejects for what it did. */
export function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const { timeoutMs = 60_000, input, ...rest } = options;
  // A process group of its own: what it has begun would hold its output open when it alone is killed.
  const child = spawn(program, args, { ...rest, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const timer = setTimeout(() => killGroup(child), timeoutMs);
  return finished(child).finally(() => clearTimeout(timer));
}

/** The group is there as long as one of it is, and until then its number is given to no other. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}

/** Pids of the processes it has begun and that are still its own; none when it has ended. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ESRCH")) return [];
    throw error;
  }
}

export function finished(child: ChildProcess): Promise<Finished> {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, ...output }));
  });
}

/** Like spawn, with the first line it prints on standard output; undefined when it ends without one. */
export async function spawnUntilLine(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<{ child: ChildProcess; line: string | undefined; ended: Promise<Finished> }> {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const ended = finished(child);
  let seen = "";
  const line = await new Promise<string | undefined>((resolve) => {
    child.stdout?.on("data", (text: string) => {
      seen += text;
      const end = seen.indexOf("\n");
      if (end >= 0) resolve(seen.slice(0, end));
    });
    ended.then(
      () => resolve(undefined),
      () => resolve(undefined),
    );
  });
  return { child, line, ended };
}

/** Asks every 20 ms. Rejects with `what` when it is not so within `limitMs`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 30_000,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
