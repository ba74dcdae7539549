/** What a drain asks of the gateway while it waits for it. */
import { expect, test } from "vitest";
import type { Client, ListOptions } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { SETTLE_MS } from "../../../src/contract/features.ts";
import type { JournalEntry, Node } from "../../../src/contract/resources.ts";
import { isSettled } from "../../../src/engine/ops/drain.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type Parts, withParts } from "../support/bytes-world.ts";
import { EMPTY, hearJournal, make, makeWorld, nodeOf, rename, rowOf, sendNext, TIME } from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;

test("whether the index shows everything is not asked while the gateway wants a pause", async () => {
  const { context, metadata, clock } = await makeWorld();
  let asked = 0;
  const listFolder = async () => {
    asked += 1;
    if (asked > 1) return { items: [], totalCount: 0, pageNo: 1, pageSize: 1, asOf: 7, next: null };
    throw new RemoteError("throttled", "too many requests", { operation: "listNodes", retryAfterMs: 60_000 });
  };
  const asking: Parts = withParts(context, { client: { ...context.client, listFolder } });
  for (const what of ["written", "cursor"] as const) metadata.settings.set(what, "7");
  for (let waited = 0; waited < 59_000; waited += 250) {
    expect(await isSettled(asking, SIGNAL)).toBe(false);
    await clock.advance(250);
  }
  expect(asked).toBe(1);
  await clock.advance(1_000);
  expect(await isSettled(asking, SIGNAL)).toBe(true);
});

/** So many files that were made here; the gateway has each already, under the name that was asked for. */
async function joined(count: number) {
  const world = await makeWorld();
  const { metadata } = world;
  const nodes = Array.from({ length: count }, (_, index) => nodeOf(`n${index}`, { contentHash: EMPTY, size: 0 }));
  for (const node of nodes) {
    const attempt = sendNext(world, make(world, ROOT_INODE, node.name), `birth of ${node.id}`);
    world.context.answers.refused(attempt, new RemoteError("conflict", "taken", { node }));
    expect(rowOf(world, node.id)).toMatchObject({ dirtySince: null });
  }
  const gateway: { shows: readonly Node[]; asOf: number } = { shows: [], asOf: 5 };
  const asked: ListOptions[] = [];
  const listFolder: Client["listFolder"] = async (_, { signal: __, ...options } = {}) => {
    asked.push(options);
    const items = gateway.shows.filter(({ name }) => options.name === undefined || options.name === name);
    return { items, totalCount: items.length, pageNo: 1, pageSize: 1000, asOf: gateway.asOf, next: null };
  };
  const context: Parts = withParts(world.context, { client: { ...world.context.client, listFolder } });
  return { world, metadata, nodes, gateway, asked, settled: () => isSettled(context, SIGNAL) };
}

test("a node that is found under the name it was made with is waited for until a list shows it, and the journal is as far", async () => {
  const { metadata, nodes, gateway, asked, settled } = await joined(1);
  expect(await settled()).toBe(false);
  expect(await settled()).toBe(false);
  Object.assign(gateway, { shows: nodes, asOf: 7 });
  expect(await settled()).toBe(false);
  expect(asked).toEqual([{ name: "n0" }, { name: "n0" }, { name: "n0" }]);
  metadata.settings.set("cursor", "7");
  expect(await settled()).toBe(true);
  expect(asked.length).toBe(3);
});

test("where the journal tells of it, no list is asked for the node", async () => {
  const { world, metadata, gateway, asked, settled } = await joined(1);
  const told = { time: TIME, kind: "created", nodeId: "n0", parentId: "root", name: "n0" };
  const entry: JournalEntry = { ...told, position: 9, revision: 1 };
  const earlier = { ...entry, position: 8, revision: 0 };
  await hearJournal(world.context, [earlier]);
  expect(metadata.settings.getNumber("written")).toBe(0);
  await hearJournal(world.context, [earlier, entry]);
  expect(metadata.settings.getNumber("written")).toBe(9);
  gateway.asOf = 9;
  expect(await settled()).toBe(true);
  expect(asked).toEqual([{ pageSize: 1 }]);
});

test("a list that shows the node as it was before our change says nothing of it", async () => {
  const { world, gateway, nodes, settled } = await joined(1);
  const row = rowOf(world, "n0");
  rename(world, row, ROOT_INODE, "new");
  const [node = nodeOf("n0")] = nodes;
  const moved = { ...node, name: "new", revision: 2 };
  world.context.answers.acknowledge(sendNext(world, row, "move"), moved);
  Object.assign(gateway, { shows: [{ ...moved, revision: 1 }], asOf: 0 });
  expect(await settled()).toBe(false);
  gateway.shows = [moved];
  expect(await settled()).toBe(true);
});

test("hundreds of them in one folder are found by few lists, and while lists are late by one at each look", async () => {
  const { gateway, nodes, asked, settled } = await joined(300);
  gateway.asOf = 0;
  expect(await settled()).toBe(false);
  const byName = { name: expect.any(String) as string };
  expect(asked).toEqual([byName]);
  gateway.shows = nodes;
  expect(await settled()).toBe(true);
  expect(asked).toEqual([byName, byName, { pageSize: 1000 }]);
});

test.each(["moved elsewhere", "deleted elsewhere", "for the settle time"])(
  "nothing is waited for in vain: %s",
  async (what) => {
    const { world, gateway, nodes, asked, settled } = await joined(1);
    const [node = nodeOf("n0")] = nodes;
    gateway.asOf = 0;
    if (what === "moved elsewhere") {
      const moved = { ...node, name: "theirs", revision: 2 };
      world.context.observer.node(moved, "id");
      gateway.shows = [moved];
    } else if (what === "deleted elsewhere") world.context.observer.deletion("n0", 2, null);
    else await world.clock.advance(SETTLE_MS + 1);
    expect(await settled()).toBe(true);
    expect(asked).toEqual(what === "moved elsewhere" ? [{ name: "theirs" }] : []);
  },
);
