/**
 * The program that runs cases, kept in a child process and killed when a case does not come back:
 * a system call stuck in a mount cannot be timed out from inside.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { OrdinaryUser } from "../../support/ordinary-user.ts";

const PROGRAM = fileURLToPath(new URL("../cases/run.ts", import.meta.url));
const TYPESCRIPT = fileURLToPath(new URL("../../../scripts/typescript.mjs", import.meta.url));

export type Outcome =
  | { readonly passed: true }
  | { readonly error: string }
  /** Cannot be shown here, and why. */
  | { readonly notHere: string };

/** How the error of a case begins that has not come to its own end. */
export const WAS_KILLED = /^(?:did not come back|it died)/;

export interface Worker {
  run(name: string, limitMs?: number): Promise<Outcome>;
  end(): void;
}

/** Works in `dir`, one case at a time; as `user`, if one is given. */
export function createWorker(dir: string, user?: OrdinaryUser): Worker {
  let child: ChildProcess | undefined;
  let said = "";
  let lines: AsyncIterator<string>;

  function start(): ChildProcess {
    // A process group of its own: what a case has started is killed with it.
    const args = ["--import", TYPESCRIPT, PROGRAM, dir];
    const [file, all] = user === undefined ? [process.execPath, args] : user.command("/", process.execPath, args);
    const started = spawn(file, all, {
      cwd: "/",
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    said = "";
    started.stdin?.on("error", () => {});
    started.on("error", (error) => {
      said += String(error);
    });
    started.stderr?.on("data", (text: Buffer) => {
      said += text.toString();
    });
    lines = createInterface({ input: started.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    child = started;
    return started;
  }

  function end(): void {
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // Ended just now.
      }
    }
    for (const stream of child?.stdio ?? []) stream?.destroy();
    child = undefined;
  }

  return {
    async run(name, limitMs = 60_000) {
      const running = child ?? start();
      running.stdin?.write(`${name}\n`);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<"late">((resolve) => {
        timer = setTimeout(() => resolve("late"), limitMs);
      });
      const line = await Promise.race([lines.next(), late]);
      clearTimeout(timer);
      if (line !== "late" && line.done !== true) return JSON.parse(line.value) as Outcome;
      end();
      return { error: line === "late" ? `did not come back within ${limitMs} ms; it was killed` : `it died: ${said}` };
    },
    end,
  };
}
