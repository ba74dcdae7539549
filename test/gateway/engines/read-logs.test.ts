/** Logs over HTTP: pages, and events that lose and double nothing, whoever is cut off, and that end with the execution. */
import { randomUUID } from "node:crypto";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type LogLine, logEnd, logLine, logPage } from "../../../src/contract/engines.ts";
import { HEARTBEAT_MS } from "../../../src/contract/http.ts";
import { SCOPES } from "../../../src/contract/scopes.ts";
import { openAccounts } from "../../../src/gateway/accounts/index.ts";
import { startGateway } from "../../../src/gateway/start.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { accountToken, newAccount } from "../../support/account-token.ts";
import { until } from "../../support/child.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { openEvents } from "../support/event-stream.ts";
import { addEngine, begin, finish, install, start } from "./support.ts";

let core: TestCore;
let id: string;

beforeEach(async () => {
  core = createTestCore();
  addEngine(core, "scan");
  await install(core, "scan");
  id = (await start(core, "scan")).id;
});

async function say(...lines: string[]): Promise<void> {
  const log = core.engines.started.find((run) => run.id === id)?.log;
  for (const line of lines) log?.write("out", Buffer.from(`${line}\n`));
  await core.clock.settle();
}

interface Heard {
  readonly events: { readonly id: string; readonly event: string; readonly data: unknown }[];
  comments: number;
}

const linesOf = ({ events }: Heard): LogLine[] =>
  events.filter(({ event }) => event === "message").map(({ data }) => logLine.parse(data));
const textsOf = (reader: Heard) => linesOf(reader).map(({ text }) => text);
const endOf = ({ events }: Heard) =>
  events.filter(({ event }) => event === "end").map(({ data }) => logEnd.parse(data));

function parse(text: string, reader: Heard): void {
  for (const block of text.split("\n\n").filter((one) => one !== "")) {
    if (block.startsWith(":")) {
      reader.comments += 1;
      continue;
    }
    const fields = new Map(
      block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.replace(/^\w+: /, "")]),
    );
    const event = { id: fields.get("id") ?? "", event: fields.get("event") ?? "message" };
    reader.events.push({ ...event, data: JSON.parse(fields.get("data") ?? "") });
  }
}

interface Opening {
  readonly query?: Record<string, string>;
  readonly lastEventId?: string;
  readonly token?: string;
  readonly path?: string;
  readonly accept?: string;
}

async function open({ query = {}, lastEventId, token = core.token(), path = "/logs/stream", accept }: Opening = {}) {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    ...(accept === undefined ? {} : { accept }),
  };
  const heard: Heard = { events: [], comments: 0 };
  const request = { path: `/v1/executions/${id}${path}`, query, headers };
  const stream = await openEvents(core, request, (text) => parse(text, heard));
  return Object.assign(heard, stream);
}

const page = async (query: Record<string, string> = {}) =>
  logPage.parse((await core.call("GET", `/v1/executions/${id}/logs`, { query })).json);

test("a log is shown in pages of lines after a number, that say how many there are and how to go on", async () => {
  expect(await page()).toMatchObject({ items: [], totalCount: 0, next: null });
  await begin(core);
  await say(...Array.from({ length: 7 }, (_, index) => `line ${index + 1}`));
  const texts = async (query: Record<string, string>) => (await page(query)).items.map(({ text }) => text);
  expect(await page({ pageSize: "3" })).toMatchObject({
    items: [{ number: 1, stream: "out", text: "line 1" }, { number: 2 }, { number: 3 }],
    ...{ totalCount: 7, pageNo: 1, pageSize: 3, next: "3" },
  });
  expect(await page({ pageSize: "3", after: "3" })).toMatchObject({ totalCount: 4, next: "6" });
  expect(await page({ pageSize: "3", after: "6" })).toMatchObject({ totalCount: 1, next: null });
  expect(await texts({ pageSize: "3", pageNo: "2" })).toEqual(["line 4", "line 5", "line 6"]);
  expect(await texts({ pageSize: "2", pageNo: "2", after: "3" })).toEqual(["line 6", "line 7"]);
  expect(await page({ after: "7" })).toMatchObject({ items: [], totalCount: 0, next: null });
  expect(await page({ after: "99" })).toMatchObject({ items: [], totalCount: 0, next: null });
  const refused = await core.call("GET", `/v1/executions/${id}/logs`, { query: { after: "x" } });
  expect([refused.status, refused.json.field]).toEqual([400, "after"]);
});

test("events come as lines do, from the queue to the end, which says how the execution ended", async () => {
  const reader = await open();
  await core.clock.advance(HEARTBEAT_MS / 2);
  await begin(core);
  await say("one");
  expect(linesOf(reader)).toMatchObject([{ number: 1, stream: "out", text: "one" }]);
  await say("two", "three");
  expect(reader.events.map((event) => event.id)).toEqual(["1", "2", "3"]);
  expect([endOf(reader), reader.isEnded()]).toEqual([[], false]);
  await finish(core, id, 3);
  expect(endOf(reader)).toEqual([{ state: "failed", exitCode: 3, detail: "It ended with exit code 3." }]);
  expect(reader.isEnded()).toBe(true);
  expect(core.clock.nextTimer()).toBeUndefined();
});

test("of an execution that is over all lines come, and the end, at once", async () => {
  await begin(core);
  const lines = Array.from({ length: 250 }, (_, index) => `line ${index + 1}`);
  await say(...lines);
  await finish(core, id);
  const reader = await open();
  expect([textsOf(reader), endOf(reader)]).toEqual([lines, [{ state: "succeeded", exitCode: 0, detail: null }]]);
  expect(reader.isEnded()).toBe(true);
  const rest = await open({ query: { after: "10" }, lastEventId: "249" });
  expect([textsOf(rest), rest.isEnded()]).toEqual([["line 250"], true]);
  const none = await open({ lastEventId: "250", path: "/logs", accept: "text/event-stream" });
  expect([textsOf(none), endOf(none).length, none.isEnded()]).toEqual([[], 1, true]);
});

test("a reader that is cut off goes on where it was, by Last-Event-ID before after=", async () => {
  await begin(core);
  const seen: LogLine[] = [];
  const said: string[] = [];
  for (let round = 0; round < 20; round += 1) {
    const last = seen.at(-1);
    const reader = await open({ query: { after: "0" }, ...(last && { lastEventId: String(last.number) }) });
    for (let index = 0; index < round % 4; index += 1) said.push(`${round}-${index}`);
    await say(...said.slice(said.length - (round % 4)));
    await reader.close();
    seen.push(...linesOf(reader));
    // While nobody listens.
    said.push(`${round}-unheard`);
    await say(`${round}-unheard`);
  }
  await finish(core, id);
  const rest = await open({ lastEventId: String(seen.at(-1)?.number ?? 0) });
  expect([...seen, ...linesOf(rest)].map(({ number, text }) => [number, text])).toEqual(
    said.map((text, index) => [index + 1, text]),
  );
  expect(core.clock.nextTimer()).toBeUndefined();
});

test("it comments at least each ten seconds, and only then when there is nothing to say", async () => {
  await begin(core);
  const reader = await open();
  expect(reader.comments).toBe(1);
  await core.clock.advance(HEARTBEAT_MS - 1);
  expect(reader.comments).toBe(1);
  await core.clock.advance(1);
  expect(reader.comments).toBe(2);
  await core.clock.advance(HEARTBEAT_MS / 2);
  await say("x");
  await core.clock.advance(HEARTBEAT_MS - 1);
  expect(reader.comments).toBe(2);
  await core.clock.advance(1);
  expect(reader.comments).toBe(3);
});

test("it ends when the token expires, when its role is taken, and when the gateway closes; without the end of the execution", async () => {
  await begin(core);
  const short = await open({
    token: core.gateway.issueToken({ scopes: SCOPES, workspace: core.workspace.id, ttlSeconds: 25 }),
  });
  const ada = newAccount(core.accounts, "ada");
  core.accounts.accounts.setRole(ada.id, core.workspace.id, "viewer");
  const viewer = await open({ token: accountToken(core.accounts, core.clock, ada) });
  const long = await open();
  const ended = () => [short, viewer, long].map((reader) => reader.isEnded());
  await core.clock.advance(24_999);
  expect(ended()).toEqual([false, false, false]);
  await core.clock.advance(2);
  expect(ended()).toEqual([true, false, false]);
  core.accounts.accounts.removeRole(ada.id, core.workspace.id);
  await say("for those who may see it");
  expect([ended(), textsOf(viewer), textsOf(long)]).toEqual([[true, true, false], [], ["for those who may see it"]]);
  core.gateway.endStreams();
  await core.clock.settle();
  expect(ended()).toEqual([true, true, true]);
  expect([short, viewer, long].flatMap(endOf)).toEqual([]);
  expect(core.clock.nextTimer()).toBeUndefined();
});

test("a reader that takes nothing is waited for, and is sent so much at a time", async () => {
  await begin(core);
  const headers = { authorization: `Bearer ${core.token()}` };
  const answer = await core.gateway.handle({
    ...{ method: "GET", path: `/v1/executions/${id}/logs/stream`, query: {}, headers },
  });
  if (answer.body?.kind !== "bytes") throw new Error("expected a stream");
  const stream = answer.body.stream[Symbol.asyncIterator]();
  await stream.next();
  await say(...Array.from({ length: 250 }, (_, index) => `line ${index + 1}`));
  const sizes: number[] = [];
  const reader: Heard = { events: [], comments: 0 };
  while (reader.events.length < 250) {
    const before = reader.events.length;
    parse(Buffer.from((await stream.next()).value).toString(), reader);
    sizes.push(reader.events.length - before);
  }
  expect(sizes).toEqual([100, 100, 50]);
});

test("what is not there, and numbers that are none", async () => {
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const { status, json } = await core.call("GET", path, { headers });
    return [status, json.field];
  };
  expect(await ask(`/v1/executions/${randomUUID()}/logs`)).toEqual([404, undefined]);
  expect(await ask(`/v1/executions/${randomUUID()}/logs/stream`)).toEqual([404, undefined]);
  expect(await ask(`/v1/executions/${id}/logs/stream`, { "last-event-id": "x" })).toEqual([400, "Last-Event-ID"]);
  const other = core.gateway.ensureWorkspace("other");
  const token = core.token(undefined, other.id);
  for (const path of ["logs", "logs/stream"]) {
    expect((await core.call("GET", `/v1/executions/${id}/${path}`, { token })).status).toBe(403);
  }
});

test("over HTTP, a reader goes on after a restart of the gateway, without loss or doubling, to the end", async () => {
  const dataDir = await temporaryFolder();
  let gateway = await startGateway({ dataDir });
  onTestFinished(() => gateway.close());
  const accounts = openAccounts(dataDir, systemClock);
  // Says more while nobody listens, and as it ends.
  const command = [
    "sh",
    "-c",
    "exec 2>&-; trap 'echo told; exit 1' TERM; echo one; echo two; while :; do sleep 0.05; done",
  ];
  const engine = { description: "", timeLimitSeconds: 600, scopes: [], inputSchema: null };
  accounts.engines.add({ ...engine, name: "scan", command });
  accounts.close();
  const authorization = `Bearer ${await gateway.issueToken({ workspace: "workspace" })}`;
  const post = async (path: string) => {
    const headers = { authorization, "content-type": "application/json" };
    const answer = await fetch(`${gateway.baseUrl}${path}`, { method: "POST", headers, body: '{"engine":"scan"}' });
    expect(answer.status).toBe(201);
    return z.object({ id: z.string() }).parse(await answer.json()).id;
  };
  await post("/v1/installations");
  const execution = await post("/v1/executions");
  const reader: Heard = { events: [], comments: 0 };
  /** Until the stream ends. */
  const listen = async (lastEventId: string) => {
    const headers = { authorization, "last-event-id": lastEventId };
    const answer = await fetch(`${gateway.baseUrl}/v1/executions/${execution}/logs/stream`, { headers });
    expect(answer.status).toBe(200);
    let text = "";
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString();
      const whole = text.lastIndexOf("\n\n") + 2;
      parse(text.slice(0, whole), reader);
      text = text.slice(whole);
    }
    expect(text).toBe("");
  };
  const first = listen("");
  await until("two lines", () => textsOf(reader).length === 2);
  await gateway.close();
  await first;
  expect(endOf(reader)).toEqual([]);
  gateway = await startGateway({ dataDir });
  await listen(reader.events.at(-1)?.id ?? "");
  // On standard error the shell may say that its sleep was ended.
  const out = linesOf(reader).filter(({ stream }) => stream === "out");
  expect(out.map(({ text }) => text)).toEqual(["one", "two", "told"]);
  expect(linesOf(reader).map(({ number }) => number)).toEqual(linesOf(reader).map((_, index) => index + 1));
  expect(endOf(reader)).toEqual([{ state: "interrupted", exitCode: 1, detail: "The gateway ended while it ran." }]);
});
