/**
 * native/commit-log, below the SQLite of this process: what is committed is in the files at once, as an SQLite that
 * knows nothing of it reads them; by one write; and the database is this process's alone. Needs native/build.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { compiled } from "../../src/lib/compiled.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { type Connection, openDatabase } from "../../src/metadata/database.ts";
import { finished } from "../support/child.ts";
import { createChance, SEED } from "../support/seed.ts";
import { SQLITE, SQLITE_CHILD, TYPESCRIPT } from "../support/sqlite-child.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const KIB = 1024;

/** A line is one letter, again and again: its number, length and letter, and whatever does not belong into it. */
const LINES = `SELECT id || ' ' || length(text) || ' ' || substr(text, 1, 1) || ltrim(text, substr(text, 1, 1))
  FROM lines ORDER BY id`;
const letterOf = (count: number) => String.fromCharCode(97 + (count % 26));
const PUT = "INSERT OR REPLACE INTO lines (id, text) VALUES (?, ?)";
const linesOf = (database: Connection) => database.prepare<[], string>(LINES).pluck(true).all();
const asRead = (lines: ReadonlyMap<number, string>) =>
  [...lines].sort(([a], [b]) => a - b).map(([id, text]) => `${id} ${text.length} ${text[0]}`);

async function newDatabase(at?: string): Promise<{ path: string; database: Connection; log: string }> {
  const path = at ?? join(await temporaryFolder(), "test.db");
  const database = openDatabase(path);
  onTestFinished(() => void database.close());
  database.exec("CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
  return { path, database, log: `${path}-wal` };
}

/** Changes the lines from 1 on, all in one transaction. */
function write(database: Connection, lines: number, length: number, letter: string): void {
  const line = database.prepare(PUT);
  database.transaction(() => {
    for (let id = 1; id <= lines; id += 1) line.run(id, letter.repeat(length));
  })();
}

/** Reads a database, or a copy of its files but for the index (-shm), which the end of a system takes too. */
const PLAIN = `const { openSqlite } = await import(process.argv[1]);
  const { copyFileSync, rmSync } = await import("node:fs");
  const answer = (found) => console.log(JSON.stringify(found));
  const read = ({ path, copy }) => {
    if (copy) for (const end of ["", "-wal"]) copyFileSync(path + end, copy + end);
    const database = openSqlite(copy ?? path, { fileMustExist: true, timeout: 0 });
    try {
      if (copy) database.pragma("synchronous = OFF");
      const check = database.pragma("integrity_check", { simple: true });
      return { check, lines: database.prepare(${JSON.stringify(LINES)}).pluck().all() };
    } finally {
      database.close();
      if (copy) rmSync(copy);
    }
  };
  (await import("node:readline")).createInterface({ input: process.stdin }).on("line", (line) => {
    try { answer(read(JSON.parse(line))); } catch (error) { answer({ error: error.code ?? String(error) }); }
  });`;
type Plain = Awaited<ReturnType<typeof plainSqlite>>;

/** What an SQLite of a process of its own, as it comes, finds in a database, or in a copy that it makes. */
async function plainSqlite() {
  const copy = join(await temporaryFolder(), "copy.db");
  const child = spawn(process.execPath, [...SQLITE_CHILD, PLAIN, SQLITE], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill());
  child.stdin.on("error", () => {});
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (path: string, copy?: string): Promise<{ check?: string; lines?: string[]; error?: string }> => {
    child.stdin.write(`${JSON.stringify({ path, copy })}\n`);
    const { value } = await answers.next();
    return JSON.parse(value ?? '{ "error": "it has ended" }');
  };
  return { inPlace: (path: string) => ask(path), copied: (path: string) => ask(path, copy) };
}

/** How often `work` writes to files, how many bytes, and what the log grows by. The kernel counts for each thread. */
function written(log: string, work: () => void): { calls: number; bytes: number; grown: number } {
  const counted = (): [number, number] => {
    const text = readFileSync("/proc/thread-self/io", "utf8");
    return [Number(/^syscw: (\d+)$/m.exec(text)?.[1]), Number(/^wchar: (\d+)$/m.exec(text)?.[1])];
  };
  const { size } = statSync(log);
  const before = counted();
  work();
  const after = counted();
  return { calls: after[0] - before[0], bytes: after[1] - before[1], grown: statSync(log).size - size };
}

test("a commit is one write of its pages; a few, where one cannot be that long", async () => {
  const { database, path, log } = await newDatabase();
  const { copied } = await plainSqlite();
  const small = [25, 25, 1, 50].map((lines) => ({ lines, length: 900, most: 1 }));
  const sizes = [60, 100, 127, 128, 129, 200, 1000, 5000];
  const large = sizes.map((size) => ({ lines: 4, length: (size / 4) * KIB, most: Math.ceil(size / 32) }));
  for (const [index, { lines, length, most }] of [...small, ...large, ...small].entries()) {
    const begins = statSync(log).size === 0 ? 1 : 0;
    const { calls, bytes, grown } = written(log, () => write(database, lines, length, letterOf(index)));
    expect(grown).toBeGreaterThan(lines * length);
    // The engine wakes threads of its own now and then, each time by a write of 8 bytes.
    const writes = calls - (bytes - grown) / 8 - begins;
    expect(writes).toBeGreaterThanOrEqual(1);
    expect(writes).toBeLessThanOrEqual(most);
    expect(await copied(path)).toEqual({ check: "ok", lines: linesOf(database) });
    if (length > 200 * KIB) database.pragma("wal_checkpoint(TRUNCATE)");
  }
});

test("a page that left the cache early, and changes again, is written over, and its checksum with it", async () => {
  const { database, path, log } = await newDatabase();
  database.pragma("cache_size = 5");
  const { bytes, grown } = written(log, () =>
    database.transaction(() => {
      for (const letter of "abc") write(database, 40, 900, letter);
    })(),
  );
  // Of 1 KiB. Each is in the log about once; 40 were written three times. Who appends them anew writes what it grows by.
  expect(grown).toBeLessThan(60 * (24 + KIB));
  expect(bytes).toBeGreaterThan(grown + 60 * KIB);
  expect(await (await plainSqlite()).copied(path)).toEqual({ check: "ok", lines: linesOf(database) });
});

const UNDONE = new Error("undone");
const small = fc.constantFrom(0, 1, 300, 900);
/** 0: the line is removed. */
const length = fc.oneof(small, small, small, small, small, fc.constantFrom(900, 5_000, 131_000, 300_000));
const line = fc.record({ id: fc.integer({ min: 1, max: 30 }), length });
const part = fc.record({
  changes: fc.array(line, { minLength: 1, maxLength: 30, size: "max" }),
  /** So many lines after each other: pages that are new, of which none is read. */
  appended: fc.constantFrom(0, 0, 20, 60),
  isUndone: fc.constantFrom(false, false, true),
  /** What has left the cache is read again. */
  isRead: fc.constantFrom(false, false, true),
});
const step = fc.record({
  parts: fc.array(part, { minLength: 1, maxLength: 3 }),
  isUndone: fc.boolean(),
  by: fc.nat(1),
  /** Somebody begins to read, or ends it: the log does not begin anew meanwhile. */
  readsOn: fc.constantFrom(false, false, true),
  checkpoint: fc.constantFrom("none", "none", "PASSIVE", "RESTART", "TRUNCATE"),
  checkpointBy: fc.nat(1),
});
const steps = fc.array(step, { minLength: 5, maxLength: 12 });
const history = fc.record({ cachePages: fc.constantFrom(5, 5, 30, 3000), steps });
type History = ReturnType<typeof history.generate>["value"];

/** `writers`: how many of both connections make changes. */
async function live({ cachePages, steps }: History, writers: number, plain: Plain, path: string): Promise<void> {
  const { database: first } = await newDatabase(path);
  const [second, reader] = [openSqlite(path, { timeout: 0 }), openSqlite(path, { timeout: 0 })];
  const connections = [first, second, reader];
  for (const one of connections) one.exec(`PRAGMA cache_size = ${cachePages}; PRAGMA wal_autocheckpoint = 0`);
  let lines = new Map<number, string>();
  let seen: string[] = [];
  let letters = 0;

  function change(database: Connection, { changes, appended, isRead, isUndone }: History["steps"][0]["parts"][0]) {
    const letter = letterOf(letters++);
    const last = Math.max(100, ...lines.keys());
    const added = Array.from({ length: appended }, (_, index) => ({ id: last + 1 + index, length: 900 }));
    for (const { id, length } of appended > 0 ? added : changes) {
      database.prepare(length > 0 ? PUT : "DELETE FROM lines WHERE id = ? AND ? = ''").run(id, letter.repeat(length));
      if (length > 0) lines.set(id, letter.repeat(length));
      else lines.delete(id);
    }
    if (isRead) expect(linesOf(database)).toEqual(asRead(lines));
    if (isUndone) throw UNDONE;
  }

  /** All of it or nothing, in the lines that are expected too. */
  function attempt(database: Connection, work: () => void): void {
    const before = new Map(lines);
    try {
      database.transaction(work)();
    } catch (error) {
      if (error !== UNDONE) throw error;
      lines = before;
    }
  }

  try {
    for (const { parts, isUndone, by, readsOn, checkpoint, checkpointBy } of steps) {
      const database = by < writers - 1 ? second : first;
      attempt(database, () => {
        for (const one of parts) attempt(database, () => change(database, one));
        if (isUndone) throw UNDONE;
      });
      if (reader.inTransaction) expect(linesOf(reader)).toEqual(seen);
      if (readsOn) reader.exec(reader.inTransaction ? "COMMIT" : "BEGIN");
      if (readsOn) seen = linesOf(reader);
      const expected = { check: "ok", lines: asRead(lines) };
      expect(await plain.copied(path)).toEqual(expected);
      for (const one of [first, second]) expect(linesOf(one)).toEqual(expected.lines);
      if (checkpoint === "none") continue;
      [first, second][checkpointBy]?.pragma(`wal_checkpoint(${checkpoint})`);
      expect(await plain.copied(path)).toEqual(expected);
    }
  } finally {
    for (const one of connections) one.close();
  }
  expect(await plain.inPlace(path)).toEqual({ check: "ok", lines: asRead(lines) });
}

test.each([
  ["one connection writes, others read and make checkpoints", 1],
  ["two connections write", 2],
])("what is committed is in the files at once: %s", async (_, writers) => {
  const plain = await plainSqlite();
  const folder = await temporaryFolder();
  let runs = 0;
  const run = (one: History) => live(one, writers, plain, join(folder, `${runs++}.db`));
  await fc.assert(fc.asyncProperty(history, run), { seed: SEED, numRuns: 15 });
});

const WRITER = `const [, driver, extension, path] = process.argv;
  const { openSqlite } = await import(driver);
  const { writeSync } = await import("node:fs");
  openSqlite(":memory:").loadExtension(extension);
  const database = openSqlite(path, { timeout: 0 });
  for (const what of ["synchronous = NORMAL", "wal_autocheckpoint = 0", "cache_size = 20"]) database.pragma(what);
  const line = database.prepare(${JSON.stringify(PUT)});
  const last = database.prepare("SELECT length(text) FROM lines WHERE id = 0").pluck().get() ?? 0;
  for (let commit = last + 1; ; commit += 1) {
    const letter = String.fromCharCode(97 + (commit % 26));
    database.transaction(() => {
      line.run(0, "#".repeat(commit));
      for (let id = 1; id < 9; id += 1) line.run(id, letter.repeat(1 + (commit * id * 7919) % (commit % 5 ? 900 : 40000)));
    })();
    writeSync(1, commit + "\\n");
    if (commit % 30 === 0) database.pragma("wal_checkpoint(PASSIVE)");
  }`;

test("a process that is killed leaves each commit it has told of, and none in halves", async () => {
  const { database, path } = await newDatabase();
  database.close();
  const { copied } = await plainSqlite();
  const chance = createChance();
  for (let round = 0, last = 0; round < 8; round += 1) {
    const child = spawn(process.execPath, [...SQLITE_CHILD, WRITER, SQLITE, compiled("wsfs-commit-log.so"), path]);
    const ended = finished(child);
    await Promise.race([once(child.stdout, "data"), ended]);
    await setTimeout(chance() * 20);
    child.kill("SIGKILL");
    const { stdout, stderr, signal } = await ended;
    expect([signal, stderr]).toEqual(["SIGKILL", ""]);
    const told = Number(stdout.trimEnd().split("\n").at(-1));
    expect(told).toBeGreaterThan(last);
    const { check, lines: [count, ...lines] = [] } = await copied(path);
    expect([check, lines.length]).toEqual(["ok", 8]);
    last = Number(count?.split(" ")[1]);
    // The last one may have been made, and not told of.
    expect([told, told + 1]).toContain(last);
    for (const line of lines) expect(line).toMatch(new RegExp(`^\\d \\d+ ${letterOf(last)}$`));
  }
});

/** On a file system of its own, where this user may make one. `fill` leaves so much room; what it returns ends that. */
async function onSmallDisk(context: TestContext) {
  if (process.getuid?.() !== 0) return context.skip("mounting a tmpfs needs root");
  const disk = await temporaryFolder();
  expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk])).toMatchObject({ status: 0 });
  onTestFinished(() => void spawnSync("umount", ["-l", disk]));
  const fill = (room: number) => {
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(join(disk, "filler"), Buffer.alloc(bavail * bsize - room));
    return () => rmSync(join(disk, "filler"));
  };
  return { ...(await newDatabase(join(disk, "test.db"))), ...(await plainSqlite()), fill };
}
const DISK_FAILURE = expect.objectContaining({ code: expect.stringMatching(/^SQLITE_(FULL|IOERR)/) });

test("a commit that the disk has no room for is none, and the next ones are right", async (context) => {
  const { database, path, copied, fill } = await onSmallDisk(context);
  write(database, 40, 8_000, "a");
  for (const [index, room] of [0, 4, 60, 100, 200, 0, 60, 100, 200].entries()) {
    // Pages leave the cache early, or all at the commit.
    database.pragma(`cache_size = ${index < 5 ? 5 : 2000}`);
    database.pragma("wal_checkpoint(TRUNCATE)");
    write(database, 10, 8_000, letterOf(room));
    const before = linesOf(database);
    const empty = fill(room * KIB);
    expect(() => write(database, 40, 8_000, "#")).toThrow(DISK_FAILURE);
    expect([database.inTransaction, linesOf(database)]).toEqual([false, before]);
    empty();
    expect(await copied(path)).toEqual({ check: "ok", lines: before });
    for (const lines of [1, 40, 2]) {
      write(database, lines, 8_000, letterOf(lines + room));
      expect(await copied(path)).toEqual({ check: "ok", lines: linesOf(database) });
    }
  }
});

/** Pages that are new: none of them is read. */
const APPEND = `INSERT INTO lines WITH RECURSIVE numbers(id) AS (SELECT 101 UNION ALL SELECT id + 1 FROM numbers)
  SELECT id, printf('%.900c', 'a') FROM numbers LIMIT 50`;

test.for([
  ["it is undone, and not in the way of whoever reads", "ROLLBACK"],
  ["it is not lost when the next change fails", "UPDATE lines SET text = replace(text, 'b', 'c')"],
] as const)("what left the cache before the disk was full: %s", async ([, next], context) => {
  const { database, path, copied, fill } = await onSmallDisk(context);
  write(database, 20, 900, "a");
  database.pragma("wal_checkpoint(TRUNCATE)");
  // In the log from now on; the database's first page, which SQLite reads again when it undoes a change, is not.
  database.exec("UPDATE lines SET text = replace(text, 'a', 'b')");
  const before = linesOf(database);
  database.exec(`PRAGMA cache_size = 10; PRAGMA shrink_memory; BEGIN; ${APPEND}`);
  const empty = fill(0);
  if (next === "ROLLBACK") database.exec(next);
  else expect(() => database.exec(next)).toThrow(DISK_FAILURE);
  // A change that fails may be undone alone, or with all that came before it.
  const added = database.inTransaction ? 50 : 0;
  if (added === 0) expect(linesOf(database)).toEqual(before);
  empty();
  if (added > 0) database.exec("COMMIT");
  const expected = [...before, ...Array.from({ length: added }, (_, index) => `${101 + index} 900 a`)];
  expect(await copied(path)).toEqual({ check: "ok", lines: expected });
  expect(linesOf(database)).toEqual(expected);
});

const THREAD = `const { parentPort, workerData: { typescript, driver, path, sql, readonly } } = require("node:worker_threads");
  import(typescript).then(() => import(driver)).then(({ openSqlite }) => {
    const database = openSqlite(path, { readonly });
    parentPort.postMessage(database.prepare(sql).pluck().all());
    database.close();
  });`;

test("a database is its process's alone, whose threads share it, until it is closed", async () => {
  const { database, path } = await newDatabase();
  const { inPlace } = await plainSqlite();
  write(database, 3, 2_000, "a");
  const lines = linesOf(database);
  for (const readonly of [false, true, false]) {
    expect(await inPlace(path)).toEqual({ error: "SQLITE_BUSY" });
    const thread = new Worker(THREAD, {
      eval: true,
      workerData: { typescript: TYPESCRIPT, driver: SQLITE, path, sql: LINES, readonly },
    });
    // A thread that has ended before it is heard tells both at once.
    const [message] = await Promise.all([once(thread, "message"), once(thread, "exit")]);
    expect(message).toEqual([lines]);
  }
  expect(existsSync(`${path}-shm`)).toBe(false);
  database.close();
  expect(await inPlace(path)).toEqual({ check: "ok", lines });
});
