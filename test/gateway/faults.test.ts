/** A gateway that misbehaves does so as it was told: what befalls a request, and whether it had its effect. */
import { expect, test } from "vitest";
import { FAULTS, type Fault, type FaultOptions } from "../../src/gateway/fault-options.ts";
import { ConnectionReset } from "../../src/gateway/faults.ts";
import { type ElapsedTime, minus } from "../../src/lib/clocks.ts";
import { createTestCore, type ReadAnswer, type TestCore } from "../support/gateway-core.ts";

const versions = (core: TestCore) => Number(core.database.prepare("SELECT count(*) FROM version").pluck().get());

/** What a caller gets: a status, or that the connection broke. */
function outcome(work: Promise<ReadAnswer>): Promise<number | "reset"> {
  return work.then(
    ({ status }) => status,
    (error: unknown) => {
      if (error instanceof ConnectionReset) return "reset" as const;
      throw error;
    },
  );
}

const always = (fault: Fault): Partial<FaultOptions> => ({ faults: { all: { [fault]: 1 } } });

test("each answer takes the latency, half of it before the effect", async () => {
  const core = createTestCore({ latencyMs: 100 });
  const start = core.clock.elapsed();
  let answered = false;
  const upload = core.upload("/v1/files/f", "x").then((answer) => {
    answered = true;
    return answer;
  });
  await core.clock.advance(49);
  expect(versions(core)).toBe(0);
  await core.clock.advance(1);
  expect(versions(core)).toBe(1);
  await core.clock.advance(49);
  expect(answered).toBe(false);
  await core.clock.advance(1);
  expect((await upload).status).toBe(201);
  expect(minus(core.clock.elapsed(), start)).toBe(100);
});

test("a latency with jitter is drawn anew for each answer, the same by the same seed", async () => {
  async function latencies(): Promise<number[]> {
    const core = createTestCore({ latencyMs: 100, latencyJitterMs: 50 });
    const found: number[] = [];
    for (let index = 0; index < 20; index += 1) {
      const start = core.clock.elapsed();
      let end = start;
      const work = core.upload(`/v1/files/${index}`, "x").then(() => {
        end = core.clock.elapsed();
      });
      await core.clock.advance(200);
      await work;
      found.push(minus(end, start));
    }
    return found;
  }
  const found = await latencies();
  expect(Math.min(...found)).toBeGreaterThanOrEqual(100);
  expect(Math.max(...found)).toBeLessThan(150);
  expect(Math.max(...found) - Math.min(...found)).toBeGreaterThan(20);
  expect(await latencies()).toEqual(found);
});

test("a share of requests fails: told before, lost before, lost after the effect", async () => {
  const core = createTestCore({ failRate: 0.5 });
  const outcomes = { answered: 0, refused: 0, before: 0, after: 0 };
  for (let index = 0; index < 600; index++) {
    const before = versions(core);
    const found = await outcome(core.upload(`/v1/files/${index}`, "x"));
    if (found === "reset") outcomes[versions(core) === before ? "before" : "after"] += 1;
    else {
      expect([201, 503]).toContain(found);
      outcomes[found === 503 ? "refused" : "answered"] += 1;
      expect(versions(core) - before).toBe(found === 503 ? 0 : 1);
    }
  }
  expect(outcomes.answered).toBeGreaterThan(250);
  for (const kind of ["refused", "before", "after"] as const) expect(outcomes[kind]).toBeGreaterThan(70);
});

/** The answer that the caller of an upload gets, and the number of versions that the upload made in the end. */
const EXPECTED: Readonly<Record<Fault, readonly [number | "reset", number]>> = {
  error: [500, 0],
  unavailable: [503, 0],
  throttled: [429, 0],
  resetBefore: ["reset", 0],
  resetDuring: ["reset", 1],
  resetAfter: ["reset", 1],
  truncatedUpload: ["reset", 0],
  truncatedAnswer: ["reset", 1],
  ignoredRange: [201, 1],
};

test.each(FAULTS)("an upload that meets %s", async (fault) => {
  for (const size of [0, 10, 100_000]) {
    const core = createTestCore(always(fault));
    const found = await outcome(core.upload("/v1/files/f", Buffer.alloc(size, "x")));
    await core.clock.settle();
    expect([found, versions(core)]).toEqual(EXPECTED[fault]);
    // Nothing is left of what was not done.
    expect(core.blobs.contents.size).toBe(size > 50_000 ? EXPECTED[fault][1] : 0);
    expect(await core.gateway.collectBlobs()).toBe(0);
  }
});

test("a rate of one operation goes before the one of all, each fault by itself", async () => {
  const core = createTestCore({ faults: { all: { unavailable: 1 }, upload: { unavailable: 0, throttled: 1 } } });
  expect((await core.upload("/v1/files/f", "x")).status).toBe(429);
  expect((await core.call("GET", "/v1/nodes", { query: { path: "/" } })).status).toBe(503);
  core.gateway.setOptions({ faults: { listNodes: { error: 1 } } });
  expect((await core.upload("/v1/files/f", "x")).status).toBe(201);
  expect((await core.call("GET", "/v1/nodes", { query: { path: "/" } })).status).toBe(500);
});

test("429 says when to come again", async () => {
  const core = createTestCore({ ...always("throttled"), retryAfterSeconds: 7 });
  const answer = await core.upload("/v1/files/f", "x");
  expect([answer.status, answer.headers["retry-after"]]).toEqual([429, "7"]);
});

test("an answer breaks off in its body: what came of it is its beginning", async () => {
  const core = createTestCore();
  const content = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  const file = await core.file("/f", content);
  core.gateway.setOptions(always("truncatedAnswer"));
  const token = core.token();
  let longest = 0;
  for (let time = 0; time < 20; time += 1) {
    const answer = await core.gateway.handle({
      method: "GET",
      path: `/v1/nodes/${file.id}/content`,
      query: {},
      headers: { authorization: `Bearer ${token}` },
    });
    expect([answer.status, answer.headers["content-length"], answer.body?.kind]).toEqual([200, "100000", "bytes"]);
    const chunks: Uint8Array[] = [];
    const read = async () => {
      if (answer.body?.kind !== "bytes") return;
      for await (const chunk of answer.body.stream) chunks.push(chunk);
    };
    await expect(read()).rejects.toThrow(ConnectionReset);
    const got = Buffer.concat(chunks);
    expect(got.length).toBeLessThan(content.length);
    expect(got.equals(content.subarray(0, got.length))).toBe(true);
    longest = Math.max(longest, got.length);
  }
  expect(longest).toBeGreaterThan(10_000);
});

test("contents come in and answers go out at the speed that was set", async () => {
  const core = createTestCore({ uploadBytesPerSecond: 1000, downloadBytesPerSecond: 2000 });
  const timed = async (work: Promise<ReadAnswer>) => {
    const start = core.clock.elapsed();
    let end: ElapsedTime | undefined;
    const answer = work.then((value) => {
      end = core.clock.elapsed();
      return value;
    });
    while (end === undefined) await core.clock.advance(10);
    return { status: (await answer).status, seconds: minus(end, start) / 1000, bytes: (await answer).bytes.length };
  };
  const up = await timed(core.upload("/v1/files/f", Buffer.alloc(3000)));
  expect(up.status).toBe(201);
  expect(up.seconds).toBeCloseTo(3 + up.bytes / 2000, 0);
  const id = String(core.database.prepare("SELECT id FROM node WHERE name = 'f'").pluck().get());
  const down = await timed(core.call("GET", `/v1/nodes/${id}/content`));
  expect([down.status, down.bytes]).toEqual([200, 3000]);
  expect(down.seconds).toBeCloseTo(1.5, 1);
});

test("Range is passed over", async () => {
  const core = createTestCore();
  const file = await core.file("/f", "0123456789");
  const get = () => core.call("GET", `/v1/nodes/${file.id}/content`, { headers: { range: "bytes=2-4" } });
  expect([(await get()).status, (await get()).bytes.toString()]).toEqual([206, "234"]);
  core.gateway.setOptions(always("ignoredRange"));
  const answer = await get();
  expect([answer.status, answer.bytes.toString()]).toEqual([200, "0123456789"]);
  expect(answer.headers["content-range"]).toBeUndefined();
});

test("a token ends earlier than it says itself", async () => {
  const core = createTestCore({ tokenSeconds: 60 });
  const token = core.token();
  const ask = async () => (await core.call("GET", "/v1/workspaces", { token })).status;
  await core.clock.advance(59_000);
  expect(await ask()).toBe(200);
  await core.clock.advance(1000);
  expect(await ask()).toBe(401);
  expect((await core.call("GET", "/v1/workspaces", { token: core.token() })).status).toBe(200);
  core.gateway.setOptions({ tokenSeconds: 0 });
  expect(await ask()).toBe(200);
});

test("the gateway's clock is another one: times, the end of tokens, the Date of answers", async () => {
  const core = createTestCore();
  const token = core.gateway.issueToken({ scopes: ["account.workspace.read"], ttlSeconds: 3600 });
  core.gateway.setOptions({ clockSkewMs: 2 * 3600 * 1000 });
  const expired = await core.call("GET", "/v1/workspaces", { token });
  expect(expired.status).toBe(401);
  expect(Date.parse(String(expired.headers.date)) - core.clock.wallClock()).toBe(2 * 3600 * 1000);
  const file = await core.file("/f", "x");
  expect(Date.parse(file.createdAt) - core.clock.wallClock()).toBe(2 * 3600 * 1000);
  const { headers } = await core.call("GET", `/v1/nodes/${file.id}`);
  expect(Date.parse(String(headers.date)) - core.clock.wallClock()).toBe(2 * 3600 * 1000);
  // Back again: it lags no more than it is told to, and no time goes back.
  core.gateway.setOptions({ clockSkewMs: -2 * 3600 * 1000, pathLagMs: 1000 });
  const later = await core.file("/g", "x");
  expect(Date.parse(later.createdAt)).toBe(Date.parse(file.createdAt));
  await core.clock.advance(1000);
  expect(await core.names("/")).toEqual(["f", "g"]);
});

test("keys outlive the widest swing of the clock for a day", async () => {
  const core = createTestCore({ clockSkewMs: -12 * 3600 * 1000 });
  const metadata = { idempotencyKey: "k" };
  const first = await core.upload("/v1/files/f", "x", { metadata });
  core.gateway.setOptions({ clockSkewMs: 12 * 3600 * 1000 });
  await core.clock.advance(24 * 3600 * 1000 - 1);
  await core.gateway.forget();
  expect((await core.upload("/v1/files/f", "x", { metadata })).json).toEqual(first.json);
  await core.clock.advance(24 * 3600 * 1000 + 2);
  await core.gateway.forget();
  expect(core.database.prepare("SELECT count(*) FROM idempotency").pluck().get()).toBe(0);
});

test("a lost answer comes back with the key", async () => {
  const core = createTestCore();
  core.gateway.setOptions({ failRate: 0.3, faults: { all: { resetDuring: 0.2, truncatedAnswer: 0.1 } } });
  for (let index = 0; index < 50; index++) {
    const metadata = { idempotencyKey: `k${index}` };
    for (let status: number | "reset" = 0; status !== 201; ) {
      status = await outcome(core.upload(`/v1/files/${index}`, "x", { metadata, headers: { "if-none-match": "*" } }));
      expect(["reset", 201, 503]).toContain(status);
    }
  }
  core.gateway.setOptions({ failRate: 0, faults: {} });
  const journal = await core.call("GET", "/v1/journal", { query: { pageSize: "1000" } });
  expect(journal.json.totalCount).toBe(51);
});

test("options that are none are refused by name", () => {
  const core = createTestCore();
  const set = (options: object) => () => core.gateway.setOptions(options);
  expect(set({ latencyMs: -1 })).toThrow(/^latencyMs: /);
  expect(set({ clockSkewMs: 13 * 3600 * 1000 })).toThrow(/^clockSkewMs: /);
  expect(set({ faults: { uploads: { error: 1 } } })).toThrow(/^faults\.uploads: /);
  expect(set({ faults: { upload: { error: 0.7, resetAfter: 0.7 } } })).toThrow(/^faults\.upload: expected rates/);
  expect(() => createTestCore({ failRate: 2 })).toThrow(/^failRate: /);
});

test("rates that are more than all of the requests together are refused, whichever comes last", () => {
  const core = createTestCore();
  const { gateway } = core;
  gateway.setOptions({ faults: { all: { error: 0.5 }, upload: { throttled: 0.3 } } });
  expect(() => gateway.setOptions({ failRate: 0.3 })).toThrow(
    "failRate: expected rates of upload and a fail rate that sum up to 1 at most, got 1.1",
  );
  gateway.setOptions({ failRate: 0.2 });
  expect(() => gateway.setOptions({ faults: { listNodes: { error: 0.9 } } })).toThrow(
    "faults.listNodes: expected rates of listNodes and a fail rate that sum up to 1 at most, got 1.1",
  );
  const both = { failRate: 0.6, faults: { all: { error: 0.6 } } };
  expect(() => createTestCore(both)).toThrow(/^faults\.all: .*got 1\.2$/);
});
