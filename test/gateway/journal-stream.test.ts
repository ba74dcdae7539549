/** The journal as server-sent events: without loss or doubling, over sockets and without. */
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { HEARTBEAT_MS } from "../../src/contract/http.ts";
import { type JournalEntry, journalEntry } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { createGateway } from "../../src/gateway/core.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { SILENT } from "../../src/lib/log.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type EventReader, openEvents } from "./support/event-stream.ts";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

interface Reader extends EventReader {
  readonly entries: JournalEntry[];
  readonly comments: string[];
}

/** One event or comment is everything up to an empty line. */
function parse(text: string, reader: Pick<Reader, "entries" | "comments">): void {
  for (const block of text.split("\n\n").filter((block) => block !== "")) {
    if (block.startsWith(":")) {
      reader.comments.push(block.slice(1).trim());
      continue;
    }
    const [id, data, ...rest] = block.split("\n");
    expect(rest).toEqual([]);
    const entry = journalEntry.parse(JSON.parse(data?.replace(/^data: /, "") ?? ""));
    expect(id).toBe(`id: ${entry.position}`);
    reader.entries.push(entry);
  }
}

async function open(query: Record<string, string> = {}, headers: Record<string, string> = {}, token = core.token()) {
  const request = { path: "/v1/journal/stream", query, headers: { authorization: `Bearer ${token}`, ...headers } };
  const heard: Pick<Reader, "entries" | "comments"> = { entries: [], comments: [] };
  const stream = await openEvents(core, request, (text) => parse(text, heard));
  return Object.assign(heard, stream);
}

test("entries come as they are made, those of before first", async () => {
  await core.file("/before", "x");
  const reader = await open();
  expect(reader.entries.map(({ name }) => name)).toEqual(["", "before"]);
  const file = await core.file("/after", "x");
  await core.clock.settle();
  expect(reader.entries.at(-1)).toMatchObject({ nodeId: file.id, position: file.position, kind: "created" });
  const all = (await core.call("GET", "/v1/journal")).json.items;
  expect(reader.entries).toEqual(all);
});

test("a reader that is cut off goes on where it was, by Last-Event-ID before after=", async () => {
  const seen: JournalEntry[] = [];
  for (let round = 0; round < 20; round++) {
    const last = seen.at(-1);
    const reader = await open({ after: "0" }, last === undefined ? {} : { "last-event-id": String(last.position) });
    for (let index = 0; index < round % 4; index++) await core.file(`/${round}-${index}`, "x");
    await core.clock.settle();
    await reader.close();
    seen.push(...reader.entries);
    // While nobody listens.
    await core.file(`/${round}-unheard`, "x");
  }
  const rest = await open({ after: String(seen.at(-1)?.position) });
  seen.push(...rest.entries);
  const all = (await core.call("GET", "/v1/journal", { query: { pageSize: "1000" } })).json;
  expect(seen).toEqual(all.items);
  expect(all.totalCount).toBe(seen.length);
});

test("it comments at least each ten seconds, and only then when there is nothing to say", async () => {
  const reader = await open();
  expect(reader.comments).toEqual(["the journal"]);
  await core.clock.advance(HEARTBEAT_MS - 1);
  expect(reader.comments.length).toBe(1);
  await core.clock.advance(1);
  expect(reader.comments).toEqual(["the journal", "heartbeat"]);
  await core.clock.advance(HEARTBEAT_MS / 2);
  await core.file("/f", "x");
  await core.clock.advance(HEARTBEAT_MS - 1);
  expect(reader.comments.length).toBe(2);
  await core.clock.advance(1);
  expect(reader.comments.length).toBe(3);
});

test("it shows entries as late as the journal is", async () => {
  core = createTestCore({ journalLagMs: 3000 });
  await core.clock.advance(3000);
  const start = (await core.call("GET", "/v1/journal")).json.asOf;
  const reader = await open({ after: String(start) });
  const file = await core.file("/f", "x");
  await core.clock.advance(2999);
  expect(reader.entries).toEqual([]);
  await core.clock.advance(100);
  expect(reader.entries).toMatchObject([{ nodeId: file.id }]);
  core.gateway.setOptions({ journalLagMs: 3_600_000 });
  await core.file("/g", "x");
  await core.clock.advance(60_000);
  expect(reader.entries.length).toBe(1);
  core.gateway.setOptions({ journalLagMs: 0 });
  await core.clock.settle();
  expect(reader.entries.length).toBe(2);
});

test("it ends when the token expires, and when the gateway closes", async () => {
  const token = core.gateway.issueToken({ scopes: SCOPES, workspace: core.workspace.id, ttlSeconds: 25 });
  const short = await open({}, {}, token);
  const long = await open();
  await core.clock.advance(24_999);
  expect([short.isEnded(), long.isEnded()]).toEqual([false, false]);
  await core.clock.advance(2);
  expect([short.isEnded(), long.isEnded()]).toEqual([true, false]);
  core.gateway.endStreams();
  await core.clock.settle();
  expect(long.isEnded()).toBe(true);
  expect(core.clock.nextTimer()).toBeUndefined();
});

test("it ends when the life of tokens is made shorter, and not when that is taken back in time", async () => {
  const reader = await open();
  await core.clock.advance(60_000);
  core.gateway.setOptions({ tokenSeconds: 100 });
  core.gateway.setOptions({ tokenSeconds: 0 });
  await core.clock.advance(60_000);
  expect(reader.isEnded()).toBe(false);
  core.gateway.setOptions({ tokenSeconds: 150 });
  await core.clock.advance(29_999);
  expect(reader.isEnded()).toBe(false);
  await core.clock.advance(2);
  expect(reader.isEnded()).toBe(true);
  expect(core.clock.nextTimer()).toBeUndefined();
});

test("a position that was not reached is none to go on after", async () => {
  const file = await core.file("/f", "x");
  const ask = async (query: Record<string, string>, headers: Record<string, string> = {}) => {
    const { status, json } = await core.call("GET", "/v1/journal/stream", { query, headers });
    return [status, json.field];
  };
  expect(await ask({ after: String(file.position) })).toEqual([200, undefined]);
  expect(await ask({ after: "" })).toEqual([200, undefined]);
  const beyond = String(file.position + 1);
  expect(await ask({ after: beyond })).toEqual([400, "after"]);
  expect(await ask({ after: "0" }, { "last-event-id": beyond })).toEqual([400, "Last-Event-ID"]);
});

test("only its own workspace, and bad positions are refused by name", async () => {
  const other = core.gateway.ensureWorkspace("other");
  const reader = await open({ workspace: "other" }, {}, core.token(undefined, null));
  expect(reader.entries.map(({ nodeId }) => nodeId)).toEqual([other.root]);
  await core.file("/f", "x");
  await core.clock.settle();
  expect(reader.entries.length).toBe(1);
  const refused = async (query: Record<string, string>, headers: Record<string, string> = {}) =>
    (await core.call("GET", "/v1/journal/stream", { query, headers })).json.field;
  expect(await refused({ after: "-1" })).toBe("after");
  expect(await refused({}, { "last-event-id": "x" })).toBe("Last-Event-ID");
  expect(await refused({ pageSize: "5" })).toBe("pageSize");
});

test("a reader that takes nothing is waited for: its entries stay in the store", async () => {
  const answer = await core.gateway.handle({
    method: "GET",
    path: "/v1/journal/stream",
    query: {},
    headers: { authorization: `Bearer ${core.token()}` },
  });
  if (answer.body?.kind !== "bytes") throw new Error("expected a stream");
  const stream = answer.body.stream[Symbol.asyncIterator]();
  await stream.next();
  for (let index = 0; index < 450; index++) await core.folder(core.workspace.root, `n${index}`);
  const sizes: number[] = [];
  const reader = { entries: [] as JournalEntry[], comments: [] as string[] };
  while (reader.entries.length < 451) {
    const before = reader.entries.length;
    parse(Buffer.from((await stream.next()).value).toString(), reader);
    sizes.push(reader.entries.length - before);
  }
  expect(sizes).toEqual([200, 200, 51]);
});

test("while nothing can be committed it asks now and then, and goes on after", async () => {
  core = createTestCore({ journalLagMs: 1000 });
  await core.folder(core.workspace.root, "late");
  let [isFull, commits] = [true, 0];
  const { clock, database, blobs } = core;
  const failing = {
    ...clock,
    step(label: string) {
      if (label !== "gateway: about to commit") return;
      commits += 1;
      if (isFull) throw new Error("no room");
    },
  };
  const gateway = createGateway({
    clock: failing,
    database,
    blobs,
    signingKey: Buffer.alloc(32, 7),
    options: { journalLagMs: 1000 },
    log: SILENT,
    turn: setImmediate,
  });
  core = { ...core, gateway };
  const reader = await open();
  // The workspace's and the folder's entries are due, and how far the journal shows cannot be kept.
  await clock.advance(1000);
  for (let turn = 0; turn < 100; turn += 1) await clock.settle();
  expect([reader.entries, commits]).toEqual([[], 1]);
  isFull = false;
  await clock.advance(1000);
  await vi.waitUntil(() => reader.entries.length > 0, { timeout: 60_000 });
  expect(reader.entries.map(({ name }) => name)).toEqual(["", "late"]);
});

test("over HTTP it comes at once and ends cleanly with the gateway", async () => {
  const gateway = await startGateway({ dataDir: await temporaryFolder() });
  onTestFinished(() => gateway.close());
  const authorization = `Bearer ${await gateway.issueToken({ workspace: "workspace" })}`;
  const answer = await fetch(`${gateway.baseUrl}/v1/journal/stream`, { headers: { authorization } });
  expect(answer.headers.get("content-type")).toBe("text/event-stream");
  const seen = { entries: [] as JournalEntry[], comments: [] as string[] };
  let text = "";
  const reading = (async () => {
    for await (const chunk of answer.body ?? []) text += Buffer.from(chunk).toString();
  })();
  const form = () => {
    const body = new FormData();
    body.set("file", "x");
    return body;
  };
  for (let index = 0; index < 5; index++) {
    const url = `${gateway.baseUrl}/v1/files/f${index}`;
    expect((await fetch(url, { method: "POST", headers: { authorization }, body: form() })).status).toBe(201);
  }
  await expect.poll(() => text.match(/^id: /gm)?.length, { timeout: 30_000 }).toBe(6);
  await gateway.close();
  // Its end is an end, not a reset.
  await reading;
  parse(text, seen);
  expect(seen.entries.map(({ name }) => name)).toEqual(["", "f0", "f1", "f2", "f3", "f4"]);
});
