/**
 * The thread that makes the store's checkpoints (lib/checkpoints.ts): a checkpoint syncs the disk, and
 * the thread that answers must not wait for that. While commits go on the log never becomes empty;
 * what SQLite itself does about it (`wal_autocheckpoint`) is then rare and short.
 */
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";

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

export function startCheckpointWorker(databasePath: string): Worker {
  const driver = createRequire(import.meta.url).resolve("better-sqlite3");
  return new Worker(WORKER, { eval: true, workerData: { path: databasePath, driver } });
}
