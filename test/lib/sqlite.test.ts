/** Both drivers of SQLite do the same; the one that this Node has not is passed over. Each Node has at least one of them. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { betterSqlite3 } from "../../src/lib/sqlite/better-sqlite3.ts";
import { openSqlite, SqliteError, sqliteDriver } from "../../src/lib/sqlite/index.ts";
import { nodeSqlite } from "../../src/lib/sqlite/node-sqlite.ts";
import { resultCodeName } from "../../src/lib/sqlite/result-codes.ts";
import type { Connection, Driver } from "../../src/lib/sqlite/types.ts";
import { run } from "../support/child.ts";
import { SQLITE, SQLITE_CHILD } from "../support/sqlite-child.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const HEADER = new URL("../../node_modules/better-sqlite3/deps/sqlite3/sqlite3.h", import.meta.url);

function opened(driver: Driver, file = ":memory:", options = {}): Connection {
  const database = driver.open(file, options);
  onTestFinished(() => void database.close());
  return database;
}

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof SqliteError) return error.code;
    throw error;
  }
  return "none";
}

test.for([betterSqlite3, nodeSqlite])("$name: rows, values and errors", async (driver, context) => {
  if (driver.missing() !== undefined) return context.skip(`${driver.name}: ${driver.missing()}`);
  const path = join(await temporaryFolder(), "a #?%20.db");
  expect(codeOf(() => driver.open(path, { fileMustExist: true }))).toBe("SQLITE_CANTOPEN");
  expect(codeOf(() => driver.open(path, { readonly: true }))).toBe("SQLITE_CANTOPEN");
  const database = opened(driver, path);
  expect(existsSync(path)).toBe(true);
  expect(codeOf(() => opened(driver, path, { fileMustExist: true }))).toBe("none");
  database.exec(
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, bytes BLOB) STRICT; CREATE TABLE empty (id)",
  );
  const insert = database.prepare("INSERT INTO t (name, bytes) VALUES (@name, @bytes)");
  expect(insert.reader).toBe(false);
  expect(insert.run({ name: "a", bytes: Buffer.from("one"), more: 1 })).toEqual({ changes: 1, lastInsertRowid: 1 });
  expect(codeOf(() => insert.run({ name: "a", bytes: null }))).toBe("SQLITE_CONSTRAINT_UNIQUE");
  insert.run({ name: "b", bytes: undefined });
  expect(database.prepare("SELECT ? IS NULL").pluck().get(undefined)).toBe(1);
  const all = database.prepare<[number], { id: number; name: string }>(
    "SELECT id, name FROM t WHERE id >= ? ORDER BY id",
  );
  expect(all.reader).toBe(true);
  expect(all.columns().map(({ name }) => name)).toEqual(["id", "name"]);
  expect(all.all(1)).toStrictEqual([
    { id: 1, name: "a" },
    { id: 2, name: "b" },
  ]);
  expect([all.get(2), all.get(3)]).toStrictEqual([{ id: 2, name: "b" }, undefined]);
  const seen: unknown[] = [];
  for (const row of all.iterate(1)) {
    seen.push(row);
    break;
  }
  expect(seen).toStrictEqual([{ id: 1, name: "a" }]);
  expect([...database.prepare("SELECT name FROM t ORDER BY id").pluck().iterate()]).toEqual(["a", "b"]);
  expect(database.prepare("SELECT id, name FROM t").raw().all()).toEqual([
    [1, "a"],
    [2, "b"],
  ]);
  expect(database.prepare("SELECT 9007199254740993").pluck().safeIntegers().get()).toBe(9007199254740993n);
  const [bytes] = database.prepare("SELECT bytes FROM t WHERE id = 1").pluck().all();
  expect(Buffer.from(bytes as Uint8Array).toString()).toBe("one");
  expect(codeOf(() => database.prepare("SELECT * FROM nothing"))).toBe("SQLITE_ERROR");
  expect(codeOf(() => database.exec("INSERT INTO t VALUES (1, NULL, NULL)"))).toBe("SQLITE_CONSTRAINT_PRIMARYKEY");
  expect(database.pragma("user_version = 3")).toEqual([]);
  expect([database.pragma("user_version", { simple: true }), database.pragma("user_version")]).toEqual([
    3,
    [{ user_version: 3 }],
  ]);
  expect(database.pragma("foreign_keys", { simple: true })).toBe(1);
  const readonly = opened(driver, path, { readonly: true });
  expect(codeOf(() => readonly.exec("DELETE FROM t"))).toBe("SQLITE_READONLY");
});

test.for([betterSqlite3, nodeSqlite])("$name: a transaction is all or nothing, and nests", async (driver, context) => {
  if (driver.missing() !== undefined) return context.skip(`${driver.name}: ${driver.missing()}`);
  const path = join(await temporaryFolder(), "a.db");
  const database = opened(driver, path);
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER) STRICT");
  const insert = database.prepare("INSERT INTO t VALUES (?)");
  const rows = () => database.prepare("SELECT id FROM t ORDER BY id").pluck().all();
  const failed = new Error("undone");
  const failing = database.transaction((id: number) => {
    insert.run(id);
    throw failed;
  });
  expect(() => failing(1)).toThrow(failed);
  const outer = database.transaction((id: number) => {
    insert.run(id);
    expect(() => failing(id + 1)).toThrow(failed);
    expect(database.inTransaction).toBe(true);
    return id;
  });
  expect([outer(2), rows(), database.inTransaction]).toEqual([2, [2], false]);
  const other = opened(driver, path, { timeout: 0 });
  other.exec("BEGIN IMMEDIATE");
  database.pragma("busy_timeout = 0");
  expect(codeOf(() => database.transaction(() => 1).immediate())).toBe("SQLITE_BUSY");
  expect(database.inTransaction).toBe(false);
  other.exec("ROLLBACK");
  expect(database.transaction(() => rows()).immediate()).toEqual([2]);
});

test.for([betterSqlite3, nodeSqlite])("$name: copies, images, what a function throws", async (driver, context) => {
  if (driver.missing() !== undefined) return context.skip(`${driver.name}: ${driver.missing()}`);
  const path = join(await temporaryFolder(), "copy.db");
  const database = opened(driver);
  database.exec("CREATE TABLE t (id INTEGER) STRICT; INSERT INTO t VALUES (7)");
  await database.backup(path, { progress: () => 2 ** 30 });
  const of = (one: Connection) => one.prepare("SELECT id FROM t").pluck().all();
  expect(of(opened(driver, path))).toEqual([7]);
  const image = driver.open(database.serialize(), {});
  onTestFinished(() => void image.close());
  expect(of(image)).toEqual([7]);
  await expect(database.backup(join(path, "no folder"), { progress: () => 100 })).rejects.toThrow();
  database.function("full", () => {
    throw new SqliteError("database or disk is full", "SQLITE_FULL");
  });
  expect(codeOf(() => database.prepare("SELECT full()").get())).toBe("SQLITE_FULL");
  expect(database.open).toBe(true);
  database.close();
  database.close();
  expect([database.open, database.inTransaction]).toEqual([false, false]);
});

test("SQLite's codes have the names that sqlite3.h gives them", () => {
  const header = readFileSync(HEADER, "utf8");
  const primary = new Map(
    [...header.matchAll(/^#define (SQLITE_[A-Z]+) +(\d+) +\/\* [A-Z]/gm)].map(([, name = "", code]) => [
      name,
      Number(code),
    ]),
  );
  const extended = [...header.matchAll(/^#define (SQLITE_[A-Z_]+) +\((SQLITE_[A-Z]+) *\| *\((\d+)<<8\)\)/gm)].filter(
    ([, , kind]) => kind !== "SQLITE_OK",
  );
  expect(extended.length).toBeGreaterThan(70);
  const codes = new Map(
    extended.map(([, name = "", kind = "", code]) => [(primary.get(kind) ?? Number.NaN) + 256 * Number(code), name]),
  );
  for (const [code, name] of codes) expect([code, resultCodeName(code)]).toEqual([code, name]);
  expect([resultCodeName(13), resultCodeName(10 | (99 << 8)), resultCodeName(5)]).toEqual([
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_BUSY",
  ]);
});

test("this Node has a driver, and without one the error names what is missing", async () => {
  const names = [betterSqlite3, nodeSqlite].filter((driver) => driver.missing() === undefined).map(({ name }) => name);
  expect(names[0]).toBe(sqliteDriver());
  expect(openSqlite(":memory:").open).toBe(true);
  const missing = [betterSqlite3, nodeSqlite].find(({ name }) => !names.includes(name));
  const program = "const { openSqlite } = await import(process.argv[1]); openSqlite(':memory:')";
  const ask = (only: string) =>
    run(process.execPath, [...SQLITE_CHILD, program, SQLITE], { env: { ...process.env, WSFS_TEST_SQLITE: only } });
  for (const only of [...(missing === undefined ? [] : [missing.name]), "mysql"]) {
    const { code, stderr } = await ask(only);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`Node ${process.version} has no SQLite that can be used (`),
    ]);
    expect(stderr).toContain(only);
  }
});

test("node:sqlite says nothing of itself on stderr, and others are heard", async () => {
  const program = `const { openSqlite } = await import(process.argv[1]); console.log(openSqlite(":memory:").open);
    process.emitWarning("another one");`;
  const { stdout, stderr } = await run(process.execPath, [...SQLITE_CHILD, program, SQLITE]);
  expect([stdout, stderr]).toEqual(["true\n", expect.stringContaining("Warning: another one")]);
  expect(stderr).not.toContain("SQLite");
});
