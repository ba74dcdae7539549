/** The journal of a node, an account, a mount, since a moment; and what each node was before. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { journalPage } from "../../src/contract/resources.ts";
import { accountToken, newAccount } from "../support/account-token.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { SEED } from "../support/seed.ts";
import { act, histories, momentOf } from "./support/tree-histories.ts";

async function page(core: TestCore, query: Record<string, string>) {
  const answer = await core.call("GET", "/v1/journal", { query });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.bytes}`);
  return journalPage.parse(answer.json);
}

async function all(core: TestCore, query: Record<string, string>) {
  const found: number[] = [];
  for (let after: string | null | undefined = ""; after !== null && after !== undefined; ) {
    const { items, next } = await page(core, { pageSize: "2", ...query, after });
    found.push(...items.map(({ position }) => position));
    if (found.length > 1000) throw new Error("The pages have no end.");
    after = next;
  }
  return found;
}

/** Two accounts, one of them in two mounts, change the same files; a program tells of one of these. */
async function shared() {
  const core = createTestCore();
  const ada = newAccount(core.accounts, "ada");
  const bob = newAccount(core.accounts, "bob");
  for (const { id } of [ada, bob]) core.accounts.accounts.setRole(id, core.workspace.id, "editor");
  const as = (who: typeof ada, mount?: string) => ({
    token: accountToken(core.accounts, core.clock, who),
    query: { workspace: core.workspace.name },
    headers: mount === undefined ? {} : { "wsfs-mount": mount },
  });
  const ways = [as(ada, "laptop"), as(ada, "tower"), as(bob, "laptop"), as(bob)];
  const first = await core.file("/a", "x");
  for (let n = 0; n < 12; n += 1) {
    await core.clock.advance(1000);
    await core.upload(n % 3 === 0 ? "/v1/files/a" : "/v1/files/b", `${n}`, ways[n % ways.length]);
  }
  await core.call("POST", "/v1/journal", { json: { nodeId: first.id, kind: "seen" } });
  return { core, first };
}

test("entries of a node, an account, a mount, a time, and of several of these, in both orders and any page", async () => {
  const { core, first } = await shared();
  const entries = (await page(core, { pageSize: "1000" })).items;
  const since = String(entries[6]?.time);
  const filters = [
    { nodeId: first.id },
    { by: "ada" },
    { by: "nobody" },
    { mount: "laptop" },
    { mount: "laptop", by: "bob" },
    { nodeId: first.id, by: "ada", mount: "tower" },
    { since },
    { since, by: "bob", nodeId: first.id },
  ];
  for (const filter of filters) {
    const {
      nodeId,
      by,
      mount,
      since: from,
    } = { nodeId: undefined, by: undefined, mount: undefined, since: "", ...filter };
    const expected = entries
      .filter((entry) => nodeId === undefined || entry.nodeId === nodeId)
      .filter((entry) => by === undefined || entry.by?.account === by)
      .filter((entry) => mount === undefined || entry.by?.mount === mount)
      .filter(({ time }) => time >= from)
      .map(({ position }) => position);
    for (const orderBy of ["position", "time", "kind"]) {
      const query = { ...filter, orderBy };
      expect([query, (await all(core, query)).sort((a, b) => a - b)]).toEqual([query, expected]);
      const { totalCount } = await page(core, { ...query, pageSize: "1" });
      expect([query, totalCount]).toEqual([query, expected.length]);
    }
    expect(await all(core, { ...filter, orderBy: "position" })).toEqual(expected);
    expect(await all(core, { ...filter, orderBy: "-position" })).toEqual([...expected].reverse());
    for (const [orderBy, order] of [
      ["position", expected],
      ["-time", [...expected].reverse()],
    ] as const) {
      const { items } = await page(core, { ...filter, orderBy, pageNo: "2", pageSize: "2" });
      expect(items.map(({ position }) => position)).toEqual(order.slice(2, 4));
    }
    const after = String(expected[1] ?? 0);
    const rest = (await page(core, { ...filter, after, pageSize: "1000" })).items.map(({ position }) => position);
    expect(rest).toEqual(expected.slice(expected.length > 1 ? 2 : 0));
  }
});

test("pages of the newest first are of one position, and of one list", async () => {
  const { core, first } = await shared();
  const query = { nodeId: first.id, orderBy: "-position", pageSize: "2" };
  const before = await all(core, query);
  const { next } = await page(core, query);
  await core.file("/a", "more");
  const second = await page(core, { ...query, after: String(next) });
  expect(second.items.map(({ position }) => position)).toEqual(before.slice(2, 4));
  const other = await core.call("GET", "/v1/journal", { query: { ...query, by: "ada", after: String(next) } });
  expect([other.status, other.json.field]).toEqual([400, "after"]);
});

test("no more than the first ten thousand are counted, or reached by number", async () => {
  const core = createTestCore();
  const file = await core.file("/a", "x");
  core.database.exec(`WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < 10050)
    INSERT INTO change (time, workspace, node, kind, activity, entry, revision, parent, name, attributes, deleted)
    SELECT time, workspace, node, 'seen', 1, entry + n, revision, parent, name, '', 0 FROM change, more
    WHERE node = '${file.id}' AND activity = 0`);
  const restarted = core.restart();
  const { totalCount, items } = await page(restarted, { nodeId: file.id });
  expect([totalCount, items.length]).toEqual([10_000, 50]);
  const last = await page(restarted, { nodeId: file.id, pageSize: "1000", pageNo: "11" });
  expect([last.items.length, last.next]).toEqual([51, null]);
  const query = { nodeId: file.id, pageSize: "1000", pageNo: "12" };
  const beyond = await restarted.call("GET", "/v1/journal", { query });
  expect([beyond.status, beyond.json.field]).toEqual([400, "pageNo"]);
});

test("each entry says what its node was before, where it was something", async () => {
  await fc.assert(
    fc.asyncProperty(histories(25), async (steps) => {
      const core = createTestCore();
      for (const step of steps) await act(core, step);
      const { items } = await page(core, { pageSize: "1000", before: "true" });
      const known = new Map<string, unknown>();
      for (const { nodeId, parentId, name, head, kind, before, position } of items) {
        expect(before ?? undefined).toEqual(known.get(nodeId));
        const [row] = core.database
          .prepare<[number], { attributes: string }>("SELECT attributes FROM change WHERE position = ?")
          .all(position);
        const attributes = JSON.parse(String(row?.attributes));
        known.set(nodeId, { parentId, name, head: head ?? null, attributes, isDeleted: kind === "deleted" });
      }
    }),
    { seed: SEED, numRuns: 40 },
  );
});

test("an entry that tells of no change has no state before it", async () => {
  const { core, first } = await shared();
  const { items } = await page(core, { nodeId: first.id, orderBy: "-position", pageSize: "2", before: "true" });
  expect(items.map(({ kind, before }) => [kind, before?.name ?? null])).toEqual([
    ["seen", null],
    ["updated", "a"],
  ]);
  expect((await page(core, { nodeId: first.id })).items.some((entry) => "before" in entry)).toBe(false);
});

test("a node says the workspace", async () => {
  const { core, first } = await shared();
  const token = core.token(undefined, null);
  const answer = await core.call("GET", "/v1/journal", { query: { nodeId: first.id, pageSize: "1" }, token });
  expect([answer.status, answer.json.items[0]?.kind]).toEqual([200, "created"]);
});

test("since takes in the moment itself, and everything where it was long ago", async () => {
  const core = createTestCore();
  await core.file("/a", "x");
  await core.clock.advance(1000);
  const since = momentOf(core);
  await core.file("/b", "x");
  const names = async (query: Record<string, string>) => (await page(core, query)).items.map(({ name }) => name);
  expect(await names({ since })).toEqual(["b"]);
  expect(await names({ since: new Date(Date.parse(since) + 1).toISOString() })).toEqual([]);
  expect(await names({ since: "1980-01-01T00:00:00+02:00" })).toEqual(["", "a", "b"]);
});
