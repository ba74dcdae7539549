/** The daemon's log: JSON lines in daemon.log of the state dir, warnings on standard error as well in the foreground. */
import { renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Logger as PinoLogger, pino } from "pino";

const ROTATE_BYTES = 10 * 1024 ** 2;
const FILE = "daemon.log";

/** Lines are written at once: a crash loses none. A file over 10 MiB becomes daemon.log.1 first. */
export function openLog(stateDir: string, options: { level: string; foreground: boolean }): PinoLogger {
  const path = join(stateDir, FILE);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > ROTATE_BYTES) renameSync(path, `${path}.1`);
  const file = pino.destination({ dest: path, sync: true, mode: 0o600 });
  // A full disk must not end the daemon.
  file.on("error", () => {});
  const streams: { level: string; stream: { write(line: string): void } }[] = [{ level: options.level, stream: file }];
  if (options.foreground) streams.push({ level: "warn", stream: { write: showOnStandardError } });
  return pino({ level: options.level, base: { pid: process.pid } }, pino.multistream(streams as never));
}

function showOnStandardError(line: string): void {
  const { msg, err } = JSON.parse(line) as { msg?: string; err?: { message?: string } };
  const cause = err?.message === undefined ? "" : `: ${err.message}`;
  process.stderr.write(`wsfs: ${msg ?? ""}${cause}\n`.replace(/\s*\n(?=.)/g, " "));
}
