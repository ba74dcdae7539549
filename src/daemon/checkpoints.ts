/** Keeps the write-ahead log of the rows short, by a thread; see metadata/checkpoint-worker.ts. */
import { stat } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import type { Logger } from "../lib/log.ts";

const LOOK_MS = 1_000;
/** A log shorter than this is left alone. */
const LOG_BYTES = 4 * 1024 * 1024;

export interface Checkpoints {
  /** Resolves when no checkpoint runs and the thread has ended. */
  close(): Promise<void>;
}

export function startCheckpoints(databasePath: string, log: Logger): Checkpoints {
  const worker = new Worker(new URL("../metadata/checkpoint-worker.js", import.meta.url), {
    workerData: { path: databasePath },
  });
  let isRunning = false;
  worker.unref();
  worker.on("message", () => {
    isRunning = false;
  });
  worker.on("error", (error) => log.error({ err: error }, "checkpoints have ended; the log of the rows grows"));
  const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));

  async function look(): Promise<void> {
    if (isRunning) return;
    const size = await stat(`${databasePath}-wal`).then(
      (found) => found.size,
      () => 0,
    );
    if (size < LOG_BYTES || isRunning) return;
    isRunning = true;
    worker.postMessage("checkpoint");
  }

  const timer = setInterval(() => void look(), LOOK_MS);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      worker.ref();
      worker.postMessage("end");
      await exited;
    },
  };
}
