/**
 * A thread that makes one copy of the database while other threads use it, checks the copy, and ends. If no copy is
 * asked for, it checks the database itself. Its one message (copy-reply.ts) names the damage, or the reason why copying
 * or checking failed. The damage of the copy is that of the database.
 */
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { openSqlite } from "../lib/sqlite/index.ts";
import type { CopyReply } from "./copy-reply.ts";
import { damageIn, finishCopy, isDamage } from "./damage.ts";

/** The copy is made in one step. A copy in several steps would begin anew after each commit in between. */
const ALL_PAGES = 2 ** 30;

const { from, to } = z.object({ from: z.string(), to: z.string().optional() }).parse(workerData);
const reply = (message: CopyReply) => parentPort?.postMessage(message);
const failed = (error: unknown) => {
  const text = error instanceof Error ? error.message : String(error);
  reply(isDamage(error) ? { damage: text } : { failed: text });
};

const replyOf = (damage: string | undefined) => reply(damage === undefined ? { made: true } : { damage });

try {
  const database = openSqlite(from, { fileMustExist: true, readonly: true });
  if (to === undefined) {
    replyOf(damageIn(database));
    database.close();
  } else {
    database
      .backup(to, { progress: () => ALL_PAGES })
      .then(() => replyOf(finishCopy(to)))
      .catch(failed)
      .finally(() => database.close());
  }
} catch (error) {
  failed(error);
}
