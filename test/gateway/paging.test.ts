/**
 * Pages against a plain sort, with random data: any list, order, page and moment, in folders small
 * and large, while everything changes.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { type Node, node } from "../../src/contract/resources.ts";
import { BIG_PLACES, countPlaces, MARKED_FIELDS } from "../../src/gateway/places.ts";
import { createStore } from "../../src/gateway/store.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { makeFilledFolder } from "../support/many-nodes.ts";
import { seededRandom } from "../support/virtual-clock.ts";

const SEED = Number(process.env.WSFS_SEED ?? 1);

let core: TestCore;
let random: () => number;
beforeEach(() => {
  core = createTestCore();
  random = seededRandom(SEED);
});

const below = (limit: number) => Math.floor(random() * limit);
const oneOf = <T>(choices: readonly T[]): T => {
  const choice = choices[below(choices.length)];
  if (choice === undefined) throw new Error("nothing to choose from");
  return choice;
};

const FIELDS = [
  "id",
  "kind",
  "path",
  "name",
  "parentId",
  "mimeType",
  "size",
  "head",
  "contentHash",
  "lastKey",
  "revision",
  "createdAt",
  "modifiedAt",
] as const;

async function page(query: Record<string, string>) {
  const answer = await core.call("GET", "/v1/nodes", { query });
  expect([answer.status, query, answer.json.detail]).toEqual([200, query, undefined]);
  const { items, ...rest } = answer.json;
  return { ...rest, items: items as unknown as Node[] };
}

/** All nodes of a folder in the order of their names, by the largest pages. */
async function everything(query: Record<string, string>): Promise<Node[]> {
  const nodes: Node[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const { items, next } = await page({ ...query, pageSize: "1000", after });
    nodes.push(...items);
    after = next;
  }
  return nodes;
}

const bytes = (text: string) => Buffer.from(text);
function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  return typeof a === "number" && typeof b === "number" ? a - b : Buffer.compare(bytes(String(a)), bytes(String(b)));
}

function sorted(nodes: readonly Node[], orderBy: string): string[] {
  const descending = orderBy.startsWith("-");
  const field = FIELDS.find((name) => name === orderBy.replace("-", ""));
  if (field === undefined) throw new Error(orderBy);
  const order = [...nodes].sort((a, b) => compare(a[field], b[field]) || compare(a.id, b.id)).map(({ id }) => id);
  return descending ? order.reverse() : order;
}

/** Every page by number, and the walk by after=, as the model says. */
async function checkPages(query: Record<string, string>, nodes: readonly Node[], pageSize: number): Promise<void> {
  const orderBy = query.orderBy ?? "name";
  const expected = sorted(nodes, orderBy);
  const count = Math.ceil(expected.length / pageSize);
  for (const pageNo of new Set([1, 2, 1 + below(count), count, count + 1])) {
    const { items, totalCount } = await page({ ...query, pageSize: String(pageSize), pageNo: String(pageNo) });
    const start = (pageNo - 1) * pageSize;
    expect([query, pageNo, totalCount, items.map(({ id }) => id)]).toEqual([
      query,
      pageNo,
      expected.length,
      expected.slice(start, start + pageSize),
    ]);
  }
  const walked: string[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const { items, next, totalCount } = await page({ ...query, pageSize: String(pageSize), after });
    walked.push(...items.map(({ id }) => id));
    expect(totalCount).toBe(expected.length);
    after = next;
  }
  expect([query, walked]).toEqual([query, expected]);
}

const LETTERS = ["a", "b", "Z", "-", ".", "é", "\u{1f600}", "\uff5e", "\u{10ffff}", "0"];
const randomName = () => Array.from({ length: 1 + below(4) }, () => oneOf(LETTERS)).join("") + below(1000);

interface World {
  readonly folders: string[];
  readonly files: Set<string>;
}

async function change(world: World): Promise<void> {
  const parentId = oneOf(world.folders);
  const file = world.files.size === 0 ? undefined : oneOf([...world.files]);
  const kind = below(10);
  if (kind < 4 || file === undefined) {
    const metadata = below(2) === 0 ? {} : { idempotencyKey: `k${core.clock.wallClock()}-${random()}` };
    const contentType = oneOf(["", "text/plain", "image/png"]);
    const answer = await core.upload(`/v1/files/${encodeURIComponent(randomName())}`, "x".repeat(below(4)), {
      query: { parentId },
      metadata,
      ...(contentType === "" ? {} : { contentType }),
    });
    if (answer.status === 201) world.files.add(answer.json.id);
  } else if (kind < 5) {
    const made = await core.call("POST", "/v1/nodes", { json: { parentId, name: randomName(), kind: "folder" } });
    if (made.status === 201 && world.folders.length < 8) world.folders.push(made.json.id);
  } else if (kind < 6) {
    await core.call("DELETE", `/v1/nodes/${file}`);
    world.files.delete(file);
  } else if (kind < 7) {
    await core.upload(`/v1/nodes/${file}/content`, "y".repeat(below(6)), { method: "PUT" });
  } else if (kind < 9) {
    await core.call("PATCH", `/v1/nodes/${file}`, { json: { parentId, name: randomName() } });
  } else {
    await core.call("PATCH", `/v1/nodes/${oneOf(world.folders)}`, { json: { parentId, name: randomName() } });
  }
  if (below(3) === 0) await core.clock.advance(below(5));
}

test("any order of any listing is a plain sort, now and at any moment before", { timeout: 300_000 }, async () => {
  const world: World = { folders: [core.workspace.root], files: new Set() };
  const moments: { at: string; listings: Map<string, Node[]>; trees: Map<string, Node[]>; paths: Node[] }[] = [];
  for (let round = 0; round < 8; round++) {
    for (let step = 0; step < 40; step++) await change(world);
    const at = new Date(core.clock.wallClock()).toISOString();
    await core.clock.advance(1);
    const listings = new Map<string, Node[]>();
    const trees = new Map<string, Node[]>();
    for (const parentId of world.folders) {
      listings.set(parentId, await everything({ parentId }));
      trees.set(parentId, await everything({ parentId, recursive: "true" }));
    }
    // A tree is its folders' listings, one below the other.
    const walk = (folder: string): Node[] =>
      (listings.get(folder) ?? []).flatMap((child) => [child, ...walk(child.id)]);
    const known = (folder: string) => walk(folder).map(({ id }) => id);
    const root = core.workspace.root;
    const own = (trees.get(root) ?? []).filter(({ parentId }) => listings.has(String(parentId)));
    expect(own.map(({ id }) => id).sort()).toEqual(known(root).sort());
    moments.push({ at, listings, trees, paths: trees.get(root) ?? [] });
    const parentId = oneOf(world.folders);
    for (const orderBy of [oneOf(FIELDS), `-${oneOf(FIELDS)}`]) {
      await checkPages({ parentId, orderBy }, listings.get(parentId) ?? [], 1 + below(7));
      const query = { parentId, orderBy, recursive: "true" };
      await checkPages(query, trees.get(parentId) ?? [], 1 + below(20));
    }
  }
  for (const { at, listings, trees, paths } of moments) {
    for (const [parentId, nodes] of listings) {
      expect([at, await everything({ parentId, at })]).toEqual([at, nodes]);
      expect(await everything({ parentId, at, recursive: "true" })).toEqual(trees.get(parentId));
    }
    const parentId = oneOf([...listings.keys()]);
    for (const field of FIELDS) {
      await checkPages({ parentId, at, orderBy: oneOf([field, `-${field}`]) }, listings.get(parentId) ?? [], 5);
    }
    for (const then of paths) {
      const path = then.path.split("/").map(encodeURIComponent).join("/").slice(1);
      expect(node.parse((await core.call("GET", `/v1/files/${path}`, { query: { at } })).json)).toEqual(then);
      if (then.kind !== "file") continue;
      const content = await core.call("GET", `/v1/nodes/${then.id}/content`, { query: { at } });
      expect([content.headers.etag, content.bytes.length]).toEqual([`"${then.head}"`, then.size]);
    }
    const [named] = paths;
    if (named === undefined) continue;
    const found = await page({ at, recursive: "true", name: named.name, path: "/" });
    expect(found.items.map(({ id }) => id).sort()).toEqual(
      paths
        .filter(({ name }) => name === named.name)
        .map(({ id }) => id)
        .sort(),
    );
  }
});

test("pages of one position are what was there at the first, in any order, whatever changes", {
  timeout: 300_000,
}, async () => {
  const world: World = { folders: [core.workspace.root], files: new Set() };
  for (let step = 0; step < 150; step++) await change(world);
  for (const field of FIELDS) {
    for (const recursive of ["false", "true"]) {
      const query = { path: "/", recursive, orderBy: oneOf([field, `-${field}`]), pageSize: "7" };
      const nodes = await everything({ path: "/", recursive });
      const walked: Node[] = [];
      const positions = new Set<number>();
      for (let after: string | null = ""; after !== null; ) {
        const { items, next, asOf } = await page({ ...query, after });
        walked.push(...items);
        positions.add(asOf);
        after = next;
        await change(world);
        // What is kept in memory is gone with it.
        if (below(3) === 0) core = core.restart();
      }
      expect([query, walked.map(({ id }) => id)]).toEqual([query, sorted(nodes, query.orderBy)]);
      const byId = new Map(nodes.map((item) => [item.id, item]));
      for (const item of walked) expect(item).toEqual(byId.get(item.id));
      expect(positions.size).toBe(1);
    }
  }
});

describe("a large folder", () => {
  const COUNT = BIG_PLACES + 900;
  let folder: string;
  beforeEach(() => {
    const { database, clock, workspace } = core;
    folder = makeFilledFolder({
      database,
      clock,
      workspace: workspace.id,
      parent: workspace.root,
      name: "large",
      count: COUNT,
      nameOf: (index) => `${LETTERS[index % LETTERS.length]}${(index * 7919) % COUNT}`,
      sizeOf: (index) => index % 10,
    });
  });

  async function disturb(nodes: readonly Node[], count: number): Promise<void> {
    for (let step = 0; step < count; step++) {
      const { id } = oneOf(nodes);
      const kind = below(4);
      if (kind === 0) await core.call("DELETE", `/v1/nodes/${id}`);
      else if (kind === 1) await core.call("PATCH", `/v1/nodes/${id}`, { json: { name: randomName() } });
      else if (kind === 2) await core.call("PATCH", `/v1/nodes/${id}`, { json: { parentId: core.workspace.root } });
      else await core.upload(`/v1/files/${encodeURIComponent(randomName())}`, "new", { query: { parentId: folder } });
      if (below(2) === 0) await core.clock.advance(1);
    }
  }

  test("is paged by its marks as a plain sort", { timeout: 300_000 }, async () => {
    await disturb(await everything({ parentId: folder }), 200);
    const nodes = await everything({ parentId: folder });
    expect(new Set(nodes.map(({ id }) => id)).size).toBe(nodes.length);
    for (const orderBy of ["name", "-name", "id", "-id", "createdAt", "-createdAt", "size", "-modifiedAt"]) {
      await checkPages({ parentId: folder, orderBy }, nodes, 400 + below(500));
    }
  });

  test("shows one position and any moment, by number too", { timeout: 300_000 }, async () => {
    const nodes = await everything({ parentId: folder });
    const at = new Date(core.clock.wallClock()).toISOString();
    await core.clock.advance(1);
    for (const orderBy of ["name", "-id", "createdAt", "-createdAt", "size"]) {
      const walked: string[] = [];
      const start = await everything({ parentId: folder });
      for (let after: string | null = ""; after !== null; ) {
        const { items, next } = await page({ parentId: folder, orderBy, after, pageSize: "700" });
        walked.push(...items.map(({ id }) => id));
        after = next;
        await disturb(start, 10);
      }
      expect([orderBy, walked]).toEqual([orderBy, sorted(start, orderBy)]);
      await checkPages({ parentId: folder, orderBy, at }, nodes, 900);
    }
  });

  test("counts its places right, however they come and go", { timeout: 300_000 }, async () => {
    const store = createStore(core.database);
    const check = () => {
      const there = store
        .prepare<{ total: number }>("SELECT count(*) AS total FROM place WHERE parent = ?")
        .get(folder)?.total;
      expect(countPlaces(store, folder)).toBe(there);
      for (const field of MARKED_FIELDS) {
        const marks = store
          .prepare<{ total: number; largest: number; least: number }>(
            "SELECT sum(count) AS total, max(count) AS largest, min(count) AS least FROM mark WHERE folder = ? AND field = ?",
          )
          .get(folder, field);
        expect([field, marks?.total]).toEqual([field, there]);
        expect(marks?.largest).toBeLessThan(BIG_PLACES);
        expect(marks?.least).toBeGreaterThanOrEqual(0);
      }
    };
    check();
    const nodes = await everything({ parentId: folder });
    // One stretch grows until it is split, others go away.
    for (let index = 0; index < 1300; index++)
      await core.upload(`/v1/files/m${index}`, "", { query: { parentId: folder } });
    check();
    for (const { id } of nodes.slice(0, 1500)) await core.call("DELETE", `/v1/nodes/${id}`);
    check();
    const left = await everything({ parentId: folder });
    await checkPages({ parentId: folder, orderBy: "id" }, left, 333);
    for (const { id } of left) await core.call("DELETE", `/v1/nodes/${id}`);
    expect(await everything({ parentId: folder })).toEqual([]);
    await core.call("DELETE", `/v1/nodes/${folder}`);
    await core.call("POST", `/v1/nodes/${folder}/restore`);
    await core.file("/large/again", "x");
    expect(await core.names("/large")).toEqual(["again"]);
  });
});
