/**
 * A thread that moves what the write-ahead log holds into the database file, on a connection of its
 * own: checkpoints sync the disk, and the thread that answers programs must not wait for that. The
 * message "checkpoint" makes one; it is answered with "done".
 */
import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { z } from "zod";

/** While commits go on, each round leaves only what came during it. */
const ROUNDS = 5;

const { path } = z.object({ path: z.string() }).parse(workerData);
const state = z.array(z.object({ busy: z.number(), log: z.number(), checkpointed: z.number() }));
const database = new Database(path, { fileMustExist: true });

parentPort?.on("message", (message: unknown) => {
  if (message !== "checkpoint") {
    database.close();
    parentPort?.close();
    return;
  }
  try {
    checkpoint();
  } catch (error) {
    // A disk that is full, say: the log keeps what it has, and the next look asks again.
    if (!(error instanceof Database.SqliteError)) throw error;
  }
  parentPort?.postMessage("done");
});

function checkpoint(): void {
  for (let round = 0; round < ROUNDS; round += 1) {
    const [result] = state.parse(database.pragma("wal_checkpoint(PASSIVE)"));
    if (result === undefined || result.busy !== 0 || result.log === result.checkpointed) break;
  }
}
