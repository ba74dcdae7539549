/**
 * The late readers, the path index and the journal: whatever is done to lag and clock, what they
 * show only grows, in the order of the changes, and never waits longer than the lag.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { FaultOptions } from "../../src/gateway/fault-options.ts";
import { DAY_MS } from "../../src/lib/time.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

const journal = async (core: TestCore) =>
  (await core.call("GET", "/v1/journal", { query: { pageSize: "1000" } })).json.items.map(({ name }) => name);

test("what was shown before its lag was raised stays, also if nobody had looked yet", async () => {
  const core = createTestCore();
  await core.file("/a", "x");
  core.gateway.setOptions({ pathLagMs: 60_000, journalLagMs: 60_000, idLagMs: 60_000 });
  expect(await core.names("/")).toEqual(["a"]);
  expect(await journal(core)).toEqual(["", "a"]);
  const late = await core.file("/b", "x");
  expect(await core.names("/")).toEqual(["a"]);
  expect((await core.call("GET", `/v1/nodes/${late.id}`)).status).toBe(404);
  await core.clock.advance(60_000);
  core.gateway.setOptions({ pathLagMs: DAY_MS, journalLagMs: DAY_MS, idLagMs: DAY_MS });
  expect(await core.names("/")).toEqual(["a", "b"]);
  expect((await core.call("GET", `/v1/nodes/${late.id}`)).status).toBe(200);
});

test("nor does a restart with more lag hide it", async () => {
  const first = createTestCore();
  await first.file("/a", "x");
  const second = first.restart({ pathLagMs: DAY_MS, journalLagMs: DAY_MS });
  expect(await second.names("/")).toEqual(["a"]);
  await second.file("/b", "x");
  second.gateway.setOptions({ pathLagMs: 0, journalLagMs: 0 });
  expect(await second.names("/")).toEqual(["a", "b"]);
  const third = second.restart({ pathLagMs: DAY_MS, journalLagMs: DAY_MS });
  expect(await third.names("/")).toEqual(["a", "b"]);
  expect(await journal(third)).toEqual(["", "a", "b"]);
});

test("a clock that goes back holds nothing up", async () => {
  const core = createTestCore({ pathLagMs: 3000, journalLagMs: 5000, idLagMs: 4000 });
  await core.clock.advance(10_000);
  await core.file("/a", "x");
  core.clock.jump(-DAY_MS);
  const b = await core.file("/b", "x");
  expect(await core.names("/")).toEqual([]);
  await core.clock.advance(2999);
  expect(await core.names("/")).toEqual([]);
  await core.clock.advance(1);
  expect(await core.names("/")).toEqual(["a", "b"]);
  expect((await core.call("GET", `/v1/nodes/${b.id}`)).status).toBe(404);
  await core.clock.advance(1000);
  expect((await core.call("GET", `/v1/nodes/${b.id}`)).status).toBe(200);
  await core.clock.advance(1000);
  expect(await journal(core)).toEqual(["", "a", "b"]);
});

test("a clock that goes forward shows nothing early", async () => {
  const core = createTestCore({ pathLagMs: 3000, journalLagMs: 3000, idLagMs: 3000 });
  await core.clock.advance(10_000);
  const before = await journal(core);
  const a = await core.file("/a", "x");
  core.clock.jump(DAY_MS);
  expect([await core.names("/"), await journal(core)]).toEqual([[], before]);
  expect((await core.call("GET", `/v1/nodes/${a.id}`)).status).toBe(404);
});

test("a restart with the clock back waits for the lag, once, in order", async () => {
  const first = createTestCore({ pathLagMs: 3000 });
  await first.clock.advance(10_000);
  await first.file("/a", "x");
  await first.clock.advance(1000);
  await first.file("/b", "x");
  first.clock.jump(-DAY_MS);
  const core = first.restart({ idLagMs: 2000 });
  const c = await core.file("/c", "x");
  expect(await core.names("/")).toEqual([]);
  expect((await core.call("GET", `/v1/nodes/${c.id}`)).status).toBe(404);
  await core.clock.advance(3000);
  expect(await core.names("/")).toEqual(["a", "b", "c"]);
});

test("an id that is not found yet is not found after a restart either, for the rest of its time", async () => {
  const first = createTestCore({ idLagMs: 3000 });
  const a = await first.file("/a", "x");
  await first.clock.advance(2000);
  const core = first.restart();
  const status = async () => (await core.call("GET", `/v1/nodes/${a.id}`)).status;
  expect(await status()).toBe(404);
  await core.clock.advance(999);
  expect(await status()).toBe(404);
  await core.clock.advance(1);
  expect(await status()).toBe(200);
});

test("with jitter each change waits a time of its own, but never overtakes", async () => {
  const core = createTestCore({ pathLagMs: 1000, pathLagJitterMs: 4000, idLagMs: 1000, idLagJitterMs: 4000 });
  await core.clock.advance(10_000);
  const made: string[] = [];
  const ids: string[] = [];
  for (let index = 0; index < 20; index += 1) {
    const name = `f-${String(index).padStart(2, "0")}`;
    ids.push((await core.file(`/${name}`, "x")).id);
    made.push(name);
    await core.clock.advance(100);
  }
  const steps = new Set<number>();
  const foundAt = new Map<string, number>();
  for (let time = 0; time < 5000; time += 50) {
    const names = await core.names("/");
    expect(names).toEqual(made.slice(0, names.length));
    steps.add(names.length);
    for (const id of ids) {
      const { status } = await core.call("GET", `/v1/nodes/${id}`);
      // Found once, found for ever.
      if (foundAt.has(id)) expect(status).toBe(200);
      else if (status === 200) foundAt.set(id, time);
    }
    await core.clock.advance(50);
  }
  expect(await core.names("/")).toEqual(made);
  expect(steps.size).toBeGreaterThan(3);
  expect(foundAt.size).toBe(ids.length);
  expect(new Set(foundAt.values()).size).toBeGreaterThan(5);
});

/** A history of changes, waits, clocks, lags and restarts. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ do: "create" as const }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 500, 3000) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("jump" as const), ms: fc.constantFrom(-DAY_MS, -1000, 1000, DAY_MS) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("lag" as const),
      lag: fc.constantFrom(0, 1000, 5000),
      jitter: fc.constantFrom(0, 2000),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "restart" as const }) },
);

test("what is shown only grows, in order, and is there when the lag is over: by seed", async () => {
  const seed = Number(process.env.GATEWAY_SEED ?? 1);
  const history = fc.asyncProperty(fc.array(step, { maxLength: 30, size: "max" }), async (steps) => {
    let core = createTestCore();
    let options: Partial<FaultOptions> = {};
    const made: string[] = [];
    let shown = 0;
    let told = 0;
    const look = async () => {
      const names = await core.names("/");
      expect(names).toEqual(made.slice(0, names.length));
      expect(names.length).toBeGreaterThanOrEqual(shown);
      shown = names.length;
      const entries = (await journal(core)).slice(1);
      expect(entries).toEqual(made.slice(0, entries.length));
      expect(entries.length).toBeGreaterThanOrEqual(told);
      told = entries.length;
    };
    for (const item of steps) {
      if (item.do === "create") {
        const name = `f-${String(made.length).padStart(3, "0")}`;
        await core.file(`/${name}`, "x");
        made.push(name);
      } else if (item.do === "wait") await core.clock.advance(item.ms);
      else if (item.do === "jump") core.clock.jump(item.ms);
      else if (item.do === "restart") core = core.restart(options);
      else {
        const { lag, jitter } = item;
        options = { pathLagMs: lag, journalLagMs: lag, pathLagJitterMs: jitter, journalLagJitterMs: jitter };
        core.gateway.setOptions(options);
      }
      await look();
    }
    await core.clock.advance((options.pathLagMs ?? 0) + (options.pathLagJitterMs ?? 0));
    await look();
    expect([shown, told]).toEqual([made.length, made.length]);
  });
  await fc.assert(history, { seed, numRuns: 60 });
});
