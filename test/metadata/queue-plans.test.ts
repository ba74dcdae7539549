/** However much waits, each turn of the loop reads little: no statement of a turn looks through a table. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { type Connection, openDatabase } from "../../src/metadata/database.ts";
import { entryId, inodeId, kernelNodeId, nodeRowId, snapshotId } from "../../src/metadata/ids.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { unborn } from "../../src/metadata/nodes.ts";
import { PRIORITIES, type Priority } from "../../src/metadata/priority.ts";
import { MIGRATIONS } from "../../src/metadata/schema.ts";
import { recordedRows } from "../support/recorded-rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Every statement that runs, with the plan it ran by. */
function recording(database: Connection, plans: Map<string, string[]>): Connection {
  return recordedRows(database, (sql, _rows, parameters) => {
    if (!/^\s*(SELECT|UPDATE|DELETE)/.test(sql)) return;
    const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[];
    plans.set(
      sql,
      steps.map(({ detail }) => detail),
    );
  });
}

test("a turn of the loop, the start, a drain and a list of the queue find what they want by an index", () => {
  const plans = new Map<string, string[]>();
  const { nodes, attempts, arrivals, inodes, snapshots, linkLeases } = createMetadata(
    recording(openDatabase(":memory:"), plans),
    (value) => value,
  );
  const about = { attributes: {}, size: 0, hash: null, originNode: null, originVersion: null, atime: "0", ctime: "0" };
  linkLeases.begin(inodes.create({ kind: "file", content: "clean", ...about }).id, rowTime(1));
  plans.clear();
  linkLeases.ended(rowTime(1));
  linkLeases.nextEnd();
  for (const priority of PRIORITIES) {
    nodes.due(priority, rowTime(1), 10);
    attempts.due(priority, rowTime(1), 10);
  }
  nodes.nextDue();
  nodes.nextDueAfter(rowTime(1));
  nodes.expedite(rowTime(1), 10);
  nodes.expediteIn(inodeId(1), rowTime(1), 0, 10);
  nodes.lookAtNames(inodeId(1), rowTime(1), 0, 10);
  nodes.areNamesDirty(inodeId(1), rowTime(1));
  nodes.dirty(10);
  nodes.parked(10);
  nodes.unconfirmed(rowTime(1), 10);
  nodes.pendingBytes(10);
  attempts.nextDue();
  attempts.nextAt(rowTime(1));
  attempts.expedite(rowTime(1), 10);
  attempts.openOf(nodeRowId(1));
  attempts.removeAbandonedBefore(rowTime(1));
  attempts.nodesWanting("a");
  attempts.nodesCopying("a");
  attempts.isPlaceWanted(nodeRowId(1), "a", "b");
  attempts.abandonedAt("a", "b");
  attempts.exchanging("a", "b", "c");
  attempts.ofKey("a");
  attempts.ofSnapshot(snapshotId(1));
  arrivals.list("", 10);
  arrivals.isAnyIn("a");
  attempts.isAnyConcerning(nodeRowId(1), "a");
  inodes.leastUsedAfter({ used: rowTime(1), id: inodeId(1) }, rowTime(2));
  snapshots.ofKernelNodeId(kernelNodeId(1));
  inodes.writing();
  // In the order of an index, up to a limit, is no search; `writing` has as many rows as files are open.
  // So is the first row there is, whichever that be.
  const isLimited = (step: string, sql: string) =>
    (step.includes("USING") && /ORDER BY[^)]*LIMIT/.test(sql)) || /^SELECT 1 AS one FROM \w+ LIMIT 1$/.test(sql);
  const scans = [...plans].flatMap(([sql, steps]) =>
    steps.filter((step) => /^SCAN (?!writing)/.test(step) && !isLimited(step, sql)).map((step) => `${step}: ${sql}`),
  );
  expect(plans.size).toBeGreaterThan(20);
  expect(scans).toEqual([]);
  const sorts = [...plans].filter(([, steps]) => steps.some((step) => step.includes("TEMP B-TREE")));
  expect(sorts.map(([sql]) => sql)).toEqual([]);
});

test("what is due next is the next of either priority class, and hurrying is for both", () => {
  const { nodes, attempts } = createMetadata(openDatabase(":memory:"), (value) => value);
  const add = (priority: Priority, due: number) => {
    const { id } = nodes.create({ ...unborn(entryId(0), "file", rowTime(1), rowTime(due)), entry: null, priority });
    attempts.create({
      node: id,
      key: `${id}`,
      request: {},
      snapshot: null,
      nextAt: rowTime(due),
      createdAt: rowTime(1),
      priority,
    });
  };
  expect([nodes.nextDue(), attempts.nextDue()]).toEqual([undefined, undefined]);
  add("small", 50);
  expect([nodes.nextDue(), attempts.nextDue()]).toEqual([50, 50]);
  add("bulk", 20);
  add("bulk", 70);
  const times = () => [
    [
      nodes.nextDue(),
      nodes.nextDueAfter(rowTime(20)),
      nodes.nextDueAfter(rowTime(50)),
      nodes.nextDueAfter(rowTime(70)),
    ],
    [attempts.nextDue(), attempts.nextAt(rowTime(20)), attempts.nextAt(rowTime(50)), attempts.nextAt(rowTime(70))],
  ];
  const both = (expected: unknown) => [expected, expected];
  expect(times()).toEqual(both([20, 50, 70, undefined]));
  expect([nodes.expedite(rowTime(10), 2), attempts.expedite(rowTime(10), 2)]).toEqual([true, true]);
  expect(times()).toEqual(both([10, 70, 70, undefined]));
  expect([nodes.expedite(rowTime(10), 2), attempts.expedite(rowTime(10), 2)]).toEqual([false, false]);
  expect(times()).toEqual(both([10, undefined, undefined, undefined]));
});

test("what the schema before held is found by the indexes of this one, and no cache file was used in time to come", async () => {
  const path = join(await temporaryFolder(), "state.db");
  const before = openSqlite(path);
  for (const sql of MIGRATIONS.slice(0, 12)) before.exec(sql);
  before.pragma("user_version = 12");
  before.exec(`
    INSERT INTO inode (id, kind, lineage, attributes, size, content, atime, ctime)
      VALUES (1, 'file', 1, '{}', 4, 'clean', '0', '0'), (2, 'file', 2, '{}', 4, 'dirty', '0', '0');
    INSERT INTO lineage (id, inode) VALUES (1, 1), (2, 2);
    INSERT INTO live (lineage, origin_node, origin_version, size, bytes, missing, used_at)
      VALUES (1, 'n', 'v', 4, 4, '[]', 7), (2, NULL, NULL, 4, 4, '[]', 9000000000000000);
    INSERT INTO node (kind, due, bulk) VALUES ('file', 50, 0), ('file', 20, 1);`);
  before.close();
  const started = Date.now();
  const database = openDatabase(path);
  const { cacheFiles, nodes, inodes } = createMetadata(database, (value) => value);
  expect(nodes.nextDue()).toBe(20);
  const due = (priority: Priority) =>
    nodes.due(priority, rowTime(50), 10).map((id) => [nodes.get(id)?.due, nodes.get(id)?.priority]);
  expect([due("small"), due("bulk")]).toEqual([[[50, "small"]], [[20, "bulk"]]]);
  const now = Date.now() + 1;
  expect(cacheFiles.evictable(rowTime(now), 10).map(({ kernelNodeId }) => kernelNodeId)).toEqual([1]);
  const { usedAt = rowTime(0) } = cacheFiles.get(kernelNodeId(2)) ?? {};
  expect([usedAt > rowTime(started - 2000), usedAt < rowTime(now)]).toEqual([true, true]);
  // What the gateway has by now may go.
  inodes.update(inodeId(2), { content: "clean" });
  cacheFiles.update(kernelNodeId(2), { originNode: "m", originVersion: "w" });
  expect(cacheFiles.evictable(rowTime(now), 10).map(({ kernelNodeId }) => kernelNodeId)).toEqual([1, 2]);
  database.close();
});
