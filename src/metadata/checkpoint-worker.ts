/**
 * A thread that makes checkpoints: it moves the content of the write-ahead log into the database file, on a connection
 * of its own. A checkpoint syncs the disk, and the thread that answers programs must not wait for that. The message
 * "checkpoint" asks for one. The answer is "done" or "finish"; any other message ends the thread.
 *
 * The log begins anew only with a commit that finds all of the log moved. While commits go on, each round ends with a
 * few new frames, so there is no such commit. A program that makes a hundred thousand files would let the log grow to
 * gigabytes. So the writer itself makes the last round of a long log ("finish"): that round is short, and no frame is
 * added during it.
 */
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { minus } from "../lib/clocks.ts";
import { openSqlite, SqliteError } from "../lib/sqlite/index.ts";
import { systemClock } from "../lib/system-clock.ts";
import { isForWriter, isLong } from "./last-round.ts";

/** Rounds for a long log. Each leaves the frames that were added during it, which are fewer each time. */
const ROUNDS = 5;
/** Bytes in the log before each page. */
const FRAME_HEADER = 24;

const { path } = z.object({ path: z.string() }).parse(workerData);
/** The result of a round, in frames. Frames that were added during the round are not counted. */
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
    // For example a full disk. The log keeps its content, and the next request tries again.
    if (!(error instanceof SqliteError)) throw error;
  }
  parentPort?.postMessage(isLeft ? "finish" : "done");
});

/** True if the last round is left to the writer. */
function checkpoint(): boolean {
  for (let round = 1, before = 0; round <= ROUNDS; round += 1) {
    const begun = systemClock.elapsed();
    const [result] = state.parse(database.pragma("wal_checkpoint(PASSIVE)"));
    // Another connection reads an older state, or makes a checkpoint too.
    if (result === undefined || result.busy !== 0 || result.checkpointed < result.log) return false;
    const logBytes = result.log * frameBytes;
    if (!isLong(logBytes)) return false;
    const tookMs = minus(systemClock.elapsed(), begun);
    if (round > 1 && isForWriter({ logBytes, leftBytes: logBytes - before, tookMs })) return true;
    before = logBytes;
  }
  return false;
}
