/** The points of the gateway's timeline that are remembered. */
import { expect, test } from "vitest";
import { parseRequest } from "../../../src/engine/core/index.ts";
import { Timeline } from "../../../src/engine/core/timeline.ts";
import { openDatabase } from "../../../src/metadata/database.ts";
import { createMetadata } from "../../../src/metadata/metadata.ts";

test("a refusal tells of another timeline while entries of the journal are applied: it is not forgotten", () => {
  const metadata = createMetadata(openDatabase(":memory:"), parseRequest);
  const timeline = new Timeline(metadata);
  const entry = { position: 1_000, nodeId: "n", revision: 1, time: "2026-01-01T00:00:00.000Z" };
  metadata.transaction(() => timeline.noteFollowed([entry]));
  expect([metadata.settings.get("followed"), timeline.isRolledBack()]).toEqual([JSON.stringify(entry), false]);
  timeline.noteRollback();
  metadata.transaction(() => timeline.noteFollowed([{ ...entry, position: 1_001 }]));
  expect([timeline.isRolledBack(), timeline.last()]).toEqual([true, undefined]);
  metadata.close();
});
