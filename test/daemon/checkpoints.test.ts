/** The write-ahead log of a database that is written to without a pause: it stays short. Needs dist/. */
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate, setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { startCheckpoints } from "../../src/lib/checkpoints.ts";
import { minus } from "../../src/lib/clocks.ts";
import { SILENT } from "../../src/lib/log.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { checkpoint, openDatabase } from "../../src/metadata/database.ts";
import { isForWriter } from "../../src/metadata/last-round.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const MIB = 1024 * 1024;
const WORKER = fileURLToPath(new URL("../../dist/metadata/checkpoint-worker.js", import.meta.url));
const ROWS = 16;
const WRITTEN = 300 * MIB;
/** Several times what programs make of it; without a limit the disk would be what is tested. */
const BYTES_PER_MS = MIB / 6;

test("its last round is the writer's, who makes no other", async () => {
  const databasePath = join(await temporaryFolder(), "metadata.db");
  const database = openDatabase(databasePath);
  database.exec("CREATE TABLE filler (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT");
  const write = database.prepare("INSERT OR REPLACE INTO filler (id, bytes) VALUES (?, ?)");
  let finished = 0;
  const checkpoints = startCheckpoints({
    worker: new Worker(WORKER, { workerData: { path: databasePath } }),
    databasePath,
    lookMs: 10,
    logBytes: 4 * MIB,
    finish() {
      finished += 1;
      checkpoint(database);
    },
    log: SILENT,
  });
  const bytes = Buffer.alloc(32 * 1024, 1);
  let longest = 0;
  const begun = systemClock.elapsed();
  for (let written = 0, id = 0; written < WRITTEN; written += bytes.length, id += 1) {
    write.run(id % ROWS, bytes);
    longest = Math.max(longest, statSync(`${databasePath}-wal`).size);
    await setImmediate();
    while (written > minus(systemClock.elapsed(), begun) * BYTES_PER_MS) await setTimeout(1);
  }
  await checkpoints.close();
  expect(database.prepare("SELECT count(*) FROM filler").pluck().get()).toBe(ROWS);
  database.close();
  expect(existsSync(`${databasePath}-wal`)).toBe(false);
  expect(finished).toBeGreaterThan(0);
  // A disk that is slow to sync may have it longer, as the next test says.
  expect(longest).toBeLessThan(WRITTEN / 2);
});

test.each([
  [{ logBytes: 31 * MIB, leftBytes: 0, tookMs: 0 }, false],
  [{ logBytes: 32 * MIB, leftBytes: 0, tookMs: 1 }, true],
  [{ logBytes: 32 * MIB, leftBytes: 3 * MIB, tookMs: 1 }, false],
  [{ logBytes: 100 * MIB, leftBytes: MIB, tookMs: 50 }, true],
  [{ logBytes: 100 * MIB, leftBytes: MIB, tookMs: 51 }, false],
])("of %o the last round is the writer's: %s", (round, expected) => {
  expect(isForWriter(round)).toBe(expected);
});

/** Fails as one whose database is closed, should it be asked then. */
const ENDS = `const { parentPort } = require("node:worker_threads");
  let hasEnded = false;
  parentPort.on("message", (message) => {
    if (hasEnded) throw new Error("asked after its end");
    if (message === "end") hasEnded = true;
    if (message === "end") setTimeout(() => parentPort.close(), 50);
  });`;

test("after its end none is asked for, also where the time of a look has come", async () => {
  const databasePath = join(await temporaryFolder(), "metadata.db");
  writeFileSync(`${databasePath}-wal`, "long");
  const failures: unknown[] = [];
  const worker = new Worker(ENDS, { eval: true });
  const log = { ...SILENT, error: (fields: object) => void failures.push(fields) };
  const checkpoints = startCheckpoints({ worker, databasePath, lookMs: 1, logBytes: 1, log });
  await new Promise<void>((resolve) => {
    globalThis.setTimeout(() => resolve(checkpoints.close()), 1);
    const begun = systemClock.elapsed();
    while (minus(systemClock.elapsed(), begun) < 5);
  });
  expect(failures).toEqual([]);
});
