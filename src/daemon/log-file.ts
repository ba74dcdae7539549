/**
 * The daemon's log: JSON lines in daemon.log of the state dir. In the foreground, warnings also go to standard error,
 * except those marked `told`, which the user hears of in another way.
 */
import { renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { multistream, pino } from "pino";
import type { Logger, LogLevel } from "../lib/log.ts";

const ROTATE_BYTES = 10 * 1024 ** 2;
const FILE = "daemon.log";
/** The limit for lines from before the state dir is known. There are few. */
const DELAYED_LINES = 1000;
/** The limit of output that waits for the reader of standard error. */
const WAITING_BYTES = 256 * 1024;

export interface DaemonLog extends Logger {
  /**
   * From now on lines go to the state dir, those from before included. A file over 10 MiB becomes daemon.log.1 first.
   */
  openFile(stateDir: string): void;
  /** From now on standard error gets nothing: a user who has ended the mount needs no warnings of its last work. */
  toFileOnly(): void;
}

export function createDaemonLog(options: { level: LogLevel; foreground: boolean }): DaemonLog {
  const { level, foreground } = options;
  let delayed: string[] | undefined = [];
  let write = (line: string): void => {
    if (delayed !== undefined && delayed.length < DELAYED_LINES) delayed.push(line);
  };
  const streams = multistream([{ level, stream: { write: (line: string) => write(line) } }]);
  let warn = foreground ? standardError() : undefined;
  streams.add({ level: "warn", stream: { write: (line: string) => warn?.(line) } });
  const log = pino({ level, base: { pid: process.pid } }, streams);
  return Object.assign(log, {
    openFile(stateDir: string) {
      const path = join(stateDir, FILE);
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > ROTATE_BYTES) renameSync(path, `${path}.1`);
      // Written synchronously, so that a crash loses no line.
      const file = pino.destination({ dest: path, sync: true, mode: 0o600 });
      // A full disk must not end the daemon.
      file.on("error", () => {});
      for (const line of delayed ?? []) file.write(line);
      delayed = undefined;
      write = (line) => file.write(line);
    },
    toFileOnly() {
      warn = undefined;
    },
  });
}

/** The reader may be gone or may not read: neither ends the daemon nor fills its memory. */
function standardError(): (line: string) => void {
  const output = process.stderr;
  let isLost = false;
  output.on("error", () => {
    isLost = true;
  });
  return (line) => {
    const text = wordsOf(line);
    if (text !== undefined && !isLost && output.writableLength <= WAITING_BYTES) output.write(`wsfs: ${text}\n`);
  };
}

/** The key `told` of a line (start.ts): the supervisor reports the error, so standard error would show it twice. */
function wordsOf(line: string): string | undefined {
  const { msg, err, error, told } = JSON.parse(line) as {
    msg?: string;
    err?: { message?: string };
    error?: unknown;
    told?: boolean;
  };
  if (told === true) return undefined;
  const why = err?.message ?? (typeof error === "string" ? error : undefined);
  const text = `${msg ?? ""}${why === undefined ? "" : `: ${why}`}`;
  return text.replace(/\s*\n\s*/g, " ");
}
