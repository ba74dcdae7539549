/** Requests that are rows: found by what they want, also those of a database from before that had columns. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { nodeRowId } from "../../src/metadata/ids.ts";
import { createMetadata, type Metadata } from "../../src/metadata/metadata.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Before the columns. */
const SCHEMA_BEFORE = 10;
const REQUESTS = [
  { do: "upload", parent: "folder", name: "a" },
  { do: "copy", parent: "folder", name: "b", copyOf: "node" },
  { do: "exchange", parent: "folder", name: "c", with: "other" },
  { do: "delete", nodeId: "node" },
];

/** Ids are those of the rows, from 1 on. */
function found({ attempts }: Metadata<unknown>) {
  return {
    wanting: attempts.nodesWanting("folder"),
    copying: attempts.nodesCopying("node"),
    exchanging: attempts.exchanging("other", "folder", "c")?.node,
    elsewhere: attempts.exchanging("other", "folder", "a")?.node,
    isWanted: [nodeRowId(1), nodeRowId(2)].map((node) => attempts.isPlaceWanted(node, "folder", "a")),
  };
}

const ALL = { wanting: [1, 2, 3], copying: [2], exchanging: 3, elsewhere: undefined, isWanted: [false, true] };
const NONE = { wanting: [], copying: [], exchanging: undefined, elsewhere: undefined, isWanted: [false, false] };

test("those of the schema before are found by what they want", async () => {
  const path = join(await temporaryFolder(), "state.db");
  const before = openSqlite(path);
  for (const sql of MIGRATIONS.slice(0, SCHEMA_BEFORE)) before.exec(sql);
  before.pragma(`user_version = ${SCHEMA_BEFORE}`);
  const node = before.prepare("INSERT INTO node (kind) VALUES ('file')");
  const attempt = before.prepare(
    "INSERT INTO attempt (node, state, key, request, next_at, created_at) VALUES (?, 'open', ?, ?, 0, 0)",
  );
  REQUESTS.forEach((request, index) => {
    attempt.run(node.run().lastInsertRowid, `key ${index}`, JSON.stringify(request));
  });
  before.close();
  const metadata = createMetadata(openDatabase(path), (value) => value);
  expect(found(metadata)).toEqual(ALL);
  expect(metadata.attempts.open().map(({ request }) => request)).toEqual(REQUESTS);
  metadata.close();
});

test("those made now are found while their answer is not known", () => {
  const metadata = createMetadata(openDatabase(":memory:"), (value) => value);
  const node = {
    kind: "file",
    nodeId: null,
    base: null,
    seen: null,
    seenAt: null,
    changedAt: null,
    dirtySince: rowTime(0),
  } as const;
  const rest = {
    due: null,
    leftParent: null,
    leftName: null,
    leftAt: null,
    parked: null,
    priority: "small",
    entry: null,
  } as const;
  const made = REQUESTS.map((request, index) => {
    const row = metadata.nodes.create({ ...node, ...rest });
    return metadata.attempts.create({
      node: row.id,
      key: `key ${index}`,
      request,
      snapshot: null,
      nextAt: rowTime(0),
      createdAt: rowTime(0),
    });
  });
  expect(found(metadata)).toEqual(ALL);
  expect(metadata.attempts.ofKey("key 1")).toEqual(made[1]);
  for (const [index, { id }] of made.entries()) {
    if (index % 2 === 0) metadata.attempts.abandon(id, rowTime(1));
    else metadata.attempts.remove(id);
  }
  expect(found(metadata)).toEqual(NONE);
  expect(["key 0", "key 1"].map((key) => metadata.attempts.ofKey(key)?.state)).toEqual(["abandoned", undefined]);
  metadata.close();
});
