/** Damage is what SQLite finds wrong with a file; a disk that cannot be used for now says nothing of it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Connection, openSqlite, SqliteError } from "../../src/lib/sqlite/index.ts";
import { damageIn, finishCopy } from "../../src/metadata/damage.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** As SQLite says it. */
function failing(code: string): Connection {
  const database = openSqlite(":memory:");
  const pragma = () => {
    throw new SqliteError("as told", code);
  };
  return Object.assign(database, { pragma });
}

test("a copy that is no database is damaged, one that cannot be opened is not", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "text"), "no database, but long enough to be taken for one".repeat(100));
  expect(finishCopy(join(folder, "text"))).toContain("SQLITE_NOTADB");
  expect(() => finishCopy(join(folder, "absent"))).toThrow("unable to open database file");
});

test.each([
  ["SQLITE_CORRUPT", true],
  ["SQLITE_IOERR_SHORT_READ", true],
  ["SQLITE_FULL", false],
  ["SQLITE_IOERR_WRITE", false],
  ["SQLITE_READONLY", false],
])("%s says of damage: %s", (code, isDamage) => {
  if (isDamage) expect(damageIn(failing(code))).toBe(`as told (${code})`);
  else expect(() => damageIn(failing(code))).toThrow("as told");
});
