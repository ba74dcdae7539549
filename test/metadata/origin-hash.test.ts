/** What the version hashes to of which a local file misses bytes. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("rows of the schema before: known of what is missing while that version is the base", async () => {
  const path = join(await temporaryFolder(), "state.db");
  const before = openSqlite(path);
  const length = MIGRATIONS.findIndex((sql) => sql.includes("ADD COLUMN origin_hash"));
  for (const sql of MIGRATIONS.slice(0, length)) before.exec(sql);
  before.pragma(`user_version = ${length}`);
  before.exec(
    "INSERT INTO node (kind, node_id, base_head, base_hash, base_size) VALUES ('file', 'n', 'head', 'its hash', 9)",
  );
  before.pragma("foreign_keys = OFF");
  const insert = before.prepare(
    "INSERT INTO live (lineage, origin_node, origin_version, size, bytes, missing, used_at) VALUES (?, 'n', ?, 9, 0, ?, 1)",
  );
  insert.run(101, "head", "[0,9]");
  insert.run(102, "before", "[0,9]");
  insert.run(103, "head", "[]");
  insert.run(104, "head", "[3,9]");
  before.exec(`INSERT INTO inode (id, lineage, kind, attributes, size, content, atime, ctime)
    VALUES (50, 101, 'file', '{}', 9, 'clean', '0', '0'), (51, 104, 'file', '{}', 9, 'dirty', '0', '0')`);
  before.close();
  const metadata = createMetadata(openDatabase(path), (value) => value);
  const rows = [kernelNodeId(101), kernelNodeId(102), kernelNodeId(103), kernelNodeId(104)].map((kernelNodeId) =>
    metadata.cacheFiles.get(kernelNodeId),
  );
  expect(rows.map((row) => row?.originHash)).toEqual(["its hash", null, null, "its hash"]);
  expect(rows.map((row) => row?.unverified)).toEqual([[], [], [], [3, 9]]);
  expect(rows[3]?.originSize).toBe(9);
  metadata.close();
});
