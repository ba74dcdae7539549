/**
 * A thread that moves what the write-ahead log holds into the database file, on a connection of its own: checkpoints
 * sync the disk, and the thread that answers programs must not wait for that. The message "checkpoint" makes one. The
 * answer is "done" or "finish".
 *
 * The log begins anew with a commit before which all of it was moved. While commits go on there is no such commit:
 * something comes during each round, and the log of a program that makes a hundred thousand files would grow to
 * gigabytes. So the writer itself makes the last round of a long log. That round is short, and nothing comes during it.
 */
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { openSqlite, SqliteError } from "../lib/sqlite/index.ts";
import { systemClock } from "../lib/system-clock.ts";
import { isForWriter, isLong } from "./last-round.ts";

/** Rounds for a long log. Each leaves what came during it, which is less each time. */
const ROUNDS = 5;
/** Bytes in the log before each page. */
const FRAME_HEADER = 24;

const { path } = z.object({ path: z.string() }).parse(workerData);
/** In frames. What came during the round is not counted. */
const state = z.array(z.object({ busy: z.number(), log: z.number(), checkpointed: z.number() }));
const database = openSqlite(path, { fileMustExist: true });
const frameBytes = FRAME_HEADER + z.number().parse(database.pragma("page_size", { simple: true }));

parentPort?.on("message", (message: unknown) => {
  if (message !== "checkpoint") {
    database.close();
    parentPort?.close();
    return;
  }
  let isLeft = false;
  try {
    isLeft = checkpoint();
  } catch (error) {
    // For example a full disk: the log keeps what it has, and the next look asks again.
    if (!(error instanceof SqliteError)) throw error;
  }
  parentPort?.postMessage(isLeft ? "finish" : "done");
});

/** Whether the last round is left to the writer. */
function checkpoint(): boolean {
  for (let round = 1, before = 0; round <= ROUNDS; round += 1) {
    const begun = systemClock.elapsed();
    const [result] = state.parse(database.pragma("wal_checkpoint(PASSIVE)"));
    // Somebody reads an older state, or makes a checkpoint too.
    if (result === undefined || result.busy !== 0 || result.checkpointed < result.log) return false;
    const logBytes = result.log * frameBytes;
    if (!isLong(logBytes)) return false;
    const tookMs = systemClock.elapsed() - begun;
    if (round > 1 && isForWriter({ logBytes, leftBytes: logBytes - before, tookMs })) return true;
    before = logBytes;
  }
  return false;
}
