/**
 * Asks a thread for the checkpoints that keep a database's write-ahead log short: one at a time, whenever the log has
 * grown. The caller provides the thread, which has a connection of its own. The thread answers "checkpoint" with a
 * message when it has made one, and ends at "end". The answer "finish" means that the log file is long and has only a
 * short rest, which the writer must move.
 */
import { statSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import type { Logger } from "./log.ts";
import { every } from "./runtime.ts";
import { systemClock } from "./system-clock.ts";

interface CheckpointOptions {
  readonly worker: Worker;
  /** The log lies beside it, with "-wal" at the end of its name. */
  readonly databasePath: string;
  /** Milliseconds between two looks at the log. */
  readonly lookMs: number;
  /** Bytes. A shorter log is left alone. */
  readonly logBytes: number;
  /** Moves the frames that the thread has left. Must not throw. */
  readonly finish?: () => void;
  readonly log: Logger;
}

export interface Checkpoints {
  /** Ends the thread. Resolves when it has ended. */
  close(): Promise<void>;
}

function logSize(databasePath: string): number {
  try {
    return statSync(`${databasePath}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    // The disk is gone. Commits will report it.
    return 0;
  }
}

export function startCheckpoints(options: CheckpointOptions): Checkpoints {
  const { worker, databasePath, lookMs, logBytes, finish, log } = options;
  let isRunning = false;
  worker.unref();
  worker.on("message", (answer: unknown) => {
    systemClock.step("checkpoint: made");
    isRunning = false;
    if (answer === "finish") finish?.();
  });
  worker.on("error", (error) => log.error({ err: error }, "checkpoints have ended; the write-ahead log grows"));
  const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));

  function look(): void {
    if (isRunning || logSize(databasePath) < logBytes) return;
    isRunning = true;
    worker.postMessage("checkpoint");
    systemClock.step("checkpoint: asked for");
  }

  const timer = every(systemClock, lookMs, look);
  return {
    async close() {
      timer.cancel();
      worker.ref();
      worker.postMessage("end");
      await exited;
    },
  };
}
