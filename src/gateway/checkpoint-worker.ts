/**
 * The thread that makes the store's checkpoints (lib/checkpoints.ts). A checkpoint syncs the disk, and the thread that
 * answers requests must not wait for that. While commits go on, the log never becomes empty; SQLite's own measure
 * (`wal_autocheckpoint`) is then rare and short.
 */
import { Worker } from "node:worker_threads";

/** The built file, also when running from src/: plain Node runs no TypeScript in a thread. */
const THREAD = new URL("../../dist/gateway/checkpoint-thread.js", import.meta.url);

export function startCheckpointWorker(databasePath: string): Worker {
  return new Worker(THREAD, { workerData: { path: databasePath } });
}
