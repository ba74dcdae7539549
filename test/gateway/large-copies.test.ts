/**
 * Folders too large to be copied in one go: others are answered in between, readers see all of the copy or nothing, and
 * whenever the gateway is killed there is all of it in the end or nothing.
 */
import { beforeEach, expect, test } from "vitest";
import type { JournalEntry } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { makeFilledFolder } from "../support/many-nodes.ts";
import { createMemoryBlobs } from "../support/memory-blobs.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

const TIMEOUT = { timeout: 120_000 };
const COUNT = 1100;

let core: TestCore;
let source: string;
/** Called after each commit. */
let committed: () => void;

beforeEach(() => {
  committed = () => {};
  const clock = createVirtualClock();
  const database = openSqlite(":memory:");
  const step = (label: string) => {
    if (label === "gateway: committed") committed();
  };
  core = createTestCore({}, { clock: { ...clock, step }, blobs: createMemoryBlobs(), database });
  source = fill(COUNT);
});

function fill(count: number, name = "source"): string {
  const { database, clock, workspace } = core;
  return makeFilledFolder({ database, clock, workspace: workspace.id, parent: workspace.root, name, count });
}

const copy = (json: object = {}, options: { token?: string } = {}) =>
  core.call("POST", "/v1/nodes", {
    json: { parentId: core.workspace.root, name: "copy", copyOf: source, ...json },
    ...options,
  });
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const isThere = async (at = core) => (await at.names("/")).includes("copy");

async function entries(at: TestCore): Promise<JournalEntry[]> {
  const all: JournalEntry[] = [];
  for (let after: string | null = "0"; after !== null; ) {
    const { json } = await at.call("GET", "/v1/journal", { query: { after, pageSize: "1000" } });
    all.push(...(json.items as unknown as JournalEntry[]));
    after = json.next;
  }
  return all;
}

const countRows = (at: TestCore) =>
  Object.fromEntries(
    ["node", "version", "place", "mark", "copy", "copied"].map((table) => [
      table,
      at.database.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
    ]),
  );
const usedBytes = async (at: TestCore) => (await at.call("GET", "/v1/workspaces")).json.items[0]?.used;

/** All of it, and each of its nodes told once: the root first, and nothing of a node before that it was made. */
async function expectWhole(at: TestCore, count = COUNT): Promise<void> {
  const listed = (await at.call("GET", "/v1/nodes", { query: { path: "/copy", recursive: "true", pageSize: "1" } }))
    .json;
  expect(listed.totalCount).toBe(count);
  expect(await usedBytes(at)).toBe(2 * count);
  const { id } = (await at.call("GET", "/v1/files/copy")).json;
  const told = await entries(at);
  const made = told.filter(({ nodeId, parentId }) => nodeId === id || parentId === id);
  expect(made.map(({ kind }) => kind)).toEqual(Array(count + 1).fill("created"));
  expect(new Set(made.map(({ nodeId }) => nodeId)).size).toBe(count + 1);
  expect(made[0]).toMatchObject({ nodeId: id, name: "copy", revision: 1 });
  const [entry] = made.slice(-1);
  const node = await at.node(String(entry?.nodeId));
  expect(entry).toMatchObject({
    head: node.head,
    branchHead: node.head,
    branch: "main",
    contentHash: node.contentHash,
  });
  // Pages by number are found by the numbers of entries.
  const last = (await at.call("GET", "/v1/journal", { query: { pageNo: String(told.length), pageSize: "1" } })).json;
  expect([last.totalCount, last.items]).toEqual([told.length, told.slice(-1)]);
}

test("others are answered in between, and see all of it or nothing", TIMEOUT, async () => {
  const copying = copy({ idempotencyKey: "k" });
  let isDone = false;
  void copying.finally(() => {
    isDone = true;
  });
  let answered = 0;
  const seen = new Set<unknown>();
  while (!isDone) {
    const { json } = await core.call("GET", "/v1/nodes", { query: { path: "/copy", pageSize: "1" } });
    seen.add(json.totalCount ?? json.status);
    await core.file(`/other/${answered}`, "");
    answered += 1;
    await turn();
  }
  const answer = await copying;
  expect([answer.status, answer.json.path, [...seen]]).toEqual([201, "/copy", [404, COUNT]]);
  // A turn for each 250 nodes read, written and told.
  expect(answered).toBeGreaterThan(10);
  await expectWhole(core);
  expect(countRows(core)).toMatchObject({ copy: 0, copied: 0 });
  expect((await copy({ idempotencyKey: "k" })).json).toEqual(answer.json);
});

test("whatever is told of a node of it comes after that it was made", TIMEOUT, async () => {
  const copying = copy();
  while (!(await isThere())) await turn();
  // Not told yet, as the last of them.
  const query = { path: "/copy", orderBy: "-name", pageSize: "3" };
  const [moved, written, noted] = (await core.call("GET", "/v1/nodes", { query })).json.items;
  expect((await entries(core)).some(({ nodeId }) => nodeId === moved?.id)).toBe(false);
  await core.call("PATCH", `/v1/nodes/${moved?.id}`, { json: { name: "moved" } });
  await core.upload(`/v1/nodes/${written?.id}/content`, "y", { method: "PUT" });
  await core.call("POST", "/v1/journal", { json: { nodeId: noted?.id, kind: "seen" } });
  expect((await copying).status).toBe(201);
  const told = await entries(core);
  const kindsOf = (id = "") => told.filter(({ nodeId }) => nodeId === id).map(({ kind }) => kind);
  expect([moved, written, noted].map((node) => kindsOf(node?.id))).toEqual([
    ["created", "moved"],
    ["created", "updated"],
    ["created", "seen"],
  ]);
  expect(new Set(told.map(({ nodeId, kind }) => `${nodeId} ${kind}`)).size).toBe(told.length);
});

test(
  "it is the source as it was at one moment, whatever is changed, moved and removed meanwhile",
  TIMEOUT,
  async () => {
    await core.file("/source/a-first", "0");
    await core.file("/source/deep/er/below", "0");
    await core.file("/source/zz-last", "0");
    const away = await core.folder(core.workspace.root, "away");
    const deep = (await core.call("GET", "/v1/files/source/deep")).json;
    const copying = copy();
    let isDone = false;
    void copying.finally(() => {
      isDone = true;
    });
    // One after the other: a moment shows the first with what the second has, or with one more.
    for (let round = 1; !isDone && round < 60; round += 1) {
      await core.upload("/v1/files/source/a-first", String(round));
      await turn();
      await core.upload("/v1/files/source/zz-last", String(round));
      await core.call("PATCH", `/v1/nodes/${deep.id}`, { json: { parentId: round % 2 === 0 ? source : away.id } });
      const { items } = (await core.call("GET", "/v1/nodes", { query: { parentId: source, pageSize: "1" } })).json;
      if (round % 5 === 0) await core.call("DELETE", `/v1/nodes/${items[0]?.id}`);
      await turn();
    }
    expect((await copying).status).toBe(201);
    const text = async (path: string) => {
      const { id } = (await core.call("GET", `/v1/files${path}`)).json;
      return Number((await core.call("GET", `/v1/nodes/${id}/content`)).bytes.toString());
    };
    const last = await text("/copy/zz-last");
    expect([last, last + 1]).toContain(await text("/copy/a-first"));
    // It goes away after the last one was written, and comes back so: with all that is below it.
    const hasDeep = (await core.call("GET", "/v1/files/copy/deep/er/below")).status === 200;
    expect((await core.call("GET", "/v1/files/copy/deep")).status).toBe(hasDeep ? 200 : 404);
    const all = (await core.call("GET", "/v1/nodes", { query: { path: "/copy", recursive: "true", pageSize: "1" } }))
      .json;
    expect(all.totalCount).toBeGreaterThan(COUNT - 60);
  },
);

test(
  "killed after any of its commits, there is nothing of it or all of it, and its key does it once",
  TIMEOUT,
  async () => {
    const before = countRows(core);
    const states: Buffer[] = [];
    committed = () => void states.push(core.database.serialize());
    const answer = await copy({ idempotencyKey: "k" });
    committed = () => {};
    expect(states.length).toBeGreaterThan(8);
    const results = new Set<string>();
    for (const state of states) {
      const { clock, blobs } = core;
      const after = createTestCore({}, { clock, blobs, database: openSqlite(state) });
      const isWhole = await isThere(after);
      results.add(isWhole ? "whole" : "nothing");
      expect(countRows(after)).toMatchObject({ copy: 0, copied: 0 });
      if (isWhole) await expectWhole(after);
      else {
        expect(countRows(after)).toEqual(before);
        expect([await usedBytes(after), (await entries(after)).length]).toEqual([COUNT, COUNT + 2]);
        // Positions that were told are not taken again.
        const { position } = await after.file("/next", "");
        expect(position).toBeGreaterThan(
          Number(openSqlite(state).prepare("SELECT max(position) FROM change").pluck().get()),
        );
        await after.call("DELETE", `/v1/nodes/${(await after.call("GET", "/v1/files/next")).json.id}`);
      }
      const json = { parentId: core.workspace.root, name: "copy", copyOf: source, idempotencyKey: "k" };
      const again = await after.call("POST", "/v1/nodes", { json });
      expect(again.status).toBe(201);
      if (isWhole) expect(again.json).toEqual(answer.json);
      await expectWhole(after);
    }
    expect(results).toEqual(new Set(["nothing", "whole"]));
  },
);

test("what is refused at its end leaves nothing, and the same key twice at once makes one copy", TIMEOUT, async () => {
  const before = countRows(core);
  const copying = copy();
  while (countRows(core).copied === 0) await turn();
  const { id } = await core.folder(core.workspace.root, "copy");
  const taken = await copying;
  expect([taken.status, taken.json.node.id]).toEqual([409, id]);
  await core.call("DELETE", `/v1/nodes/${id}`);
  const rest = countRows(core);
  expect({ ...rest, node: Number(rest.node) - 1 }).toEqual(before);

  core.gateway.setOptions({ quota: { all: 2 * COUNT - 1 } });
  expect((await copy()).status).toBe(507);
  expect(countRows(core)).toEqual(rest);
  core.gateway.setOptions({ quota: {} });

  const [one, two] = await Promise.all([copy({ idempotencyKey: "k" }), copy({ idempotencyKey: "k" })]);
  expect([one.status, two.json]).toEqual([201, one.json]);
  expect(countRows(core)).toMatchObject({ node: Number(rest.node) + COUNT + 1, copy: 0, copied: 0 });
});

test("without node.journal.create nothing is told, and its folders stay unprovisioned", TIMEOUT, async () => {
  await core.file("/source/sub/f", "x");
  const token = core.token(SCOPES.filter((scope) => scope !== "node.journal.create"));
  const told = (await entries(core)).length;
  const answer = await copy({}, { token });
  expect([answer.status, await isThere(), (await entries(core)).length]).toEqual([201, false, told]);
  expect(countRows(core)).toMatchObject({ copy: 0, copied: 0 });
  await core.call("POST", "/v1/journal", { json: { nodeId: answer.json.id, kind: "seen" } });
  expect((await core.call("GET", "/v1/nodes", { query: { path: "/copy", pageSize: "1" } })).json.totalCount).toBe(
    COUNT,
  );
  expect((await core.call("GET", "/v1/files/copy/sub")).status).toBe(404);
});

test("a folder in it that becomes large is listed from its marks", TIMEOUT, async () => {
  source = fill(5000, "larger");
  expect((await copy()).status).toBe(201);
  const names = Array.from({ length: 5000 }, (_, index) => `file-${String(index).padStart(7, "0")}`);
  for (const orderBy of ["name", "-name", "id", "createdAt"]) {
    for (const pageNo of ["1", "3", "5"]) {
      const query = { path: "/copy", orderBy, pageSize: "1000", pageNo };
      const { items, totalCount } = (await core.call("GET", "/v1/nodes", { query })).json;
      const from = 1000 * (Number(pageNo) - 1);
      const expected = (orderBy === "-name" ? names.toReversed() : names).slice(from, from + 1000);
      expect([orderBy, pageNo, totalCount, items.map(({ name }) => name)]).toEqual([orderBy, pageNo, 5000, expected]);
    }
  }
});
