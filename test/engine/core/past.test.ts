/** What is remembered of the gateway's past. */
import { expect, test } from "vitest";
import { GatewayHistory } from "../../../src/engine/core/history.ts";
import { parseRequest } from "../../../src/engine/core/index.ts";
import { openDatabase } from "../../../src/metadata/database.ts";
import { createMetadata } from "../../../src/metadata/metadata.ts";

test("a refusal tells that the past is another one while entries of the journal are applied: it is not forgotten", () => {
  const metadata = createMetadata(openDatabase(":memory:"), parseRequest);
  const history = new GatewayHistory(metadata);
  const entry = { position: 1_000, nodeId: "n", revision: 1, time: "2026-01-01T00:00:00.000Z" };
  metadata.transaction(() => history.noteFollowed([entry]));
  expect([metadata.settings.get("followed"), history.isRolledBack()]).toEqual([JSON.stringify(entry), false]);
  history.noteRollback();
  metadata.transaction(() => history.noteFollowed([{ ...entry, position: 1_001 }]));
  expect([history.isRolledBack(), history.last()]).toEqual([true, undefined]);
  metadata.close();
});
