/**
 * Good copies of the database. A thread makes them now and then while the mount serves; one more is made at its end. A
 * copy is checked and synced before it replaces the copy before it. Its name contains the hash of its bytes, so that a
 * damaged copy is never taken for a good one. This file knows files, not rows.
 */
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type ElapsedTime, minus } from "../lib/clocks.ts";
import type { Files } from "../lib/files.ts";
import type { Logger } from "../lib/log.ts";
import type { Clock } from "../lib/runtime.ts";
import { hasCode } from "../lib/system-error.ts";
import { type CopyReply, copyReply } from "../metadata/copy-reply.ts";
import { finishCopy } from "../metadata/damage.ts";
import type { Connection } from "../metadata/database.ts";

const NAME = /^metadata\.copy-([0-9a-f]{64})$/;
const LOOK_MS = 30_000;
/** The least time between two copies when MANY rows have changed. */
const BUSY_MS = 10 * 60_000;
const MANY = 1_000;
/** The least time between two copies when any row has changed. */
const CALM_MS = 60 * 60_000;
/** The pause between two copies is never shorter than this many times the duration of the last copy. */
const REST = 100;
/** At the end a person waits: a larger database is not copied then. */
const SMALL = 64 * 1024 * 1024;

interface GoodCopies {
  /** To be called before the database is closed. */
  stop(): Promise<void>;
  /** To be called after the database was closed. */
  atEnd(): Promise<void>;
}

export interface CopyNeeds {
  readonly files: Files;
  readonly folder: string;
  readonly database: string;
  readonly log: Logger;
}

export function startDatabaseBackups(
  needs: CopyNeeds & {
    readonly connection: Connection;
    readonly elapsed: Clock["elapsed"];
    /** True if this many bytes may be written now. */
    readonly hasRoom: (bytes: number) => boolean;
    readonly onDamage: (damage: string) => void;
  },
): GoodCopies {
  const { files, database, connection, log, elapsed, hasRoom, onDamage } = needs;
  const rowsChanged = connection.prepare("SELECT total_changes()").pluck();
  const changes = () => Number(rowsChanged.get());
  let copied = changes();
  let changedAtEnd = 0;
  let lastAt: ElapsedTime | undefined;
  let tookMs = 0;
  let running: Promise<void> | undefined;

  function isDue(): boolean {
    const changed = changes() - copied;
    if (changed === 0 || lastAt === undefined) return changed > 0;
    const since = minus(elapsed(), lastAt);
    if (since < tookMs * REST) return false;
    return since >= CALM_MS || (since >= BUSY_MS && changed >= MANY);
  }

  async function make(): Promise<void> {
    const { size } = await files.stat(database);
    if (!hasRoom(2 * size)) return;
    const begun = elapsed();
    const counted = changes();
    const path = await newCopy(needs);
    const reply = await inThread({ from: database, to: path });
    if ("damage" in reply) onDamage(reply.damage);
    else if ("failed" in reply) log.warn({ why: reply.failed }, "no copy of the database could be made");
    else {
      await keepCopy(needs, path);
      copied = counted;
    }
    lastAt = elapsed();
    tookMs = minus(lastAt, begun);
    if ("made" in reply) log.info({ size, tookMs: Math.round(tookMs) }, "a copy of the database was made");
    else await files.remove(path);
  }

  const timer = setInterval(() => {
    if (running !== undefined || !isDue()) return;
    running = make()
      .catch((error: unknown) => log.warn({ err: error }, "no copy of the database could be made"))
      .finally(() => {
        running = undefined;
      });
  }, LOOK_MS);
  timer.unref();

  return {
    async stop() {
      clearInterval(timer);
      await running;
      changedAtEnd = changes() - copied;
    },
    async atEnd() {
      if (changedAtEnd === 0) return;
      // A database with its log beside it was not closed.
      if (await sizeOf(files, `${database}-wal`)) return;
      const size = (await sizeOf(files, database)) ?? 0;
      if (size === 0 || size > SMALL || !hasRoom(2 * size)) return;
      const path = await newCopy(needs);
      await files.clone(database, path);
      const damage = finishCopy(path);
      if (damage === undefined) return keepCopy(needs, path);
      await files.remove(path);
      onDamage(damage);
    },
  };
}

/** The newest copy comes first. */
export async function listCopies({ files, folder }: CopyNeeds): Promise<string[]> {
  const found: { path: string; at: number }[] = [];
  for (const name of await files.list(folder)) {
    if (!NAME.test(name)) continue;
    const path = join(folder, name);
    const { mtime } = await files.stat(path);
    found.push({ path, at: mtime.seconds + mtime.nanoseconds / 1e9 });
  }
  return found.sort((a, b) => b.at - a.at).map(({ path }) => path);
}

/** True if the copy still has the bytes that it was made with. */
export async function isGoodCopy({ files }: CopyNeeds, path: string): Promise<boolean> {
  const wanted = NAME.exec(path.slice(path.lastIndexOf("/") + 1))?.[1];
  try {
    return (await files.hash(path)).hash === wanted;
  } catch (error) {
    // The disk cannot read the copy any more.
    if (hasCode(error, "EIO")) return false;
    throw error;
  }
}

async function newCopy({ files, folder }: CopyNeeds): Promise<string> {
  const path = join(folder, "metadata.copy.new");
  await files.remove(path);
  await files.remove(`${path}-journal`);
  return path;
}

/** Makes the new copy durable, then removes the copies before it. */
async function keepCopy(needs: CopyNeeds, path: string): Promise<void> {
  const { files, folder } = needs;
  const file = await files.open(path, "r+");
  await file.sync().finally(() => file.close());
  const target = join(folder, `metadata.copy-${(await files.hash(path)).hash}`);
  await files.rename(path, target);
  await files.syncFolder(folder);
  for (const other of await listCopies(needs)) if (other !== target) await files.remove(other);
}

async function sizeOf(files: Files, path: string): Promise<number | undefined> {
  try {
    return (await files.stat(path)).size;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Checks or copies a database in a thread, so that the JavaScript thread can serve meanwhile. */
export function inThread(what: { readonly from: string; readonly to?: string }): Promise<CopyReply> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL("../metadata/copy-worker.js", import.meta.url), { workerData: what });
    worker.once("message", (message: unknown) => resolve(copyReply.parse(message)));
    worker.once("error", (error: Error) => resolve({ failed: error.message }));
    worker.once("exit", () => resolve({ failed: "the thread ended" }));
  });
}
