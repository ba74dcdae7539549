/**
 * Opens the database of a state folder. Repairs the folder when the database is damaged or missing: the damaged
 * database goes to quarantine as it is, and the newest good copy takes its place, or an empty database. The rows then
 * say that they are older than the files; the engine makes up for that before it serves (engine/start/restore-rows.ts).
 *
 * The process may die anywhere in a repair. A note is synced before the first step and removed after the last: while
 * the note is there, the next start begins the repair anew with the files it finds.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Layout } from "../content/layout.ts";
import type { Reserve } from "../content/reserve.ts";
import { OutdatedError, StartError } from "../engine/api/index.ts";
import type { Clock } from "../lib/runtime.ts";
import { hasCode } from "../lib/system-error.ts";
import { toMilliseconds } from "../lib/time.ts";
import { damageIn, isDamage } from "../metadata/damage.ts";
import { type Connection, isDiskFailure, isInUse, LaterDatabase, openDatabase } from "../metadata/database.ts";
import { createSettings } from "../metadata/settings.ts";
import { type CopyNeeds, inThread, isGoodCopy, listCopies } from "./database-backups.ts";

const NOTE = "metadata.suspect";
/** Begins the note of a repair. */
const REPAIR = "repair: ";
/** Begins the note of a repair after the machine went down. */
const REPAIR_AFTER_POWER_LOSS = "repair after power loss: ";
const UNKNOWN_BOOT = "unknown";
/** A database of at most this size is checked in full at every start, which takes less than a moment. */
const SMALL = 16 * 1024 * 1024;

interface OpenNeeds extends CopyNeeds {
  readonly paths: Layout;
  readonly reserve: Pick<Reserve, "giveUpNow">;
  /** The id of this boot of the machine. */
  readonly boot: string;
  /** When this boot began, milliseconds since 1970. */
  readonly bootedAt: number;
  readonly now: Clock["wallClock"];
  /** See openDatabase. */
  readonly onMigrated?: (database: Connection) => void;
  /** Called right after each step of a repair, for tests that die there. */
  readonly onStep?: (what: string) => void;
}

/** `repaired`: the database was damaged. The text is one line: the damage, and what took the place of the rows. */
interface Opened {
  readonly connection: Connection;
  readonly repaired?: string;
}

export async function openMetadata(needs: OpenNeeds): Promise<Opened> {
  const note = await readNote(needs);
  // Must be asked before the database is opened. Opening may write to it: closing then moves its log into it.
  const wentDown = (await lastWritten(needs)) < needs.bootedAt;
  if (note?.startsWith(REPAIR_AFTER_POWER_LOSS)) return repair(needs, note.slice(REPAIR_AFTER_POWER_LOSS.length), true);
  if (note?.startsWith(REPAIR)) return repair(needs, note.slice(REPAIR.length), wentDown);
  if ((await sizeOf(needs, needs.database)) === undefined) {
    if (!(await wasUsed(needs))) return { connection: open(needs) };
    return repair(needs, "the database was not there", wentDown);
  }
  const found = await openChecked(needs, note);
  if (typeof found === "string") return repair(needs, `the database was damaged: ${found}`, wentDown);
  if (note !== undefined) await removeNote(needs);
  return { connection: found };
}

/**
 * Leaves a note: the next start then checks the database in full. It is written synchronously, because the process may
 * be about to end. A failure is only logged.
 */
export function noteDamage(needs: Pick<CopyNeeds, "folder" | "log">, damage: string): void {
  try {
    writeFileSync(join(needs.folder, NOTE), damage, { mode: 0o600, flush: true });
  } catch (error) {
    needs.log.error({ err: error }, "the note about the damaged database cannot be written");
  }
}

/**
 * Returns the connection, or the fault in words. The database is checked in full when it is small or when there is a
 * reason.
 */
async function openChecked(needs: OpenNeeds, note: string | undefined): Promise<Connection | string> {
  const size = (await sizeOf(needs, needs.database)) ?? 0;
  // A database without a page was never used, unless its log has all pages.
  if (size === 0 && (await sizeOf(needs, `${needs.database}-wal`)) === undefined && (await wasUsed(needs)))
    return "the file is empty";
  let connection: Connection;
  try {
    connection = open(needs);
  } catch (error) {
    if (isDamage(error)) return (error as Error).message;
    throw error;
  }
  try {
    const settings = createSettings(connection);
    const boot = settings.get("boot");
    const wentDown = boot !== undefined && boot !== needs.boot;
    const damage = note !== undefined || wentDown || size <= SMALL ? await look(needs, connection) : undefined;
    if (damage === undefined) return connection;
    connection.close();
    return damage;
  } catch (error) {
    connection.close();
    if (isDamage(error)) return (error as Error).message;
    throw error;
  }
}

/** Checks a large database in a thread: the check takes longer than a supervisor waits for a heartbeat. */
async function look(needs: OpenNeeds, connection: Connection): Promise<string | undefined> {
  if (((await sizeOf(needs, needs.database)) ?? 0) <= SMALL) return damageIn(connection);
  const reply = await inThread({ from: needs.database });
  if ("failed" in reply) return damageIn(connection);
  return "damage" in reply ? reply.damage : undefined;
}

/** When the disk is full, gives up the reserve and begins again. A repair can begin again after any step. */
async function repair(needs: OpenNeeds, why: string, wentDown: boolean): Promise<Opened> {
  try {
    return await repairOnce(needs, why, wentDown);
  } catch (error) {
    const isFull = hasCode(error, "ENOSPC", "EDQUOT") || isDiskFailure(error);
    if (!isFull || !needs.reserve.giveUpNow()) throw error;
    return repairOnce(needs, why, wentDown);
  }
}

/**
 * `wentDown`: the machine went down while the mount was there. The note says so too, because the files that a repair
 * writes no longer show it.
 */
async function repairOnce(needs: OpenNeeds, why: string, wentDown: boolean): Promise<Opened> {
  const { files, folder, database, log, onStep, now } = needs;
  log.error({ why }, "the database is repaired");
  const file = await files.open(join(folder, NOTE), "w+");
  try {
    const bytes = Buffer.from(`${wentDown ? REPAIR_AFTER_POWER_LOSS : REPAIR}${why}`);
    await file.truncate(0);
    await file.write(bytes, 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await files.syncFolder(folder);
  onStep?.("noted");

  const time = new Date(now()).toISOString().slice(0, 19).replaceAll(":", ".");
  for (const suffix of ["-wal", "-shm", "-journal", ""]) {
    if ((await sizeOf(needs, `${database}${suffix}`)) === undefined) continue;
    const target = await needs.paths.quarantine(`${database}${suffix}`, `metadata ${time}.db${suffix}`);
    log.error({ path: target }, "a file of the damaged database was moved to quarantine");
    onStep?.("set aside");
  }
  const copied = await putCopy(needs);
  const connection = copied ?? open(needs);
  const said = `${why}; ${copied === undefined ? "there was no good copy of it, everything is asked of the gateway anew" : "a copy of it was put in its place"}`;
  try {
    onStep?.("in place");
    const settings = createSettings(connection);
    settings.set("restored", JSON.stringify({ why: said }));
    settings.set("boot", wentDown ? UNKNOWN_BOOT : needs.boot);
    connection.pragma("wal_checkpoint(TRUNCATE)");
  } catch (error) {
    connection.close();
    throw error;
  }
  onStep?.("setting written");
  await removeNote(needs);
  return { connection, repaired: said };
}

/**
 * When this mount last wrote, in milliseconds since 1970. The files' times tell it, because damaged rows cannot be
 * trusted. If nothing was written since the boot, the machine may have gone down while the mount was there, and
 * unsynced bytes may be lost.
 */
async function lastWritten({ files, database, folder, paths }: OpenNeeds): Promise<number> {
  let last = Number.NEGATIVE_INFINITY;
  for (const path of [database, `${database}-wal`, paths.dirtyLog, join(folder, NOTE)]) {
    try {
      last = Math.max(last, toMilliseconds((await files.stat(path)).mtime));
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
    }
  }
  return last;
}

/** When the disk has no room for the files of the database, gives up the reserve. Throws a StartError. */
function open(needs: Pick<OpenNeeds, "database" | "folder" | "reserve" | "onMigrated">): Connection {
  const { database, folder, reserve, onMigrated } = needs;
  try {
    return openDatabase(database, onMigrated);
  } catch (error) {
    if (error instanceof LaterDatabase) throw new OutdatedError(error.message, 1, { cause: error });
    if (isInUse(error))
      throw new StartError(`${database} is open in another program; close it there`, 1, { cause: error });
    if (!isDiskFailure(error)) throw error;
    if (reserve.giveUpNow()) return openDatabase(database, onMigrated);
    const why = `the state dir ${folder} cannot be used: ${(error as Error).message}`;
    throw new StartError(why, 1, { cause: error });
  }
}

/** Puts the newest good copy in place and opens it. Damaged copies go to quarantine too. */
async function putCopy(needs: OpenNeeds): Promise<Connection | undefined> {
  const { files, folder, database, log, paths, onStep } = needs;
  for (const copy of await listCopies(needs)) {
    if (await isGoodCopy(needs, copy)) {
      const next = `${database}.new`;
      await files.remove(next);
      await files.clone(copy, next);
      const file = await files.open(next, "r+");
      await file.sync().finally(() => file.close());
      await files.rename(next, database);
      await files.syncFolder(folder);
      onStep?.("copy in place");
      const connection = open(needs);
      const damage = await look(needs, connection);
      if (damage === undefined) return connection;
      connection.close();
      for (const suffix of ["-wal", "-shm", ""]) await files.remove(`${database}${suffix}`);
      log.error({ copy, damage }, "a copy of the database is damaged");
    } else {
      log.error({ copy }, "a copy of the database has other bytes than it was made with");
    }
    await paths.quarantine(copy, "metadata.copy");
  }
  return undefined;
}

/** True if the folder has traces of a mount, so that there must have been a database. */
async function wasUsed(needs: OpenNeeds): Promise<boolean> {
  if ((await sizeOf(needs, `${needs.database}-wal`)) !== undefined) return true;
  if ((await sizeOf(needs, needs.paths.dirtyLog)) !== undefined) return true;
  if ((await listCopies(needs)).length > 0) return true;
  for await (const _ of needs.paths.cacheFiles()) return true;
  return false;
}

async function readNote(needs: OpenNeeds): Promise<string | undefined> {
  const path = join(needs.folder, NOTE);
  const size = await sizeOf(needs, path);
  if (size === undefined) return undefined;
  const file = await needs.files.open(path, "r");
  try {
    const buffer = Buffer.alloc(size);
    return buffer.toString("utf8", 0, await file.read(buffer, 0, size, 0));
  } finally {
    await file.close();
  }
}

async function removeNote({ files, folder }: OpenNeeds): Promise<void> {
  await files.remove(join(folder, NOTE));
  await files.syncFolder(folder);
}

async function sizeOf({ files }: OpenNeeds, path: string): Promise<number | undefined> {
  try {
    return (await files.stat(path)).size;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
