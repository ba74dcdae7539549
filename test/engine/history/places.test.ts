/** What is asked and walked for the names of long lists of the past. Counted, not timed. */
import { expect, test } from "vitest";
import type { Client, NodeListOptions } from "../../../src/client/client.ts";
import { ALL_FEATURES } from "../../../src/contract/features.ts";
import type { ListedNode, Version } from "../../../src/contract/resources.ts";
import { createPastLists } from "../../../src/engine/history/past-lists.ts";
import type { HistoryPlace } from "../../../src/engine/history/place.ts";
import { createPlaces } from "../../../src/engine/history/places.ts";
import { sleep } from "../../../src/lib/runtime.ts";
import { createBytesWorld } from "../support/bytes-world.ts";
import { nodeOf, TIME } from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;
const AT = "2025-01-01T00:00:00.000Z";

const folderOf = (view: "at" | "versions" | "deleted" | "now"): HistoryPlace => ({
  is: "folder",
  view: view === "at" ? { show: view, at: AT } : { show: view },
  node: "folder",
  mtime: "0.000000000",
  isDeleted: false,
});
const nameOf = (index: number) => `n${String(index).padStart(6, "0")}`;

interface Asked {
  /** Questions for all names of a list, by their first page. */
  lists: number;
  /** Questions for one name. */
  names: number;
  /** How often a node's name, or a version's time, was read. */
  walked: number;
}

/** `nodes`: in a folder, or deleted from it, by name. `pageMs`: how long the gateway takes for a page. */
async function begin(
  nodes: readonly ListedNode[],
  { versions = [], pageMs = 0 }: { versions?: readonly Version[]; pageMs?: number } = {},
) {
  const world = await createBytesWorld();
  const asked: Asked = { lists: 0, names: 0, walked: 0 };
  const watched = <T extends object>(item: T, field: keyof T): T => {
    const value = item[field];
    const get = () => {
      asked.walked += 1;
      return value;
    };
    return Object.defineProperty({ ...item }, field, { get });
  };
  const counted = nodes.map((node) => watched(node, "name"));
  const countedVersions = versions.map((version) => watched(version, "createdAt"));
  async function page<T>(items: readonly T[], { after = "", pageSize = 50 }: NodeListOptions) {
    if (pageMs > 0) await sleep(world.context.runtime, pageMs);
    const from = Number(after);
    const next = from + pageSize < items.length ? String(from + pageSize) : null;
    const part = items.slice(from, from + pageSize);
    return { items: part, totalCount: items.length, pageNo: 1, pageSize, asOf: 5, next };
  }
  const client: Client = {
    ...world.context.client,
    features: ALL_FEATURES,
    listNodes(options = {}) {
      const { name, deleted = false } = options;
      if (nodes.length > 0 && deleted !== (nodes[0]?.deletedAt !== undefined)) return page([], options);
      if (name === undefined && options.after === "") asked.lists += 1;
      if (name !== undefined) asked.names += 1;
      const index = name === undefined ? undefined : nodes.findIndex((node) => node.name === name);
      return page(index === undefined ? counted : counted.slice(index, index + 1), options);
    },
    listVersions(_, options = {}) {
      if (options.after === "") asked.lists += 1;
      return page(countedVersions, options);
    },
  };
  const context = { ...world.context, client };
  const places = createPlaces(context, createPastLists(context));
  /** As `ls -l` does: it lists, and looks up each name. */
  async function listLong(parent: HistoryPlace, lookups: number, each: () => Promise<unknown> = async () => {}) {
    const listed = [...(await finished(places.list(parent, SIGNAL)))];
    for (const [name, place] of listed.slice(0, lookups)) {
      expect(await finished(places.child(parent, name, SIGNAL))).toEqual(place);
      await each();
    }
    return listed.length;
  }
  async function finished<T>(work: Promise<T>): Promise<T> {
    if (pageMs === 0) return work;
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    over.catch(() => {});
    while (!isOver) await world.clock.advance(1);
    return over;
  }
  return { asked, places, listLong, clock: world.clock };
}

const NODES = Array.from({ length: 5_000 }, (_, index) =>
  nodeOf(nameOf(index), { parentId: "folder", attributes: { mtime: `${index}.000000000` } }),
);

test.each(["at", "now", "versions", "deleted"] as const)(
  "all names of a list are looked up without walking it for each: %s",
  async (view) => {
    const nodes = view === "deleted" ? NODES.map((node) => ({ ...node, deletedAt: TIME, deletedBy: null })) : NODES;
    const { asked, listLong } = await begin(nodes);
    expect(await listLong(folderOf(view), 3_000)).toBe(nodes.length);
    expect(asked.lists).toBe(1);
    expect(asked.walked).toBeLessThan(20 * nodes.length);
  },
);

test("all versions of a file are looked up by one list", async () => {
  const version = (number: number): Version => ({
    ...{ id: `v${number}`, nodeId: "file", number, branch: "main", size: 1, contentHash: null },
    ...{ mimeType: "text/plain", createdAt: TIME, by: null, attributes: {} },
  });
  const versions = Array.from({ length: 5_000 }, (_, index) => version(index + 1));
  const { asked, listLong } = await begin([], { versions });
  const parent: HistoryPlace = { is: "versions", node: "file", name: "a.txt", mtime: "0.000000000" };
  expect(await listLong(parent, versions.length)).toBe(versions.length);
  expect(asked.lists).toBe(1);
  expect(asked.walked).toBeLessThan(20 * versions.length);
});

test("a list that takes long is not read again for every few names", async () => {
  const { asked, listLong, clock } = await begin(NODES, { pageMs: 500 });
  // A name takes a millisecond.
  await listLong(folderOf("versions"), 3_000, () => clock.advance(1));
  expect(asked.lists).toBe(1);
});

const MANY = Array.from({ length: 150_000 }, (_, index) => nodeOf(nameOf(index), { parentId: "folder" }));

test("names of a list that is too long for memory are asked for one by one", async () => {
  const { asked, places, listLong } = await begin(MANY);
  expect(await listLong(folderOf("at"), 100)).toBe(MANY.length);
  expect(asked).toMatchObject({ lists: 1, names: 100 });
  expect(await places.child(folderOf("at"), "not there", SIGNAL)).toBeUndefined();
  expect(asked).toMatchObject({ lists: 1, names: 101 });
});

test("deleted nodes of a list that is too long for memory are found by the name that they had", async () => {
  const nodes = MANY.map((node) => ({ ...node, name: `${node.name}.txt`, deletedAt: TIME, deletedBy: null }));
  const { asked, listLong } = await begin(nodes);
  await listLong(folderOf("deleted"), 20);
  expect(asked).toMatchObject({ lists: 1, names: 20 });
});

test("a folder has the time that it had", async () => {
  const mtime = "1700000000.000000001";
  const child = nodeOf("child", { kind: "folder", parentId: "folder", attributes: { mtime } });
  const { places } = await begin([child]);
  for (const view of ["at", "versions", "now"] as const) {
    expect(await places.child(folderOf(view), "child", SIGNAL)).toMatchObject({ mtime });
  }
});

test("a relative moment stands still while it is used, for a minute at most", async () => {
  const { places, clock } = await begin([]);
  const moment = async () => {
    const place = await places.child({ is: "moments" }, "10m", SIGNAL);
    return place?.is === "link" ? place.target : expect.unreachable();
  };
  const first = await moment();
  for (let second = 0; second < 59; second += 1) {
    await clock.advance(1_000);
    expect(await moment()).toBe(first);
  }
  await clock.advance(1_000);
  const second = await moment();
  expect(Date.parse(second) - Date.parse(first)).toBe(60_000);
  await clock.advance(2_000);
  expect(Date.parse(await moment()) - Date.parse(second)).toBe(2_000);
});
