/**
 * Keeps the store's write-ahead log short, by a thread with a connection of its own: a checkpoint
 * syncs the disk, and the thread that answers must not wait for that. While commits go on the log
 * never becomes empty; what SQLite itself does about it (`wal_autocheckpoint`) is then rare and short.
 */
import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { Logger } from "../lib/log.ts";

const LOOK_MS = 500;
/** A log shorter than this is left alone. */
const LOG_BYTES = 8 * 1024 * 1024;

/** As text, so that it starts the same way from TypeScript sources and from the compiled files. */
const WORKER = `
"use strict";
const { parentPort, workerData } = require("node:worker_threads");
const Database = require(workerData.driver);
const database = new Database(workerData.path, { fileMustExist: true });
parentPort.on("message", (message) => {
  if (message === "end") {
    database.close();
    parentPort.close();
    return;
  }
  database.pragma("wal_checkpoint(PASSIVE)");
  parentPort.postMessage("done");
});
`;

export interface Checkpoints {
  /** Resolves when none runs and the thread has ended. */
  close(): Promise<void>;
}

export function startCheckpoints(databasePath: string, log: Logger): Checkpoints {
  const driver = createRequire(import.meta.url).resolve("better-sqlite3");
  const worker = new Worker(WORKER, { eval: true, workerData: { path: databasePath, driver } });
  let isRunning = false;
  worker.unref();
  worker.on("message", () => {
    isRunning = false;
  });
  worker.on("error", (error) => log.error({ err: error }, "checkpoints have ended; the log of the store grows"));
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
