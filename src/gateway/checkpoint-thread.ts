/** The thread of checkpoint-worker.ts: a separate program with its own connection. */
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { openSqlite } from "../lib/sqlite/index.ts";

const { path } = z.object({ path: z.string() }).parse(workerData);
const database = openSqlite(path, { fileMustExist: true });

parentPort?.on("message", (message: unknown) => {
  if (message === "end") {
    database.close();
    parentPort?.close();
    return;
  }
  database.pragma("wal_checkpoint(PASSIVE)");
  parentPort?.postMessage("done");
});
