/** The daemon as a process: its environment, its signals, and what happens after an uncaught error. */
import { loadCommitLog } from "../metadata/commit-log.ts";
import { CHECK_ARGUMENT } from "./hand-over.ts";
import { createDaemonLog } from "./log-file.ts";
import { readControlDescriptor, readNoResend, readReload, readRestarts, readSettings } from "./settings.ts";
import { runDaemon, type StartEngine } from "./start.ts";

/**
 * EX_SOFTWARE. The supervisor sees that the daemon ended without being asked to, and replaces it or detaches the mount.
 */
const CRASH = 70;

/** Ends the process when the daemon's life is over. */
export async function runDaemonProcess(startEngine: StartEngine): Promise<never> {
  const settings = readSettings(process.env);
  loadCommitLog();
  // All modules are loaded by now, and the settings are readable.
  if (process.argv.includes(CHECK_ARGUMENT)) process.exit(0);
  // Files that a library creates in the state dir must belong to the owner alone.
  const umask = process.umask(0o077);
  const log = createDaemonLog({ level: settings.logLevel, foreground: settings.foreground });
  const crash = (error: unknown) => {
    log.error({ err: error }, "the daemon crashed");
    // In the background, standard error is background.log. The daemon's own log may be the very part that failed.
    if (!settings.foreground) console.error(error);
    process.exit(CRASH);
  };
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
  process.on("SIGHUP", () => {});
  const exitCode = await runDaemon({
    settings,
    controlDescriptor: readControlDescriptor(process.env),
    startEngine,
    restarts: readRestarts(process.env),
    reload: readReload(process.env),
    noResend: readNoResend(process.env),
    log,
    umask,
    signaled: stop.signal,
  });
  process.exit(exitCode);
}
