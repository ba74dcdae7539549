/**
 * Asks a thread for the checkpoints that keep a database's write-ahead log short: one at a time, whenever the log has
 * grown. The thread has a connection of its own. It starts with the first long log: a program that writes little needs
 * none, and a thread takes a tenth of a start's processor time. The thread answers "checkpoint" with a message when it
 * has made one, and ends at "end". The answer "finish" means that the log file is long and has only a short rest, which
 * the writer must move.
 */
import { statSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import type { Logger } from "./log.ts";
import { every } from "./runtime.ts";
import { systemClock } from "./system-clock.ts";

export interface CheckpointOptions {
  readonly startThread: () => Worker;
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
  /** Ends the thread, if there is one. Resolves when it has ended. */
  close(): Promise<void>;
}

interface Thread {
  readonly worker: Worker;
  readonly ended: Promise<void>;
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
  const { startThread, databasePath, lookMs, logBytes, finish, log } = options;
  let thread: Thread | undefined;
  let isRunning = false;
  let hasFailed = false;

  /** The next look starts another thread. Only the first failure of several is logged. */
  function failed(error: unknown): void {
    if (!hasFailed) log.error({ err: error }, "a checkpoint has failed; the write-ahead log grows");
    hasFailed = true;
  }

  function start(): Thread {
    const worker = startThread();
    worker.unref();
    worker.on("message", (answer: unknown) => {
      systemClock.step("checkpoint: made");
      isRunning = false;
      hasFailed = false;
      if (answer === "finish") finish?.();
    });
    worker.on("error", failed);
    const ended = new Promise<void>((resolve) => {
      worker.once("exit", () => {
        thread = undefined;
        isRunning = false;
        resolve();
      });
    });
    return { worker, ended };
  }

  function look(): void {
    if (isRunning || logSize(databasePath) < logBytes) return;
    try {
      thread ??= start();
    } catch (error) {
      // For example no free file descriptor.
      failed(error);
      return;
    }
    isRunning = true;
    thread.worker.postMessage("checkpoint");
    systemClock.step("checkpoint: asked for");
  }

  const timer = every(systemClock, lookMs, look);
  return {
    async close() {
      timer.cancel();
      if (thread === undefined) return;
      thread.worker.ref();
      thread.worker.postMessage("end");
      await thread.ended;
    },
  };
}
