/**
 * Checks that a copy of a data folder is complete: each content in its rows exists with its size, and with `isThorough`
 * with its bytes.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { type Connection, openSqlite } from "../../lib/sqlite/index.ts";
import { hasCode } from "../../lib/system-error.ts";
import { blobFolder, databasePath } from "../data-folder.ts";
import { blobPath } from "../disk-blobs.ts";
import { contentsOf, type StoredContent } from "./contents.ts";

export interface Verified {
  readonly contents: number;
  readonly bytes: number;
}

/** Rejects with an Error if the store is damaged, or if a content is missing or wrong: it names the version. */
export async function verifyCopy(folder: string, isThorough: boolean): Promise<Verified> {
  const database = openSqlite(databasePath(folder), { readonly: true, fileMustExist: true });
  try {
    const check = database.pragma(isThorough ? "integrity_check(1)" : "quick_check(1)", { simple: true });
    if (check !== "ok") throw new Error(`the store of ${folder} is damaged: ${String(check)}`);
    const missing = database
      .prepare<[], string>(
        "SELECT id FROM version WHERE content <> 0 AND content NOT IN (SELECT id FROM content) LIMIT 1",
      )
      .pluck()
      .get();
    if (missing !== undefined) throw new Error(`the store of ${folder} has no content of version ${missing}`);
    let contents = 0;
    let bytes = 0;
    for (const content of contentsOf(database)) {
      const wrong = await wrongOf(database, folder, content, isThorough);
      if (wrong !== undefined) throw new Error(`the content of version ${content.version} ${wrong} in ${folder}`);
      contents += 1;
      bytes += content.size;
    }
    return { contents, bytes };
  } finally {
    database.close();
  }
}

async function wrongOf(database: Connection, folder: string, content: StoredContent, isThorough: boolean) {
  const { id, blob, size, hash } = content;
  const file = blob === null ? undefined : blobPath(blobFolder(folder), blob);
  const found = file === undefined ? rowSize(database, id) : await fileSize(file);
  if (found === undefined) return "is missing";
  if (found !== size) return `has ${found} bytes, expected ${size},`;
  if (!isThorough) return undefined;
  const hashed = file === undefined ? hashOfRow(database, id) : await hashOfFile(file);
  return hashed === hash ? undefined : `has the hash ${hashed}, expected ${hash},`;
}

const rowSize = (database: Connection, id: number) =>
  database.prepare<[number], number>("SELECT length(bytes) FROM content WHERE id = ?").pluck().get(id);

async function fileSize(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function hashOfRow(database: Connection, id: number): string {
  const bytes = database.prepare<[number], Buffer>("SELECT bytes FROM content WHERE id = ?").pluck().get(id);
  return createHash("sha256")
    .update(bytes ?? "")
    .digest("hex");
}

async function hashOfFile(file: string): Promise<string> {
  const hashing = createHash("sha256");
  for await (const chunk of createReadStream(file)) hashing.update(chunk);
  return hashing.digest("hex");
}
