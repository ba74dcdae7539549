/**
 * A gateway that is killed between any two steps: the store's files are copied at each fault point, as kill -9 there would
 * leave them, and a gateway goes on with each copy. Every entry has one execution in the end, and every time at most one.
 */
import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { accountsInMemory } from "../../../src/gateway/accounts/index.ts";
import { openDatabase } from "../../../src/gateway/store.ts";
import type { Connection } from "../../../src/lib/sqlite/index.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { createMemoryBlobs } from "../../support/memory-blobs.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createVirtualClock, type VirtualClock } from "../../support/virtual-clock.ts";
import { endAll, executions, makeTrigger, withEngines } from "./support.ts";

const MINUTE = 60_000;
const SAVED = ["a", "b", "c", "d", "e", "f"];

interface Copy {
  readonly label: string;
  readonly folder: string;
  readonly time: number;
}

function opened(folder: string): Connection {
  const database = openDatabase(path.join(folder, "store.db"));
  onTestFinished(() => void database.close());
  return database;
}

/** Does all there is to be done. */
async function finish(core: TestCore, clock: VirtualClock): Promise<void> {
  for (let n = 0; n < 5; n += 1) {
    await endAll(core);
    await clock.advance(1000);
  }
  core.gateway.endStreams();
  await clock.settle();
}

async function startedFor(core: TestCore) {
  const all = await executions(core);
  return {
    entries: all.flatMap(({ cause }) => (cause?.entry === undefined ? [] : [cause.entry.position])),
    times: all.flatMap(({ cause }) => (cause?.scheduledFor === undefined ? [] : [cause.scheduledFor])),
  };
}

function savedIn({ database }: TestCore): number[] {
  return database
    .prepare<[], number>(
      "SELECT position FROM change WHERE kind = 'created' AND name IN ('a', 'b', 'c', 'd', 'e', 'f')",
    )
    .pluck()
    .all();
}

test("after kill -9 at any fault point each entry and each time has one execution", { timeout: 300_000 }, async () => {
  const folder = await temporaryFolder();
  const copies: Copy[] = [];
  let isCopying = false;
  const clock = createVirtualClock();
  const step = (label: string) => {
    if (!isCopying) return;
    const copy = path.join(folder, String(copies.length));
    mkdirSync(copy);
    for (const name of ["store.db", "store.db-wal"]) {
      if (existsSync(path.join(folder, name))) copyFileSync(path.join(folder, name), path.join(copy, name));
    }
    copies.push({ label, folder: copy, time: clock.wallClock() });
  };
  const accounts = accountsInMemory(clock);
  const blobs = createMemoryBlobs();
  const core = createTestCore({}, { clock: { ...clock, step }, blobs, database: opened(folder), accounts });
  await core.file("/inbox/before", "x");
  await withEngines(core, "scan", "sort");
  await makeTrigger(core, { on: { journal: { path: "/inbox/*" } } });
  await makeTrigger(core, { name: "by the minute", engine: "sort", on: { schedule: { cron: "* * * * *" } } });
  isCopying = true;
  for (const name of SAVED.slice(0, 3)) await core.file(`/inbox/${name}`, name);
  await clock.advance(MINUTE);
  await Promise.all(SAVED.slice(3).map((name) => core.file(`/inbox/${name}`, name)));
  await clock.advance(0);
  await endAll(core);
  isCopying = false;
  const whole = await startedFor(core);
  expect([whole.entries.length, whole.times.length]).toEqual([SAVED.length, 1]);
  core.gateway.endStreams();

  const labels = new Set(copies.map(({ label }) => label));
  for (const label of ["gateway: execution queued by a trigger", "gateway: trigger moved on", "gateway: committed"]) {
    expect([...labels]).toContain(label);
  }
  const met = { half: 0, all: 0 };
  for (const [n, copy] of copies.entries()) {
    const later = createVirtualClock(n + 2);
    later.jump(copy.time - later.wallClock());
    const again = createTestCore({}, { clock: later, blobs, database: opened(copy.folder), accounts });
    const before = await startedFor(again);
    await again.gateway.engines?.recover();
    again.gateway.engines?.begin("http://gateway.test");
    await finish(again, later);
    const after = await startedFor(again);
    expect([n, copy.label, after.entries]).toEqual([n, copy.label, savedIn(again)]);
    expect([n, copy.label, new Set(after.times).size]).toEqual([n, copy.label, after.times.length]);
    // The minute had come, or it had not.
    expect([n, copy.label, after.times.length]).toEqual([
      n,
      copy.label,
      copy.time >= Date.parse(whole.times[0] ?? "") ? 1 : 0,
    ]);
    if (before.entries.length < after.entries.length) met.half += 1;
    else met.all += 1;
  }
  expect(Math.min(met.half, met.all)).toBeGreaterThan(3);
});
