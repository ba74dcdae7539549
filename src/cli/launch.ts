/**
 * Starts a supervisor with its daemon and waits until the mount is usable. It knows the command lines and the reports
 * of the two, and nothing of their work.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { makeRuntimeFolder } from "../daemon/runtime-folder.ts";
import { type DaemonSettings, RESTARTS_VARIABLE, SETTINGS_VARIABLE, settingsText } from "../daemon/settings.ts";
import { heartbeatLimitSeconds } from "../daemon/waiting.ts";
import { supervisorProgram } from "../lib/compiled.ts";
import { unmakeFolders } from "../lib/make-folders.ts";
import { childEnvironment } from "./environment.ts";
import { EXIT, Failure } from "./failure.ts";

interface LaunchOptions {
  readonly settings: DaemonSettings;
  /** The name shown as the device in the mount table. */
  readonly source: string;
  readonly mountOptions: readonly string[];
  /** The supervisor gets a process session of its own and keeps nothing of ours. */
  readonly background: boolean;
  /** Called with a note for the user before the mount is usable. */
  readonly onNote: (text: string) => void;
}

export interface Launched {
  readonly supervisor: ChildProcess;
  /**
   * Resolves with the daemon's process id when the mount is usable. Rejects with a Failure, and nothing is left then.
   */
  readonly ready: Promise<number>;
  /** The supervisor's exit code, when it has ended. */
  readonly ended: Promise<number>;
}

const STATUS_FD = 3;
/** Threads for file access. With fewer, the syncs of several uploads could block a program's read. */
const POOL_THREADS = "24";
/** The command line of a daemon of this release. */
export const DAEMON = [process.execPath, fileURLToPath(new URL("../daemon/main.js", import.meta.url))] as const;

export function launch(options: LaunchOptions): Launched {
  const { settings, source, mountOptions, background } = options;
  const text = settingsText(settings, DAEMON);
  if (text === undefined) throw new Failure("the profile is too long");
  const made = makeRuntimeFolder(settings.runtimeFolder);
  // The file for output that the daemon's log cannot hold: output before there is a log, and a crash of Node itself.
  const outputPath = join(settings.runtimeFolder, "background.log");
  const output = background ? openSync(outputPath, "a", 0o600) : undefined;
  const supervisor = spawn(
    supervisorProgram(),
    [
      ...["--mountpoint", settings.mountpoint, "--source", source, "--options", mountOptions.join(",")],
      ...(settings.readOnly ? ["--read-only"] : []),
      ...(settings.crashes > 0 ? ["--crashes", String(settings.crashes)] : []),
      ...["--silence", String(heartbeatLimitSeconds(settings.shortenWaits))],
      ...["--status-fd", String(STATUS_FD), "--", ...DAEMON],
    ],
    {
      // The caller's folder could otherwise not be unmounted.
      cwd: "/",
      env: childEnvironment({
        [SETTINGS_VARIABLE]: text,
        UV_THREADPOOL_SIZE: POOL_THREADS,
        [RESTARTS_VARIABLE]: "",
      }),
      detached: background,
      stdio: background ? ["ignore", output, output, "pipe"] : ["ignore", "inherit", "inherit", "pipe"],
    },
  );
  if (output !== undefined) closeSync(output);
  const ended = new Promise<number>((resolve, reject) => {
    supervisor.once("error", (cause) => reject(new Failure(`the supervisor cannot be started: ${cause.message}`)));
    supervisor.once("exit", (code) => resolve(code ?? EXIT.failure));
  });
  ended.catch(() => {});
  const statusPipe = supervisor.stdio[STATUS_FD] as Socket;
  const ready = readStatus(statusPipe, ended, options.onNote, background ? outputPath : undefined);
  ready.then(
    () => background && letGo(supervisor, statusPipe),
    (error) => error instanceof ReportedFailure && takeBack(made, outputPath),
  );
  return { supervisor, ready, ended };
}

/** The daemon has reported the reason: its other output adds nothing. */
class ReportedFailure extends Failure {}

/** Reads "note TEXT" lines, then "ready PID" or "failed CODE TEXT". If the supervisor dies, the pipe just ends. */
async function readStatus(
  pipe: Socket,
  ended: Promise<number>,
  onNote: (text: string) => void,
  output: string | undefined,
): Promise<number> {
  let failure: ReportedFailure | undefined;
  pipe.on("error", () => {});
  for await (const line of createInterface({ input: pipe })) {
    if (line.startsWith("note ")) onNote(line.slice("note ".length));
    const [, word, number, text] = /^(\w+) (\d+) ?(.*)$/.exec(line) ?? [];
    if (word === "ready") return Number(number);
    if (word === "failed") {
      // In the foreground the supervisor has printed it too.
      const shown = output === undefined;
      failure = new ReportedFailure(text || "the mount failed", Number(number) || EXIT.failure, { shown });
    }
  }
  const code = await ended;
  if (failure !== undefined) throw failure;
  const where = output === undefined ? "" : `; ${output} may say why`;
  throw new Failure(`the daemon ended before the mount was usable (exit code ${code})${where}`, code || EXIT.failure);
}

/** Removes a runtime folder that this command made, if no other process uses it yet. */
function takeBack(made: readonly string[], outputPath: string): void {
  if (made.length === 0) return;
  rmSync(outputPath, { force: true });
  unmakeFolders(made);
}

function letGo(supervisor: ChildProcess, pipe: Socket): void {
  pipe.destroy();
  supervisor.unref();
}
