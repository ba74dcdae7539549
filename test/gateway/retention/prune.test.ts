/** Prunes that are cut short, fail, or meet others at work; and the daily one. */
import { expect, test } from "vitest";
import type { GatewayOptions } from "../../../src/gateway/context.ts";
import { pruneDaily } from "../../../src/gateway/retention/daily.ts";
import { type Logger, SILENT } from "../../../src/lib/log.ts";
import { openSqlite } from "../../../src/lib/sqlite/index.ts";
import { HOUR_MS } from "../../../src/lib/time.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { createMemoryBlobs } from "../../support/memory-blobs.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";

const LARGE = "x".repeat(40_000);

/** Of which a fault point can be made to do something. */
function coreWithSteps(turn?: (callback: () => void) => void): { core: TestCore; at: Map<string, () => void> } {
  const at = new Map<string, () => void>();
  const clock = createVirtualClock();
  const parts = { clock: { ...clock, step: (label: string) => at.get(label)?.() }, blobs: createMemoryBlobs() };
  const options: Partial<GatewayOptions> = {};
  const core = createTestCore(options, { ...parts, database: openSqlite(":memory:"), ...(turn && { turn }) });
  core.gateway.retention.setPolicy("workspace", { versions: "none", deleted: "0d" });
  return { core, at };
}

/** A file with as many past versions, each a blob. */
async function makeVersions(core: TestCore, count: number): Promise<string> {
  let id = "";
  for (let number = 0; number <= count; number += 1) ({ id } = await core.file("/f", `${number} ${LARGE}`));
  core.clock.jump(1);
  return id;
}

const countContents = ({ database }: TestCore) => database.prepare("SELECT count(*) FROM content").pluck().get();

test("one that dies between rows and blobs leaves blobs, which the next one frees", async () => {
  const { core, at } = coreWithSteps();
  await makeVersions(core, 5);
  at.set("gateway: versions thinned", () => {
    throw new Error("it dies");
  });
  await expect(core.gateway.retention.prune()).rejects.toThrow("it dies");
  expect([countContents(core), core.blobs.contents.size]).toEqual([1, 6]);
  at.clear();
  const next = core.restart();
  expect(await next.gateway.retention.prune({ isDry: true })).toMatchObject({ orphans: 5 });
  const { workspaces, orphans } = await next.gateway.retention.prune();
  expect([workspaces[0]?.versions, orphans, core.blobs.contents.size]).toEqual([0, 5, 1]);
});

test("no blob goes before its rows are gone for good: a commit that fails gives all of it back", async () => {
  const { core, at } = coreWithSteps(setImmediate);
  const id = await makeVersions(core, 5);
  let collected: Promise<number> | undefined;
  at.set("gateway: versions thinned", () => {
    at.set("gateway: about to commit", () => {
      throw new Error("the disk is full");
    });
    // Rows that are not committed yet do not name the blobs any more.
    collected = core.gateway.collectBlobs();
    collected.catch(() => {});
  });
  await expect(core.gateway.retention.prune()).rejects.toThrow("the disk is full");
  await expect(collected).rejects.toThrow("the disk is full");
  at.clear();
  expect(core.blobs.contents.size).toBe(6);
  const { items } = (await core.call("GET", `/v1/nodes/${id}/versions`)).json;
  expect(items.length).toBe(6);
  for (const { id: version, number } of items) {
    const { bytes } = await core.call("GET", `/v1/nodes/${id}/content`, { query: { version } });
    expect(bytes.toString()).toBe(`${number - 1} ${LARGE}`);
  }
  expect((await core.gateway.retention.prune()).workspaces[0]?.versions).toBe(5);
});

test("a gateway that ends ends a prune where it is, and the next one goes on", async () => {
  const { core, at } = coreWithSteps();
  // More than a slice.
  for (let file = 0; file < 150; file += 1) for (const content of ["a", "b"]) await core.file(`/${file}`, content);
  core.clock.jump(1);
  let closed: Promise<void> | undefined;
  at.set("gateway: versions thinned", () => {
    closed ??= core.gateway.retention.close();
  });
  await expect(core.gateway.retention.prune()).rejects.toMatchObject({ status: 503 });
  await closed;
  const left = Number(countContents(core)) - 150;
  expect([left > 0, left < 150]).toEqual([true, true]);
  expect((await core.restart().gateway.retention.prune()).workspaces[0]?.versions).toBe(left);
});

test("a copy under way keeps what it has read, however its sources change meanwhile", async () => {
  const { core } = coreWithSteps();
  const names = Array.from({ length: 600 }, (_, index) => `${index}`);
  for (const name of names) await core.file(`/d/${name}`, `old ${name}`);
  const folder = (await core.call("GET", "/v1/files/d")).json.id;
  const json = { parentId: core.workspace.root, name: "copy", copyOf: folder };
  const copied = core.call("POST", "/v1/nodes", { json });
  const staged = core.database.prepare<[], number>("SELECT count(*) FROM copied").pluck();
  while (staged.get() === 0) await core.clock.settle();
  expect(staged.get()).toBeLessThan(names.length);
  // Of what is not written yet: replaced, and deleted.
  for (const name of names) await core.file(`/d/${name}`, `new ${name}`);
  const last = (await core.call("GET", "/v1/files/d/599")).json.id;
  await core.call("DELETE", `/v1/nodes/${last}`);
  core.clock.jump(1);
  const [during] = (await core.gateway.retention.prune()).workspaces;
  expect((await copied).status).toBe(201);
  const read = async (path: string) => {
    const { id } = (await core.call("GET", `/v1/files/${path}`)).json;
    return (await core.call("GET", `/v1/nodes/${id}/content`)).bytes.toString();
  };
  for (const name of names) expect(await read(`copy/${name}`)).toBe(`old ${name}`);
  // Of the sources nothing but what the copy uses is left.
  const [after] = (await core.gateway.retention.prune()).workspaces;
  expect([(during?.versions ?? 0) + (after?.versions ?? 0), (during?.nodes ?? 0) + (after?.nodes ?? 0)]).toEqual([
    601, 1,
  ]);
  expect(countContents(core)).toBe(600 + 599);
  for (const name of names.slice(0, -1)) expect(await read(`d/${name}`)).toBe(`new ${name}`);
  for (const name of names) expect(await read(`copy/${name}`)).toBe(`old ${name}`);
});

test("a copy that has to be removed again takes contents along that its sources have lost", async () => {
  const { core, at } = coreWithSteps();
  for (let file = 0; file < 300; file += 1) await core.file(`/d/${file}`, "old");
  const folder = (await core.call("GET", "/v1/files/d")).json.id;
  at.set("gateway: copy staged in part", () => {
    at.set("gateway: about to commit", () => {
      throw new Error("the disk is full");
    });
    throw new Error("it dies");
  });
  await core.call("POST", "/v1/nodes", { json: { parentId: core.workspace.root, name: "copy", copyOf: folder } });
  at.clear();
  for (let file = 0; file < 300; file += 1) await core.file(`/d/${file}`, "new");
  core.clock.jump(1);
  await core.gateway.retention.prune();
  expect(countContents(core)).toBe(300 + 250);
  expect(countContents(core.restart())).toBe(300);
});

test("pages of versions after a prune are of what is left; a list begun before it is not gone on with", async () => {
  const { core } = coreWithSteps();
  const id = await makeVersions(core, 5);
  const read = (query: Record<string, string>) => core.call("GET", `/v1/nodes/${id}/versions`, { query });
  const before = (await read({ pageSize: "4" })).json;
  expect([before.totalCount, "thinned" in before]).toEqual([6, false]);
  await core.gateway.retention.prune();
  expect((await read({})).json).toMatchObject({ items: [{ number: 6 }], totalCount: 1, thinned: 5 });
  expect((await read({ after: String(before.next) })).json).toMatchObject({ status: 400, field: "after" });
});

test("a policy is applied a day after it was set, then every day, also by a gateway that was started anew", async () => {
  const { core } = coreWithSteps();
  await makeVersions(core, 1);
  const told: unknown[] = [];
  const log: Logger = { ...SILENT, info: (...line: unknown[]) => void told.push(line[0]) };
  let daily = pruneDaily(core.clock, core.gateway.retention, log);
  await core.clock.advance(23 * HOUR_MS);
  expect(told).toEqual([]);
  daily.cancel();
  const next = core.restart();
  daily = pruneDaily(next.clock, next.gateway.retention, log);
  await next.clock.advance(2 * HOUR_MS);
  expect(told).toMatchObject([{ workspace: "workspace", versions: 1 }]);
  await makeVersions(next, 1);
  await next.clock.advance(22 * HOUR_MS);
  expect(told.length).toBe(1);
  await next.clock.advance(3 * HOUR_MS);
  expect(told).toMatchObject([{}, { versions: 2 }]);
  daily.cancel();
});
