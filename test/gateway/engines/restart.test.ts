/** A gateway that ends while executions wait and run, by itself or not, on a virtual clock; kills of real ones: kills.test.ts. */
import { beforeEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../../src/lib/sqlite/index.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { createMemoryBlobs } from "../../support/memory-blobs.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";
import { addEngine, begin, finish, install, shown, start, stateOf, told } from "./support.ts";

let core: TestCore;
let ids: string[];

beforeEach(async () => {
  core = createTestCore();
  addEngine(core, "scan");
  await install(core, "scan");
  await begin(core);
  ids = [];
  for (let count = 0; count < 6; count += 1) ids.push((await start(core, "scan")).id);
});

const states = () => Promise.all(ids.map((id) => stateOf(core, id)));
const INTERRUPTED = ["interrupted", "interrupted", "interrupted", "interrupted"];

test("what ran is interrupted once what is left of it has been ended; what waited runs", async () => {
  core.engines.die();
  core = core.restart();
  expect(await states()).toEqual(["running", "running", "running", "running", "queued", "queued"]);
  await core.gateway.engines?.recover();
  expect(core.engines.left).toEqual([ids.slice(0, 4)]);
  await begin(core);
  expect(await states()).toEqual([...INTERRUPTED, "running", "running"]);
  expect(core.engines.started.map(({ id }) => id)).toEqual(ids);
  expect(await shown(core, ids[0] ?? "")).toMatchObject({ detail: "The gateway ended while it ran.", exitCode: null });
  expect(await told(core, ids[0] ?? "")).toEqual(["execution.queued", "execution.running", "execution.interrupted"]);
});

test("a gateway that dies while it recovers does so again", async () => {
  core.engines.die();
  core = core.restart();
  core.engines.processes.endLeft = () => new Promise(() => {});
  void core.gateway.engines?.recover();
  await core.clock.settle();
  expect((await states()).slice(0, 4)).toEqual(["running", "running", "running", "running"]);
});

test("a gateway that closes ends what runs, interrupted, and begins nothing", async () => {
  await core.gateway.engines?.close();
  expect(await states()).toEqual([...INTERRUPTED, "queued", "queued"]);
  expect(core.engines.running()).toEqual([]);
  await start(core, "scan");
  expect(core.engines.started).toHaveLength(4);
  core = core.restart();
  await core.gateway.engines?.recover();
  expect(core.engines.left).toEqual([[]]);
  await begin(core);
  await finish(core, ids[4] ?? "");
  expect(await states()).toEqual([...INTERRUPTED, "succeeded", "running"]);
});

test("one that was taken when the gateway closes does not start", async () => {
  await finish(core, ids[0] ?? "");
  // Taken now, and started a moment later.
  core.engines.end(ids[1] ?? "");
  const closed = core.gateway.engines?.close();
  await closed;
  expect(core.engines.started.map(({ id }) => id)).not.toContain(ids[5]);
  expect((await states())[5]).toBe("queued");
});

describe("a program starts only once it is committed that its execution runs", () => {
  const held: (() => void)[] = [];
  let isHeld: boolean;
  let isFull: boolean;
  let id: string;

  beforeEach(async () => {
    [isHeld, isFull] = [false, false];
    const clock = {
      ...createVirtualClock(),
      step(label: string) {
        if (isFull && label === "gateway: about to commit") throw new Error("no room");
      },
    };
    const turn = (callback: () => void) => void (isHeld ? held.push(callback) : setImmediate(callback));
    core = createTestCore({}, { clock, blobs: createMemoryBlobs(), database: openSqlite(":memory:"), turn });
    addEngine(core, "scan");
    await install(core, "scan");
    ({ id } = await start(core, "scan"));
    isHeld = true;
    await begin(core);
    expect([held.length, core.engines.started.length]).toEqual([1, 0]);
  });

  async function failToCommit(): Promise<void> {
    [isFull, isHeld] = [true, false];
    held.shift()?.();
    isFull = false;
    await core.clock.settle();
  }

  test("where that fails, it waits as before", async () => {
    await failToCommit();
    expect([await stateOf(core, id), core.engines.started.length]).toEqual(["queued", 0]);
    isHeld = true;
    await core.clock.advance(1000);
    expect([held.length, core.engines.started.length]).toEqual([1, 0]);
    held.shift()?.();
    await core.clock.settle();
    expect(core.engines.running()).toEqual([id]);
  });

  test("where that fails, and it is cancelled by then, it is cancelled", async () => {
    const cancelled = core.call("POST", `/v1/executions/${id}/cancel`);
    await core.clock.settle();
    await failToCommit();
    expect([(await cancelled).status, await stateOf(core, id)]).toEqual([200, "cancelled"]);
    await core.clock.advance(1000);
    expect(core.engines.started).toEqual([]);
  });
});
