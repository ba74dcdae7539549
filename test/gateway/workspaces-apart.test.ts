/** What goes on in one workspace is no work for those who read another. */
import { expect, test } from "vitest";
import type { Node } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { createMemoryBlobs } from "../support/memory-blobs.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";
import { countReads } from "./support/count-reads.ts";

function twoWorkspaces() {
  const database = openSqlite(":memory:");
  const reads = countReads(database);
  const core = createTestCore({}, { clock: createVirtualClock(), blobs: createMemoryBlobs(), database });
  const other = core.token(undefined, core.gateway.ensureWorkspace("other").id);
  return { core, reads, elsewhere: (path: string, content = "x") => core.file(path, content, { token: other }) };
}

test.each([
  ["a sorted list", "/v1/nodes", { path: "/d", orderBy: "-size" }, "FROM place p CROSS JOIN node"],
  ["a recursive one", "/v1/nodes", { path: "/", recursive: "true" }, "FROM place p CROSS JOIN node"],
  ["the journal by name", "/v1/journal", { orderBy: "name" }, "c.name AS value FROM change"],
  ["versions", "", { orderBy: "size" }, "AS value FROM version"],
] as const)("%s is put in order once, whatever is written in other workspaces", async (_, path, query, statement) => {
  const { core, reads, elsewhere } = twoWorkspaces();
  const nodes: Node[] = [];
  for (let index = 0; index < 20; index += 1) nodes.push(await core.file(`/d/${index}`, "x".repeat(index % 7)));
  for (let index = 0; index < 20; index += 1) await core.upload("/v1/files/d/0", "y".repeat(index % 5));
  const list = async (more: object = {}) => {
    const url = path === "" ? `/v1/nodes/${nodes[0]?.id}/versions` : path;
    const { status, json } = await core.call("GET", url, { query: { ...query, pageSize: "5", ...more } });
    expect(status).toBe(200);
    return json;
  };
  const isJournal = path === "/v1/journal";
  const first = await list(isJournal ? {} : { after: "" });
  const once = reads.of(statement);
  expect(once).toBeGreaterThan(0);
  for (let round = 0; round < 5; round += 1) {
    await elsewhere(`/${round}`);
    expect((await list(isJournal ? {} : { after: "" })).items).toEqual(first.items);
  }
  const second = await list({ after: String(first.next) });
  expect(second.items).not.toEqual(first.items);
  expect(reads.of(statement)).toBe(once);
  await core.file("/d/new", "x");
  await core.upload("/v1/files/d/0", "y");
  await list(isJournal ? {} : { after: "" });
  expect(reads.of(statement)).toBeGreaterThan(once);
  // The pages of that position are what they were.
  expect((await list({ after: String(first.next) })).items).toEqual(second.items);
});

async function openStream(core: TestCore, token = core.token()) {
  const request = {
    method: "GET",
    path: "/v1/journal/stream",
    query: {},
    headers: { authorization: `Bearer ${token}` },
  };
  const { body } = await core.gateway.handle(request);
  if (body?.kind !== "bytes") throw new Error("no stream");
  const chunks = body.stream[Symbol.asyncIterator]();
  const next = async () => Buffer.from((await chunks.next()).value ?? []).toString();
  // Its first words, and the entries there are.
  await next();
  await next();
  return { next, close: () => chunks.return?.() };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("a stream of the journal is woken for entries of its own workspace alone", async () => {
  const { core, reads, elsewhere } = twoWorkspaces();
  const [own, again] = [await openStream(core), await openStream(core)];
  const asked = [own.next(), again.next()];
  await settled();
  const before = reads.of("c.entry IS NOT NULL AND c.position > ?");
  const now = () => reads.of("c.entry IS NOT NULL AND c.position > ?") - before;
  for (let index = 0; index < 30; index += 1) await elsewhere(`/${index}`);
  await settled();
  expect(now()).toBe(0);
  // Nor for what is no entry, nor because another reader goes.
  const silent = core.token(SCOPES.filter((scope) => scope !== "node.journal.create"));
  await core.file("/silent", "x", { token: silent });
  const third = await openStream(core);
  const opened = now();
  const gone = third.next();
  await settled();
  await third.close();
  await gone;
  expect(now() - opened).toBeLessThan(5);
  const woken = now();
  await core.file("/told", "x");
  for (const text of await Promise.all(asked)) expect(text).toContain('"name":"told"');
  expect(now() - woken).toBeGreaterThan(0);
  await Promise.all([own.close(), again.close()]);
});

test("nor is it asked again and again while entries of others are late", async () => {
  const { core, reads, elsewhere } = twoWorkspaces();
  const stream = await openStream(core);
  core.gateway.setOptions({ journalLagMs: 5000 });
  const asked = stream.next();
  await settled();
  for (let index = 0; index < 10; index += 1) await elsewhere(`/${index}`);
  const before = reads.of("c.entry IS NOT NULL AND c.position > ?");
  await core.clock.advance(4000);
  expect(reads.of("c.entry IS NOT NULL AND c.position > ?")).toBe(before);
  await core.file("/told", "x");
  await core.clock.advance(6000);
  expect(await asked).toContain('"name":"told"');
  await stream.close();
});
