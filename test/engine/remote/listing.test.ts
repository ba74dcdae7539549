/** What a listing of a folder makes of it, and what it costs those who wait beside it. */
import { expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { limitList } from "../../../src/engine/host/index.ts";
import { relistFolder } from "../../../src/engine/remote/listing.ts";
import { minus } from "../../../src/lib/clocks.ts";
import { sleep } from "../../../src/lib/runtime.ts";
import { inodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { recordedRows } from "../../support/recorded-rows.ts";
import { createBytesWorld, type Parts, withParts } from "../support/bytes-world.ts";
import { nodeOf } from "../support/rows-world.ts";

const SIGNAL = new AbortController().signal;
const ROOT = nodeOf("root", { kind: "folder", parentId: null, name: "" });

/** `client` answers instead of the scripted one. `onRead`: rows that one statement gave. */
async function begin(client: Partial<Client>, onRead: (rows: number) => void = () => {}) {
  const world = await createBytesWorld(
    {},
    { rows: (database) => recordedRows(database, (sql, rows) => sql.trimStart().startsWith("SELECT") && onRead(rows)) },
  );
  const { metadata } = world.context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, ROOT));
  const context: Parts = withParts(world.context, { client: { ...world.context.client, ...client } });
  return { context, metadata, clock: world.clock };
}

/** Runs what waits for nothing but its turn. */
async function finished<T>(clock: { advance(milliseconds: number): Promise<void> }, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  over.catch(() => {});
  while (!isOver) await clock.advance(1);
  return over;
}

function pageOf(nodes: readonly Node[], after: string | undefined, size: number) {
  const from = Number(after ?? 0);
  const next = from + size < nodes.length ? String(from + size) : null;
  return { items: nodes.slice(from, from + size), totalCount: nodes.length, pageNo: 1, pageSize: size, asOf: 5, next };
}

const noNews: Partial<Client> = {
  readJournal: async () => ({ items: [], totalCount: 0, pageNo: 1, pageSize: 500, asOf: 5 }),
};

test("a large folder is compared with its list in parts: others have their turn in between", async () => {
  const nodes = Array.from({ length: 4_000 }, (_, index) => nodeOf(`n${index}`));
  let most = 0;
  const { context, metadata, clock } = await begin(
    { ...noNews, listFolder: async (_, options) => pageOf(nodes, options?.after, 1_000) },
    (rows) => {
      most = Math.max(most, rows);
    },
  );
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  expect(metadata.inodes.get(ROOT_INODE)?.listed).toBe(5);
  expect(most).toBeLessThanOrEqual(1_000);
});

test("what comes in is like the gateway's: none of it waits to be sent", async () => {
  const group = { group: "g", hash: nodeOf("b").contentHash ?? "" };
  const nodes = [
    nodeOf("a"),
    nodeOf("b", { attributes: { link: group } }),
    nodeOf("c", { attributes: { link: group } }),
    nodeOf("d", { kind: "folder", head: null, contentHash: null, size: 0 }),
    nodeOf("e", { attributes: { type: "symlink", target: "a" } }),
  ];
  const listFolder: Client["listFolder"] = async (_, options) => pageOf(nodes, options?.after, 1_000);
  const { context, metadata, clock } = await begin({ ...noNews, listFolder });
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  expect(metadata.nodes.countBelow("root")).toBe(nodes.length);
  expect(metadata.nodes.dirty(10)).toEqual([]);
});

test("names that are behind come in without a look at all the others for each, and are looked at in the end", async () => {
  const linked = (id: string, hash: string, saves: string[]) =>
    nodeOf(id, { contentHash: hash, attributes: { link: { group: "g", hash, saves } } });
  const behind = Array.from({ length: 400 }, (_, index) => linked(`n${index}`, "old", ["old.1"]));
  const nodes = [linked("newest", "new", ["new.2", "old.1"]), ...behind];
  let read = 0;
  const { context, metadata, clock } = await begin(
    { ...noNews, listFolder: async (_, options) => pageOf(nodes, options?.after, 1_000) },
    (rows) => {
      read += rows;
    },
  );
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  expect(read).toBeLessThan(10 * nodes.length);
  expect(metadata.entries.links(metadata.entries.find(ROOT_INODE, "newest")?.inode ?? inodeId(0))).toBe(nodes.length);
  const waiting = () => behind.filter(({ id }) => metadata.nodes.ofNodeId(id)?.due != null).length;
  expect(waiting()).toBe(0);
  await clock.advance(120_000);
  let slices = 0;
  while (context.planner.endLinkLeases()) slices += 1;
  expect(slices).toBeGreaterThan(1);
  expect(waiting()).toBe(behind.length);
});

test("whatever the list of a large folder does not show is asked for by its id", async () => {
  let nodes = Array.from({ length: 2_500 }, (_, index) => nodeOf(`n${index}`));
  const asked: string[] = [];
  const { context, metadata, clock } = await begin({
    ...noNews,
    listFolder: async (_, options) => pageOf(nodes, options?.after, 1_000),
    async getNode(id) {
      asked.push(id);
      return nodeOf(id, { revision: 2, name: `${id} moved` });
    },
  });
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  metadata.inodes.update(ROOT_INODE, { listed: null });
  const gone = ["n0", "n1300", "n2499"];
  nodes = nodes.filter(({ id }) => !gone.includes(id));
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  expect(asked.sort()).toEqual(gone);
  expect(metadata.entries.find(ROOT_INODE, "n1300 moved")).toBeDefined();
});

test("of many that it does not show, some are asked for at a time; one that is not answered ends it", async () => {
  let nodes = Array.from({ length: 100 }, (_, index) => nodeOf(`n${index}`));
  let [asked, underWay, most] = [0, 0, 0];
  let fails = true;
  const { context, metadata, clock } = await begin({
    ...noNews,
    listFolder: async (_, options) => pageOf(nodes, options?.after, 1_000),
    async getNode(id) {
      asked += 1;
      underWay += 1;
      most = Math.max(most, underWay);
      await sleep(context.runtime, 20);
      underWay -= 1;
      if (fails) throw new RemoteError("server", "away");
      return nodeOf(id, { revision: 2, name: `${id} moved` });
    },
  });
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  nodes = [];
  await expect(finished(clock, relistFolder(context, ROOT_INODE, SIGNAL))).rejects.toThrow("away");
  expect([asked, underWay, most]).toEqual([8, 0, 8]);
  fails = false;
  const before = clock.elapsed();
  await finished(clock, relistFolder(context, ROOT_INODE, SIGNAL));
  expect([asked, most]).toEqual([108, 8]);
  expect(minus(clock.elapsed(), before)).toBeLessThan(100 * 20);
  expect(metadata.entries.find(ROOT_INODE, "n99 moved")).toBeDefined();
});

for (const code of ["server", "throttled", "offline"] as const) {
  test(`a passing failure (${code}) in the middle of a list is not shown`, async () => {
    const nodes = ["a", "b", "c"].map((id) => nodeOf(id));
    let failures = 3;
    const { context, metadata, clock } = await begin({
      ...noNews,
      async listFolder(_, options) {
        if (options?.after === "1" && failures-- > 0) throw new RemoteError(code, "not now", { retryAfterMs: 300 });
        return pageOf(nodes, options?.after, 1);
      },
    });
    const begun = clock.elapsed();
    await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
    expect(metadata.inodes.get(ROOT_INODE)?.listed).toBe(5);
    expect(minus(clock.elapsed(), begun)).toBeLessThan(1_500);
  });
}

test("a list that goes on failing fails; at once, where the gateway is away or nobody waits for the list", async () => {
  let calls = 0;
  const failing = (code: "server" | "offline") => ({
    async listFolder() {
      calls += 1;
      throw new RemoteError(code, "not now");
    },
  });
  const first = await begin(failing("server"));
  await expect(finished(first.clock, first.context.folders.complete(ROOT_INODE, SIGNAL))).rejects.toThrow("not now");
  expect(calls).toBe(4);
  calls = 0;
  const second = await begin(failing("offline"));
  second.context.network.failed(new RemoteError("offline", "away"));
  await expect(finished(second.clock, second.context.folders.complete(ROOT_INODE, SIGNAL))).rejects.toThrow("not now");
  expect(calls).toBe(1);
  calls = 0;
  const third = await begin(failing("server"));
  await expect(finished(third.clock, relistFolder(third.context, ROOT_INODE, SIGNAL))).rejects.toThrow("not now");
  expect(calls).toBe(1);
});

test.each([
  { what: "whose cursor comes again", next: () => "again" },
  { what: "with another cursor each time", next: (asked: number) => `page ${asked}` },
])("a list without an end, $what, fails", async ({ next }) => {
  let asked = 0;
  const { context, metadata, clock } = await begin({
    ...noNews,
    async listFolder() {
      asked += 1;
      return { ...pageOf([nodeOf("a"), nodeOf("b")], undefined, 2), next: next(asked) };
    },
  });
  await expect(finished(clock, context.folders.complete(ROOT_INODE, SIGNAL))).rejects.toThrow(
    /show nothing that others/,
  );
  expect(asked).toBeLessThan(10);
  expect(metadata.inodes.get(ROOT_INODE)?.listed ?? null).toBeNull();
});

/** A list of a thousand new names a page, without an end; each page takes a while. */
async function endless() {
  let asked = 0;
  const sim = await begin({
    ...noNews,
    async listFolder() {
      asked += 1;
      const first = asked * 10;
      await sleep(sim.context.runtime, 20);
      const items = Array.from({ length: 10 }, (_, index) => nodeOf(`n${first + index}`));
      return { items, totalCount: 10, pageNo: 1, pageSize: 1_000, asOf: 5, next: `page ${asked}` };
    },
  });
  return { ...sim, asked: () => asked };
}

test("a list without an end ends with the last who waits for it", async () => {
  const { context, clock, asked } = await endless();
  const [first, second] = [new AbortController(), new AbortController()];
  const waiting = [first, second].map(({ signal }) => context.folders.complete(ROOT_INODE, signal));
  for (const one of waiting) one.catch(() => {});
  await clock.advance(1_000);
  first.abort();
  await expect(waiting[0]).rejects.toThrow("given up");
  const before = asked();
  await clock.advance(1_000);
  expect(asked()).toBeGreaterThan(before + 10);
  second.abort();
  const left = asked();
  await clock.advance(10_000);
  expect(asked()).toBeLessThanOrEqual(left + 1);
  expect(context.listings.size).toBe(1);
  await clock.advance(60_000);
  expect([context.listings.size, asked() <= left + 1]).toEqual([0, true]);
});

test("a list that was given up is gone on with by who asks soon after", async () => {
  const nodes = Array.from({ length: 4_000 }, (_, index) => nodeOf(`n${index}`));
  const asked: (string | undefined)[] = [];
  const { context, metadata, clock } = await begin({
    ...noNews,
    async listFolder(_, options) {
      asked.push(options?.after);
      await sleep(context.runtime, 1_000);
      return pageOf(nodes, options?.after, 1_000);
    },
  });
  const first = new AbortController();
  const given = context.folders.complete(ROOT_INODE, first.signal);
  given.catch(() => {});
  await clock.advance(1_500);
  first.abort();
  await clock.advance(30_000);
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  expect(asked).toEqual([undefined, "1000", "2000", "3000"]);
  expect(metadata.nodes.countBelow("root")).toBe(nodes.length);
});

test("who joined a list that hung asks again himself", async () => {
  let asked = 0;
  const { context, metadata, clock } = await begin({
    ...noNews,
    async listFolder(_, options) {
      asked += 1;
      if (asked > 1) return pageOf([nodeOf("a")], options?.after, 1_000);
      await sleep(context.runtime, 10_000);
      throw new RemoteError("silent", "no answer within 10 s");
    },
  });
  const first = context.folders.complete(ROOT_INODE, SIGNAL);
  first.catch(() => {});
  await clock.advance(9_000);
  const second = context.folders.complete(ROOT_INODE, SIGNAL);
  await expect(finished(clock, first)).rejects.toThrow("no answer");
  await finished(clock, second);
  expect([asked, metadata.inodes.get(ROOT_INODE)?.listed]).toEqual([2, 5]);
});

test("a folder that is said to have more names than fit here is not listed", async () => {
  let asked = 0;
  const { context, metadata, clock } = await begin({
    ...noNews,
    async listFolder() {
      asked += 1;
      return { ...pageOf([nodeOf("a")], undefined, 1), totalCount: 1_000_001, next: "b" };
    },
  });
  await expect(finished(clock, context.folders.complete(ROOT_INODE, SIGNAL))).rejects.toMatchObject({ code: "EFBIG" });
  expect([asked, metadata.nodes.countBelow("root")]).toEqual([1, 0]);
});

test("a list has so many items at most, whatever it says of itself, and an end", () => {
  const page = (count: number, totalCount = count) => ({ items: Array.from({ length: count }), totalCount });
  const check = limitList("names");
  for (let pages = 0; pages < 100; pages += 1) check(page(10_000));
  expect(() => check(page(1))).toThrow("names: expected at most 1000000, got 1000001");
  const empty = limitList("names");
  expect(() => {
    for (let pages = 0; pages < 100; pages += 1) empty(page(0));
  }).toThrow(/pages in a row are empty/);
});

test("of extended attributes, and of those nobody here knows, only as much is taken over as could be set here", async () => {
  const text = (bytes: number) => "A".repeat(bytes);
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`user.${index}`, text(60_000)]));
  const nodes = [
    nodeOf("large", { attributes: { mode: 0o600, xattrs: { "user.large": text(100_000), "user.small": "AAAA" } } }),
    nodeOf("many", { attributes: { mode: 0o600, xattrs: many } }),
    nodeOf("strange", { attributes: { mode: 0o600, strange: text(1_000_000), known: 1 } }),
    nodeOf("plain", { attributes: { mode: 0o600, xattrs: { "user.a": "AAAA" }, known: 1 } }),
  ];
  const listFolder: Client["listFolder"] = async (_, options) => pageOf(nodes, options?.after, 1_000);
  const { context, metadata, clock } = await begin({ ...noNews, listFolder });
  await finished(clock, context.folders.complete(ROOT_INODE, SIGNAL));
  const attributes = (name: string) =>
    metadata.inodes.get(metadata.entries.find(ROOT_INODE, name)?.inode ?? inodeId(0))?.attributes;
  expect(attributes("large")).toEqual({ mode: 0o600, xattrs: { "user.small": "AAAA" } });
  expect(Object.keys(attributes("many")?.xattrs ?? {})).toEqual(["user.0", "user.1", "user.2", "user.3"]);
  expect(attributes("strange")).toMatchObject({ mode: 0o600, known: 1 });
  expect(attributes("strange")).not.toHaveProperty("strange");
  expect(attributes("plain")).toEqual({ mode: 0o600, xattrs: { "user.a": "AAAA" }, known: 1 });
  // Nothing of it is to be sent: what was left out stays at the gateway.
  expect(metadata.nodes.dirty(10)).toEqual([]);
  expect(JSON.stringify(nodes.map(({ id }) => metadata.nodes.ofNodeId(id)?.base)).length).toBeLessThan(300_000);
});
