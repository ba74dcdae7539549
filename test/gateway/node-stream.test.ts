/** The recursive listing as a stream of lines: one position, folder by folder, never taken for whole when it is cut. */
import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { type Node, node } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { deltaSince } from "../../src/gateway/marked-pages.ts";
import { createStore } from "../../src/gateway/store.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { makeFilledFolder } from "../support/many-nodes.ts";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

const LINES = { accept: "application/x-ndjson, application/json" };
const head = z.strictObject({ folder: z.string(), asOf: z.number(), after: z.string() });
const end = z.strictObject({ complete: z.literal(true), asOf: z.number(), count: z.number() });

interface Read {
  readonly heads: z.infer<typeof head>[];
  /** The children by the line that begins them. */
  readonly parts: Node[][];
  readonly nodes: Node[];
  readonly end: z.infer<typeof end> | undefined;
}

function parse(text: string): Read {
  const read: Read = { heads: [], parts: [], nodes: [], end: undefined };
  expect(text === "" || text.endsWith("\n")).toBe(true);
  const lines = text.split("\n").slice(0, -1);
  for (const [index, line] of lines.entries()) {
    const value: unknown = JSON.parse(line);
    if (head.safeParse(value).success) {
      read.heads.push(head.parse(value));
      read.parts.push([]);
    } else if (end.safeParse(value).success) {
      expect(index).toBe(lines.length - 1);
      return { ...read, end: end.parse(value) };
    } else {
      const one = node.parse(value);
      expect(one.parentId).toBe(read.heads.at(-1)?.folder);
      read.parts.at(-1)?.push(one);
      read.nodes.push(one);
    }
  }
  return read;
}

async function openLines(query: Record<string, string> = {}, token = core.token()) {
  const answer = await core.gateway.handle({
    method: "GET",
    path: "/v1/tree",
    query: { path: "/", ...query },
    headers: { authorization: `Bearer ${token}` },
  });
  expect([answer.status, answer.headers["content-type"]]).toEqual([200, "application/x-ndjson"]);
  if (answer.body?.kind !== "bytes") throw new Error("expected a stream");
  const chunks = answer.body.stream[Symbol.asyncIterator]();
  const texts: string[] = [];
  const next = async () => {
    const { done, value } = await chunks.next();
    if (done !== true) texts.push(Buffer.from(value).toString());
    return done !== true;
  };
  return {
    next,
    texts,
    leave: () => chunks.return?.(),
    async rest(between: () => Promise<unknown> = async () => {}) {
      for (let more = true; more; more = await next()) await between();
      return parse(texts.join(""));
    },
  };
}

const readLines = async (query: Record<string, string> = {}) => (await openLines(query)).rest();

async function readPages(query: Record<string, string> = {}): Promise<Node[]> {
  const nodes: Node[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const all: Record<string, string> = { path: "/", recursive: "true", pageSize: "1000", ...query, after };
    const page = await core.call("GET", "/v1/nodes", { query: all });
    expect(page.status).toBe(200);
    for (const item of page.json.items) nodes.push(node.parse(item));
    after = page.json.next;
  }
  return nodes;
}

const byId = (nodes: readonly Node[]) => [...nodes].sort((a, b) => (a.id < b.id ? -1 : 1));

function fill(name: string, count: number, nameOf?: (index: number) => string): string {
  const { database, clock, workspace } = core;
  const folder = { database, clock, workspace: workspace.id, parent: workspace.root, name, count };
  return makeFilledFolder(nameOf === undefined ? folder : { ...folder, nameOf });
}

/** Folders in folders, an empty one, names of all sorts, a folder of more than one slice. */
async function smallTree(): Promise<void> {
  for (const path of ["/a/1/x", "/a/1/y", "/a/2/z", '/b/ä "q" \\ \u{1f600}', "/c"]) {
    await core.file(path.split("/").map(encodeURIComponent).join("/"), path);
  }
  await core.folder(core.workspace.root, "empty");
  fill("many", 1234);
}

test("it has what the pages have, folder by folder, and says when it is complete", async () => {
  await smallTree();
  const read = await readLines();
  expect(byId(read.nodes)).toStrictEqual(byId(await readPages()));
  const { asOf } = (await core.call("GET", "/v1/nodes", { query: { path: "/" } })).json;
  expect(read.end).toEqual({ complete: true, asOf, count: read.nodes.length });
  expect(read.heads.every((one) => one.asOf === asOf)).toBe(true);
  // Each folder begins once in a row, after the line that tells of it, also one that is empty.
  const folders = read.heads.map(({ folder }) => folder).filter((id, index, all) => id !== all[index - 1]);
  const told = read.nodes.filter(({ kind }) => kind === "folder").map(({ id }) => id);
  expect([...folders].sort()).toEqual([core.workspace.root, ...told].sort());
  const order = new Map(read.nodes.map(({ id }, index) => [id, index]));
  for (const { id, parentId } of read.nodes) {
    expect(order.get(parentId ?? "") ?? -1).toBeLessThan(order.get(id) ?? 0);
  }
  for (const part of read.parts)
    expect(part).toEqual([...part].sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))));
});

test("a folder, a branch, and a moment of the past, as in pages", async () => {
  await smallTree();
  const file = await core.file("/a/1/branched", "main");
  await core.upload(`/v1/nodes/${file.id}/content`, "other", { method: "PUT", metadata: { branch: "b" } });
  const moment = new Date(core.clock.wallClock()).toISOString();
  await core.clock.advance(1000);
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { name: "later" } });
  await core.call("DELETE", `/v1/nodes/${(await readPages()).find(({ name }) => name === "z")?.id}`);
  const queries = [{ path: "/a" }, { branch: "b" }, { at: moment }, { path: "/a", branch: "b", at: moment }];
  for (const query of queries) {
    const read = await readLines(query);
    expect(byId(read.nodes)).toStrictEqual(byId(await readPages(query)));
    expect(read.end?.count).toBe(read.nodes.length);
  }
});

test("the list of everything below a folder is a stream for those who accept lines, else pages", async () => {
  await smallTree();
  const { count } = (await readLines()).end ?? {};
  const query = { path: "/", recursive: "true", pageSize: "10" };
  const lines = await core.call("GET", "/v1/nodes", { query, headers: LINES });
  expect([lines.status, parse(lines.bytes.toString()).end?.count]).toEqual([200, count]);
  for (const more of [{ orderBy: "path" }, { name: "x" }, { deleted: "true" }, { recursive: "false" }]) {
    const answer = await core.call("GET", "/v1/nodes", { query: { ...query, ...more }, headers: LINES });
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, "application/json"]);
  }
  for (const accept of ["application/json", "*/*"]) {
    expect((await core.call("GET", "/v1/nodes", { query, headers: { accept } })).json.items).toHaveLength(10);
  }
});

test("what changes while it is read changes nothing of it", async () => {
  await smallTree();
  const before = await readPages();
  const many = before.filter(({ path }) => path.startsWith("/many/"));
  const movable = before.filter(({ kind, path }) => kind === "file" && !path.startsWith("/many/"));
  const reader = await openLines();
  let round = 0;
  const read = await reader.rest(async () => {
    round += 1;
    for (const one of movable.slice(0, 2)) {
      const { status } = await core.call("PATCH", `/v1/nodes/${one.id}`, { json: { name: `${round}-${one.name}` } });
      expect(status).toBe(200);
    }
    for (const one of many.slice(-3 * round).slice(0, 3)) await core.call("DELETE", `/v1/nodes/${one.id}`);
    await core.call("PATCH", `/v1/nodes/${many[round]?.id}`, { json: { name: `zz-${round}` } });
    await core.file(`/many/a-${round}`, "new");
    await core.file(`/new-${round}/in`, "new");
  });
  expect(round).toBeGreaterThan(2);
  expect(read.end).toBeDefined();
  expect(byId(read.nodes)).toStrictEqual(byId(before));
});

test("an interrupted stream goes on at any of its lines, at the same position", async () => {
  await smallTree();
  const all = await readLines();
  await core.file("/a/0/later", "x");
  await core.call("DELETE", `/v1/nodes/${all.nodes.find(({ name }) => name === "y")?.id}`);
  for (const [index, { after }] of all.heads.entries()) {
    const rest = await readLines({ after });
    expect(rest.parts).toStrictEqual(all.parts.slice(index));
    expect(rest.heads).toEqual(all.heads.slice(index));
    expect(rest.end).toMatchObject({ asOf: all.end?.asOf });
  }
});

test("only its own lines are gone on from", async () => {
  await smallTree();
  const lines = await readLines();
  const ofPages = (await core.call("GET", "/v1/nodes", { query: { path: "/", recursive: "true", pageSize: "2" } }))
    .json;
  const after = lines.heads[1]?.after ?? "";
  const tries = [
    { path: "/", after: ofPages.next ?? "" },
    { path: "/a", after },
    { path: "/", branch: "b", after },
    { path: "/", after: "x" },
  ];
  for (const query of tries) {
    const answer = await core.call("GET", "/v1/nodes", { query: { recursive: "true", ...query }, headers: LINES });
    expect([answer.status, answer.json.field]).toEqual([400, "after"]);
  }
  const asPage = await core.call("GET", "/v1/nodes", { query: { path: "/", recursive: "true", after } });
  expect([asPage.status, asPage.json.field]).toEqual([400, "after"]);
});

test("scopes, the workspace of the token and what is there count as for pages", async () => {
  await smallTree();
  const query = { path: "/", recursive: "true" };
  const lacking = core.token(SCOPES.filter((scope) => scope !== "node.node.read-all"));
  const refused = await core.call("GET", "/v1/nodes", { query, headers: LINES, token: lacking });
  expect([refused.status, refused.json.scope]).toEqual([403, "node.node.read-all"]);
  const other = core.gateway.ensureWorkspace("other");
  const elsewhere = { ...query, workspace: other.name };
  expect((await core.call("GET", "/v1/nodes", { query: elsewhere, headers: LINES })).status).toBe(403);
  expect((await core.call("GET", "/v1/nodes", { query: { ...query, path: "/none" }, headers: LINES })).status).toBe(
    404,
  );
});

test("it ends unfinished with its token, with the gateway, and after changes that were undone", async () => {
  fill("many", 3000);
  fill("few", 3);
  const { gateway } = core;
  const ends: (() => unknown)[] = [
    () => gateway.setOptions({ tokenSeconds: 1 }),
    () => {
      const database = core.database;
      database.exec("CREATE TEMP TRIGGER no BEFORE INSERT ON node BEGIN SELECT raise(ROLLBACK, 'undone'); END");
    },
    () => gateway.endStreams(),
  ];
  for (const [stop, isBegun] of ends.flatMap((stop) => [
    [stop, true] as const,
    // All of it is a single chunk.
    [stop, false] as const,
  ])) {
    const reader = await openLines(isBegun ? {} : { path: "/few" });
    if (isBegun) expect(await reader.next()).toBe(true);
    stop();
    await core.clock.advance(2000);
    await core.upload("/v1/files/undone", "x");
    const read = await reader.rest();
    expect([read.end, read.nodes.length > 0]).toEqual([undefined, isBegun]);
    gateway.setOptions({ tokenSeconds: 0 });
    core.database.exec("DROP TRIGGER IF EXISTS temp.no");
  }
});

test("nothing is read that is not taken, and others have their turn between two chunks", async () => {
  fill("many", 10_000);
  let statements = 0;
  const { prepare } = core.database;
  core = core.restart();
  core.database.prepare = ((...given: Parameters<typeof prepare>) => {
    const statement = prepare.apply(core.database, given);
    if (!given[0].includes("CROSS JOIN node n")) return statement;
    const raw = statement.raw.bind(statement);
    statement.raw = (...args: Parameters<typeof raw>) => {
      statements += 1;
      return raw(...args);
    };
    return statement;
  }) as typeof prepare;
  const reader = await openLines();
  await reader.next();
  const first = statements;
  for (let turns = 0; turns < 20; turns += 1) await turn();
  expect([first > 0, statements]).toEqual([true, first]);
  let turns = 0;
  let isRead = false;
  const count = async () => {
    for (; !isRead; turns += 1) await turn();
  };
  void count();
  const { texts, rest } = reader;
  expect((await rest()).end).toBeDefined();
  isRead = true;
  expect(turns).toBeGreaterThanOrEqual(texts.length - 2);
  expect(texts.length).toBeGreaterThan(10);
  for (const text of texts) expect(text.length).toBeLessThan(600 * 1024);
});

test("others have their turn while a stream that goes on looks for the next subfolder", async () => {
  const many = fill("many", 10_000);
  const first = await core.folder(many, "0");
  const { heads } = await readLines();
  const reader = await openLines({ after: heads.find(({ folder }) => folder === first.id)?.after ?? "" });
  let turns = 0;
  let isRead = false;
  const count = async () => {
    for (; !isRead; turns += 1) await turn();
  };
  void count();
  expect((await reader.rest()).end).toBeDefined();
  isRead = true;
  // The other children of the folder, 500 at a time.
  expect(turns).toBeGreaterThanOrEqual(19);
});

test("a folder of more subfolders than are remembered", async () => {
  const { database, clock, workspace } = core;
  for (const name of ["0", "z"])
    makeFilledFolder({ database, clock, workspace: workspace.id, parent: workspace.root, name, count: 2 });
  const folder = await core.folder(workspace.root, "m");
  const made = [];
  for (let index = 0; index < 10_700; index += 1) made.push(core.folder(folder.id, `f${index}`));
  await Promise.all(made);
  await core.file("/m/f9999/in", "x");
  const read = await readLines();
  expect(read.nodes).toHaveLength(3 + 4 + 10_700 + 1);
  expect(new Set(read.nodes.map(({ id }) => id)).size).toBe(read.nodes.length);
  expect(read.end?.count).toBe(read.nodes.length);
  const { heads, parts } = read;
  const late = heads.length - 200;
  expect((await readLines({ after: heads[late]?.after ?? "" })).parts).toStrictEqual(parts.slice(late));
});

test("a folder that changes more than an index can be corrected for", async () => {
  const id = fill("many", 22_000);
  const before = await readPages();
  const reader = await openLines();
  await reader.next();
  const { asOf } = parse(reader.texts.join("")).heads[0] ?? { asOf: 0 };
  // The folder as it looks after as many deletions.
  const position = asOf + 1;
  const { database } = core;
  database.exec(`INSERT INTO past_place (parent, until, name, node, since)
    SELECT parent, ${position}, name, node, since FROM place WHERE parent = '${id}' AND name < 'file-0021000'`);
  database.exec(`DELETE FROM place WHERE parent = '${id}' AND name < 'file-0021000'`);
  expect(deltaSince(createStore(database), id, "name", asOf)).toBeUndefined();
  const read = await reader.rest();
  expect(byId(read.nodes)).toStrictEqual(byId(before));
  expect(read.end).toBeDefined();
});
