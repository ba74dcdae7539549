/** The journal followed through breaks: every entry once and in order, whatever the connection does. */
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import type { RemoteError } from "../../../src/client/errors.ts";
import { createHttpTransport } from "../../../src/client/http-transport.ts";
import type { HttpAnswer, HttpRequest, Transport } from "../../../src/contract/http.ts";
import type { JournalEntry } from "../../../src/contract/resources.ts";
import { startGateway } from "../../../src/gateway/start.ts";
import { SEED } from "../../support/seed.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { examplePage } from "../support/examples.ts";
import { bytesOfStream, STEADY, type StreamFault, streamFaults } from "../support/faulty-stream.ts";
import { realGateway } from "../support/real-gateway.ts";
import { broken, json, type Scripted, type Step, scripted } from "../support/scripted-transport.ts";
import { clientOf, failureOf, serve } from "../support/server.ts";

function entryAt(position: number): JournalEntry {
  return {
    position,
    time: "2026-01-02T03:04:05.678Z",
    kind: "updated",
    nodeId: "n1",
    revision: position,
    parentId: "root",
    name: `grüße ${position} 🎉`,
  };
}

/** Positions as a journal has them: with gaps, those of other workspaces. */
const JOURNAL = Array.from({ length: 30 }, (_, index) => entryAt(3 + index * 2));
const eventOf = (entry: JournalEntry) => `id: ${entry.position}\ndata: ${JSON.stringify(entry)}\n\n`;

/** A gateway that streams the journal, each connection with its fault. */
function streaming(faults: readonly StreamFault[], afters: number[] = []): Step {
  return (request): HttpAnswer => {
    const after = Number(request.query.after);
    const fault = faults[afters.length] ?? STEADY;
    afters.push(after);
    const first = JOURNAL.findIndex(({ position }) => position > after);
    const entries = first === -1 ? [] : JOURNAL.slice(Math.max(0, first - fault.early));
    const text = `: the journal\n\n${entries.map(eventOf).join(": heartbeat\n\n")}`;
    return { status: 200, headers: { "content-type": "text/event-stream" }, body: bytesOfStream(text, fault) };
  };
}

/** So many entries of a follower. */
function take(script: Scripted, count: number, options: object = {}): Promise<JournalEntry[]> {
  return script.run(
    (async () => {
      const found: JournalEntry[] = [];
      for await (const entry of script.gateway.journal.follow({ after: 0, ...options })) {
        found.push(entry);
        if (found.length === count) break;
      }
      return found;
    })(),
  );
}

test("wherever streams break, each entry comes once and in order", async () => {
  await fc.assert(
    fc.asyncProperty(streamFaults(3000), async (faults) => {
      expect(await take(scripted([streaming(faults)]), JOURNAL.length)).toEqual(JOURNAL);
    }),
    { seed: SEED, numRuns: 200 },
  );
});

test("a stream is taken up after the last entry that was given out", async () => {
  const afters: number[] = [];
  const firstThree = JOURNAL.slice(0, 3).map(eventOf).join(": heartbeat\n\n");
  const fault: StreamFault = {
    ...STEADY,
    bytes: ": the journal\n\n".length + Buffer.byteLength(firstThree),
    end: "broken",
  };
  await take(scripted([streaming([fault], afters)]), 10);
  expect(afters).toEqual([0, JOURNAL[2]?.position]);
});

test("breaks are waited out however long, with waits that grow until something comes", async () => {
  const breaks: (RemoteError | undefined)[] = [];
  const steps = [
    ...Array.from({ length: 12 }, () => broken("offline", true)),
    streaming([{ ...STEADY, bytes: 20 }]),
    broken(),
    streaming([]),
  ];
  const script = scripted(steps, { retries: { firstDelayMs: 100, maxDelayMs: 5000 } });
  const onBreak = (error: RemoteError | undefined) => breaks.push(error);
  expect(await take(script, 3, { onBreak })).toEqual(JOURNAL.slice(0, 3));
  expect(breaks.map((error) => error?.code)).toEqual([...new Array(12).fill("offline"), undefined, "offline"]);
  const waits = script.times.slice(1).map((time, index) => time - (script.times[index] ?? 0));
  for (const wait of waits.slice(6, 12)) expect(wait).toBeGreaterThanOrEqual(2500);
  // Bytes came: it counts from the start again.
  expect(waits[12]).toBeLessThanOrEqual(100);
});

test("without retries the first break ends it", async () => {
  const script = scripted([streaming([{ ...STEADY, bytes: 400, end: "broken" }])], { retries: false });
  expect(await script.run(failureOf(take(script, 30)))).toMatchObject({ code: "offline" });
  expect(script.requests).toHaveLength(1);
});

test.each([400, 401, 403])("a refusal with %i ends it", async (status) => {
  const script = scripted([json(status, { title: "no" })]);
  expect(await script.run(failureOf(take(script, 1)))).toMatchObject({ status });
  expect(script.requests).toHaveLength(1);
});

test("an event that is no entry ends it and says what it is", async () => {
  const body = (async function* () {
    yield Buffer.from('id: 3\ndata: {"position":"3"}\n\n');
  })();
  const headers = { "content-type": "text/event-stream" };
  const script = scripted([() => ({ status: 200, headers, body })]);
  const error = await script.run(failureOf(take(script, 1)));
  expect(error).toMatchObject({ code: "malformed", message: expect.stringContaining("position") });
});

test("an answer that is no stream, or an event without end, is malformed", async () => {
  const page = scripted([json(200, {}, { "content-type": "application/json" })]);
  expect(await page.run(failureOf(take(page, 1)))).toMatchObject({
    code: "malformed",
    message: expect.stringContaining("expected text/event-stream, got application/json"),
  });
  const headers = { "content-type": "text/event-stream" };
  const endless = scripted([
    () => ({
      status: 200,
      headers,
      body: (async function* () {
        for (;;) yield Buffer.alloc(100_000, "x");
      })(),
    }),
  ]);
  expect(await endless.run(failureOf(take(endless, 1)))).toMatchObject({
    code: "malformed",
    message: expect.stringContaining("longer than"),
  });
});

/** A gateway without a stream: pages of three. */
function polled(status: number, shown: () => number): Step {
  return (request) => {
    if (request.path.endsWith("/stream")) return json(status, { title: "no such thing" })(request);
    const after = Number(request.query.after);
    const all = JOURNAL.slice(0, shown()).filter(({ position }) => position > after);
    const change = { totalCount: all.length, pageSize: 3, asOf: JOURNAL[shown() - 1]?.position ?? 0 };
    return json(200, examplePage(all.slice(0, 3), change))(request);
  };
}

test.each([404, 405, 406, 501])(
  "a gateway whose answer to the stream is %i is asked again and again",
  async (status) => {
    let shown = 7;
    const script = scripted([polled(status, () => shown)]);
    const seen: JournalEntry[] = [];
    await script.run(
      (async () => {
        for await (const entry of script.gateway.journal.follow({ after: 3, pollMs: 500 })) {
          seen.push(entry);
          if (seen.length === 6) shown = 12;
          if (seen.length === 11) break;
        }
      })(),
    );
    expect(seen).toEqual(JOURNAL.slice(1, 12));
    expect(script.requests.filter(({ path }) => path.endsWith("/stream"))).toHaveLength(1);
    // Two full pages at once, and after a wait the rest: 500 ms apart, and no page for nothing.
    expect(script.times.at(-1)).toBe(500);
  },
);

test("a gateway whose total is that of the whole journal is not asked without a pause", async () => {
  const steps = (request: HttpRequest) => {
    if (request.path.endsWith("/stream")) return json(404, { title: "no such thing" })(request);
    if (script.requests.length > 10) return json(400, { title: "enough" })(request);
    const items = JOURNAL.filter(({ position }) => position > Number(request.query.after));
    return json(200, examplePage(items.slice(0, 20), { totalCount: 30, asOf: 100 }))(request);
  };
  const script = scripted([steps]);
  expect(await script.run(failureOf(take(script, 31, { pollMs: 500 })))).toMatchObject({ status: 400 });
  // What there is comes at once; then each look is after a wait.
  expect(script.times).toEqual([0, 0, 0, 0, 500, 1000, 1500, 2000, 2500, 3000, 3500]);
});

test("polling goes on through breaks", async () => {
  const poll = polled(404, () => 30);
  const script = scripted([poll, broken(), broken("silent"), poll, broken(), poll]);
  expect(await take(script, 30)).toEqual(JOURNAL);
});

test("without a position it begins at what the journal shows now", async () => {
  const afters: number[] = [];
  const stream = streaming([], afters);
  const page = json(200, examplePage([JOURNAL[0]], { asOf: 21, totalCount: 30 }));
  const script = scripted([
    (request: HttpRequest) => (request.path.endsWith("/stream") ? stream(request) : page(request)),
  ]);
  expect(await take(script, 2, { after: undefined })).toEqual(
    JOURNAL.filter(({ position }) => position > 21).slice(0, 2),
  );
  expect(afters).toEqual([21]);
});

test("an abort ends it, also while it waits", async () => {
  const controller = new AbortController();
  const script = scripted([broken()]);
  const failure = failureOf(script.gateway.journal.follow({ after: 0, signal: controller.signal }).next());
  while (script.clock.nextTimer() === undefined) await script.clock.settle();
  controller.abort();
  expect(await failure).toMatchObject({ code: "aborted" });
  expect(script.clock.nextTimer()).toBeUndefined();
});

test("a stream without heartbeats is silent, one with them is not", async () => {
  let connections = 0;
  const { baseUrl } = await serve((_, response) => {
    connections += 1;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(eventOf(JOURNAL[connections - 1] ?? entryAt(1)));
    if (connections === 1) return;
    const timer = setInterval(() => response.write(": heartbeat\n\n"), 20);
    response.on("close", () => clearInterval(timer));
  });
  const client = clientOf(baseUrl, { limits: { stream: 1000, metadata: 60_000 } });
  const silent = client.streamJournal(0);
  expect((await silent.next()).value).toEqual(JOURNAL[0]);
  expect(await failureOf(silent.next())).toMatchObject({ code: "silent" });
  let heard = 0;
  const controller = new AbortController();
  const onHeard = () => {
    heard += 1;
    // More heartbeats than fit into the limit: it is not counted from the last entry.
    if (heard === 75) controller.abort();
  };
  const steady = client.streamJournal(0, { onHeard, signal: controller.signal });
  expect((await steady.next()).value).toEqual(JOURNAL[1]);
  expect(await failureOf(steady.next())).toMatchObject({ code: "aborted" });
});

test("a real gateway that is restarted is followed on", async () => {
  const dataDir = await temporaryFolder();
  const { server, token } = await realGateway({}, { dataDir });
  // The one after the restart has another port: nobody can keep the first one free meanwhile.
  const first = createHttpTransport({ baseUrl: server.baseUrl });
  let current = first;
  const transport: Transport = { send: (request) => current.send(request), close: () => current.close() };
  const gateway = connect({ baseUrl: server.baseUrl, transport, credentials: staticToken(token) });
  const restart = async () => {
    await server.close();
    const again = await startGateway({ dataDir });
    onTestFinished(() => again.close());
    current = createHttpTransport({ baseUrl: again.baseUrl });
    await gateway.files.upload("/after", "after");
  };

  const { asOf } = await gateway.journal.list().page(1);
  await gateway.files.upload("/before", "before");
  const names: string[] = [];
  let breaks = 0;
  let restarted: Promise<void> | undefined;
  const onBreak = () => {
    breaks += 1;
  };
  for await (const { name } of gateway.journal.follow({ after: asOf, onBreak })) {
    names.push(name);
    if (name === "after") break;
    restarted ??= restart();
  }
  await restarted;
  expect(names).toEqual(["before", "after"]);
  expect(breaks).toBeGreaterThan(0);
  await Promise.all([gateway.close(), first.close()]);
});

test("a position that is none of the gateway's past ends it, with the field, instead of waiting for ever", async () => {
  const { gateway } = await realGateway({ retries: { firstDelayMs: 1 } });
  const { position } = await gateway.files.upload("/f", "x");
  for (const next of [gateway.journal.follow({ after: position + 1 }), gateway.journal.list({ after: position + 1 })]) {
    const error = await failureOf(next[Symbol.asyncIterator]().next());
    expect([error.code, error.field, error.status]).toEqual(["invalid", "after", 400]);
  }
});
