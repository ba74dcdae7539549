/**
 * A damaged database is set aside as it is and the newest good copy takes its place, wherever the
 * start that does so dies; and nothing is repaired that is not damaged.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLayout } from "../../src/content/layout.ts";
import { startDatabaseBackups } from "../../src/daemon/database-backups.ts";
import { noteDamage, openMetadata } from "../../src/daemon/open-metadata.ts";
import { OutdatedError } from "../../src/engine/api/index.ts";
import { elapsedTime, wallTime } from "../../src/lib/clocks.ts";
import { SILENT } from "../../src/lib/log.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { systemError } from "../../src/lib/system-error.ts";
import { type Connection, openDatabase } from "../../src/metadata/database.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { createSettings } from "../../src/metadata/settings.ts";
import { createDiskUnderTest } from "../support/disk-under-test.ts";
import { SQLITE, SQLITE_CHILD } from "../support/sqlite-child.ts";
import { seededRandom } from "../support/virtual-clock.ts";

type Disk = Awaited<ReturnType<typeof createDiskUnderTest>>;
let disk: Disk;
let opened: Connection | undefined;
beforeEach(async () => {
  disk = await createDiskUnderTest();
  await createLayout(disk.files, disk.root).prepare();
});
afterEach(async () => {
  if (opened?.open) opened.close();
  opened = undefined;
  await disk.end();
});

const BOOT = "this boot";
const path = () => join(disk.root, "metadata.db");
const inQuarantine = () => readdirSync(join(disk.root, "quarantine"));
const copies = () => readdirSync(disk.root).filter((name) => name.startsWith("metadata.copy-"));

async function open(
  onStep: (what: string) => void = () => {},
  boot = BOOT,
  bootedAt = 0,
  onMigrated = (_: Connection) => {},
  giveUpNow = () => false,
) {
  if (opened?.open) opened.close();
  const found = await openMetadata({
    files: disk.files,
    folder: disk.root,
    database: path(),
    log: SILENT,
    paths: createLayout(disk.files, disk.root),
    reserve: { giveUpNow },
    boot,
    bootedAt,
    now: () => wallTime(0),
    onStep,
    onMigrated,
  });
  opened = found.connection;
  return { ...found, value: (key: "written" | "restored" | "boot") => createSettings(found.connection).get(key) };
}

/** A database with some pages, and `written` in it; with a copy, if told, of what it was before that. */
async function prepare(written: string, withCopy: boolean, boot = ""): Promise<void> {
  const database = openDatabase(path());
  const settings = createSettings(database);
  settings.set("written", "as copied");
  settings.set("boot", boot);
  const fill = database.prepare("INSERT INTO reread (node_id, due) VALUES (?, 0)");
  database.transaction(() => {
    for (let count = 0; count < 2_000; count += 1) fill.run(`node ${count}`);
  })();
  const made = startDatabaseBackups({
    files: disk.files,
    folder: disk.root,
    database: path(),
    log: SILENT,
    connection: database,
    elapsed: () => elapsedTime(0),
    hasRoom: () => true,
    onDamage: () => {},
  });
  settings.set("counting", "changed");
  await made.stop();
  database.close();
  if (withCopy) await made.atEnd();
  const again = openDatabase(path());
  createSettings(again).set("written", written);
  again.close();
}

const damages: Record<string, () => void> = {
  "its first page is gone": () => overwrite(0, Buffer.alloc(4096)),
  "a page of garbage": () => overwrite(3 * 4096, Buffer.alloc(4096, 0xa5)),
  "a page of zeros": () => overwrite(8 * 4096, Buffer.alloc(4096)),
  "it was cut off": () => truncateSync(path(), Math.floor(statSync(path()).size / 3)),
  "it is empty": () => truncateSync(path(), 0),
  "it is not there": () => rmSync(path()),
  "it is something else": () => writeFileSync(path(), "no database at all, but a text that is long enough".repeat(9)),
};

function overwrite(at: number, bytes: Buffer): void {
  const whole = readFileSync(path());
  bytes.copy(whole, at);
  writeFileSync(path(), whole);
}

test.each(Object.entries(damages))("%s: the copy takes its place, and it says so", async (what, damage) => {
  await prepare("later", true);
  damage();
  const { repaired, value } = await open();
  expect(repaired).toContain("a copy of it was put in its place");
  expect(value("written")).toBe("as copied");
  expect(value("restored")).toContain("copy");
  expect(inQuarantine().some((name) => name.endsWith(".db"))).toBe(what !== "it is not there");
  // Once.
  expect((await open()).repaired).toBeUndefined();
});

test("without a copy it is empty, and says so", async () => {
  await prepare("later", false);
  await createLayout(disk.files, disk.root).prepareFolderOf(join(disk.root, "live/0/1"));
  writeFileSync(join(disk.root, "live/0/1"), "bytes");
  rmSync(path());
  const { repaired, value } = await open();
  expect(repaired).toContain("asked of the gateway anew");
  expect(value("written")).toBeUndefined();
  expect(value("restored")).toContain("anew");
});

test("whatever the copy says, the machine counts as gone down where nothing was written since it came up", async () => {
  for (const [bootedAt, boot] of [
    [0, BOOT],
    [Date.now() + 3600_000, "unknown"],
  ] as const) {
    await prepare("later", true, "another boot");
    damages["a page of garbage"]?.();
    const { repaired, value } = await open(() => {}, BOOT, bootedAt);
    expect([repaired, value("boot")]).toEqual([expect.stringContaining("a copy of it"), boot]);
    opened?.close();
    for (const name of readdirSync(disk.root)) if (name.startsWith("metadata.")) rmSync(join(disk.root, name));
  }
});

/** As a machine leaves it that goes down: never closed, its last rows in the log, and all of it written before now. */
async function goDown(at: Date): Promise<void> {
  await prepare("later", true, "another boot");
  const left = ["", "-wal"].map((suffix) => `${path()}${suffix}`);
  const writer = openDatabase(path());
  createSettings(writer).set("written", "in the log");
  const bytes = left.map((file) => readFileSync(file));
  writer.close();
  for (const [index, file] of left.entries()) writeFileSync(file, bytes[index] ?? "");
  damages["a page of garbage"]?.();
  for (const file of left) utimesSync(file, at, at);
}

test("that the machine went down is known wherever a repair dies and begins again", async () => {
  const now = Date.now();
  const begin = (onStep: (what: string) => void) => open(onStep, BOOT, now - 3600_000);
  const known: [string, string | undefined][] = [];
  for (let at = 0; known.length === at; at += 1) {
    await goDown(new Date(now - 7200_000));
    const steps: string[] = [];
    const died = await begin((what) => {
      steps.push(what);
      if (steps.length === at) throw new Error("dies");
    }).catch((error: Error) => error.message);
    if (at > 0 && died !== "dies") break;
    const found = at === 0 ? await open() : await begin(() => {});
    known.push([`died: ${steps[at - 1] ?? "never"}`, found.value("boot")]);
    opened?.close();
    for (const name of readdirSync(disk.root)) if (name.startsWith("metadata.")) rmSync(join(disk.root, name));
  }
  expect(known.length).toBeGreaterThan(5);
  expect(known.filter(([, boot]) => boot !== "unknown")).toEqual([]);
});

/** As somebody's `sqlite3 metadata.db`: it has read a row. Until its input ends, or for so many milliseconds. */
const OPEN_ELSEWHERE = `
  const { openSqlite } = await import(process.argv[1]);
  const [, , path, stays] = process.argv;
  const database = openSqlite(path);
  database.prepare("SELECT * FROM setting").all();
  console.log("open");
  process.stdin.resume().on("end", () => database.close());
  if (stays !== undefined) setTimeout(() => process.exit(), Number(stays));
`;

async function elsewhere(...stays: string[]) {
  const program = spawn(process.execPath, [...SQLITE_CHILD, OPEN_ELSEWHERE, SQLITE, path(), ...stays], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(program, "exit");
  await once(program.stdout, "data");
  return async () => {
    program.stdin.end();
    await ended;
  };
}

test("one that is open in another program is left alone, and the start says why", async () => {
  await prepare("later", true);
  const leave = await elsewhere();
  await expect(open().finally(leave)).rejects.toThrow(`${path()} is open in another program; close it there`);
  expect((await open()).value("written")).toBe("later");
});

test("one that another program reads for a moment is waited for, and by a commit nobody is", async () => {
  await prepare("later", true);
  const leave = await elsewhere("1000");
  const { value, connection } = await open().finally(leave);
  expect(value("written")).toBe("later");
  expect(connection.pragma("busy_timeout", { simple: true })).toBe(0);
});

test("one that cannot be opened is closed: later it would take away the log of what is in its place by then", async () => {
  await goDown(new Date());
  damages["its first page is gone"]?.();
  expect(() => openDatabase(path())).toThrow();
  const links = readdirSync("/proc/self/fd").map((name) => {
    try {
      return readlinkSync(join("/proc/self/fd", name));
    } catch {
      return "";
    }
  });
  expect(links.filter((link) => link.startsWith(path()))).toEqual([]);
});

test("a copy that is damaged too is set aside as well", async () => {
  await prepare("later", true);
  damages["a page of garbage"]?.();
  const [name = ""] = copies();
  const bytes = readFileSync(join(disk.root, name));
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(join(disk.root, name), bytes);
  expect((await open()).repaired).toContain("anew");
  expect(inQuarantine()).toContain("metadata.copy");
  expect(copies()).toEqual([]);
});

test("it may die at each of its steps", async () => {
  await prepare("later", true);
  damages["a page of garbage"]?.();
  for (let at = 1; ; at += 1) {
    let steps = 0;
    try {
      await open(() => {
        steps += 1;
        if (steps === at) throw new Error("dies");
      });
      break;
    } catch (error) {
      if (!(error instanceof Error && error.message === "dies")) throw error;
    }
  }
  const found = await open();
  expect(found.value("written")).toBe("as copied");
  expect(found.value("restored")).toContain("copy");
  expect(copies()).toHaveLength(1);
});

test.each([
  ["noting it", "open", /suspect/],
  ["putting the copy in its place", "clone", /metadata\.copy/],
] as const)("a full disk is no reason not to repair it: %s", async (_, call, path) => {
  await prepare("later", true);
  damages["a page of garbage"]?.();
  let isFull = true;
  const { [call]: original } = disk.files;
  const full = (...args: string[]) => {
    if (isFull && path.test(args[0] ?? "")) return Promise.reject(systemError("ENOSPC", call, args[0] ?? ""));
    return Reflect.apply(original, disk.files, args);
  };
  Object.assign(disk.files, { [call]: full });
  const found = await open(undefined, BOOT, 0, undefined, () => {
    const wasFull = isFull;
    isFull = false;
    return wasFull;
  });
  expect(found.value("written")).toBe("as copied");
  isFull = true;
  expect((await open()).repaired).toBeUndefined();
});

test("a database that was noted to be damaged is read in full, and goes on if it is not", async () => {
  await prepare("later", true);
  noteDamage({ folder: disk.root, log: SILENT }, "some page");
  const found = await open();
  expect(found.repaired).toBeUndefined();
  expect(found.value("written")).toBe("later");
  expect(readdirSync(disk.root)).not.toContain("metadata.suspect");
});

test("random pages of garbage are either found, or nothing is wrong with what is read", async () => {
  const random = seededRandom(Number(process.env.WSFS_SEED ?? 1));
  for (let round = 0; round < 4; round += 1) {
    rmSync(path(), { force: true });
    for (const name of copies()) rmSync(join(disk.root, name));
    await prepare("later", true);
    const pages = statSync(path()).size / 4096;
    const bytes = Buffer.from(Array.from({ length: 4096 }, () => Math.floor(random() * 256)));
    overwrite(Math.floor(random() * pages) * 4096, bytes);
    const { repaired, connection, value } = await open();
    const rows = connection.prepare("SELECT count(*) FROM reread WHERE node_id LIKE 'node %'").pluck().get();
    expect({ rows, written: value("written") }).toEqual({
      rows: 2_000,
      written: repaired === undefined ? "later" : "as copied",
    });
  }
});

test("a new folder, and one that is well, are opened as they are", async () => {
  const first = await open();
  expect(first.repaired).toBeUndefined();
  createSettings(first.connection).set("written", "1");
  const again = await open();
  expect([again.repaired, again.value("written")]).toEqual([undefined, "1"]);
  expect(inQuarantine()).toEqual([]);
});

test("a database of an earlier release is changed, which is told once, and one of a later release is for that alone", async () => {
  const database = openSqlite(path());
  for (const sql of MIGRATIONS.slice(0, -1)) database.exec(sql);
  database.pragma(`user_version = ${MIGRATIONS.length - 1}`);
  database.close();
  let migrated = 0;
  const onMigrated = (changed: Connection) => {
    migrated += 1;
    expect(changed.inTransaction).toBe(true);
  };
  await open(undefined, BOOT, 0, onMigrated);
  expect(migrated).toBe(1);
  await open(undefined, BOOT, 0, onMigrated);
  expect(migrated).toBe(1);

  opened?.pragma(`user_version = ${MIGRATIONS.length + 1}`);
  const refused = await open().catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(OutdatedError);
  expect(String(refused)).toContain(`has schema ${MIGRATIONS.length + 1}, newer than ${MIGRATIONS.length}`);
  expect(inQuarantine()).toEqual([]);
});
