/** However much waits, each turn of the loop reads little: no statement of a turn looks through a table. */
import { expect, test } from "vitest";
import { type Connection, openDatabase } from "../../src/metadata/database.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { recordedRows } from "../support/recorded-rows.ts";

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
  const { nodes, attempts, arrivals, inodes, generations } = createMetadata(
    recording(openDatabase(":memory:"), plans),
    (value) => value,
  );
  plans.clear();
  for (const bulk of [0, 1]) {
    nodes.due(bulk, 1, 10);
    attempts.due(bulk, 1, 10);
  }
  nodes.nextDue();
  nodes.nextDueAfter(1);
  nodes.hasten(1, 10);
  nodes.hastenIn(1, 1, 0, 10);
  nodes.dirty(10);
  nodes.parked(10);
  nodes.pendingBytes(10);
  attempts.nextDue();
  attempts.nextAt(1);
  attempts.rush(1, 10);
  attempts.openOf(1);
  attempts.removeAbandonedBefore(1);
  attempts.nodesWanting("a");
  attempts.nodesCopying("a");
  attempts.isPlaceWanted(1, "a", "b");
  attempts.exchanging("a", "b", "c");
  attempts.ofKey("a");
  attempts.ofGeneration(1);
  arrivals.list("", 10);
  arrivals.isAnyIn("a");
  generations.ofLineage(1);
  inodes.writing();
  // In the order of an index, up to a limit, is no search; `writing` has as many rows as files are open.
  const isLimited = (step: string, sql: string) => step.includes("USING") && /ORDER BY[^)]*LIMIT/.test(sql);
  const scans = [...plans].flatMap(([sql, steps]) =>
    steps.filter((step) => /^SCAN (?!writing)/.test(step) && !isLimited(step, sql)).map((step) => `${step}: ${sql}`),
  );
  expect(plans.size).toBeGreaterThan(20);
  expect(scans).toEqual([]);
  const sorts = [...plans].filter(([, steps]) => steps.some((step) => step.includes("TEMP B-TREE")));
  expect(sorts.map(([sql]) => sql)).toEqual([]);
});
