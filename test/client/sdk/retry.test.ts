/** What is sent again, when, with which key, and what is not. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { Gateway } from "../../../src/client/connect.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { createRetrier, type Safety } from "../../../src/client/sdk/retry.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";
import { exampleNode, exampleWritten } from "../support/examples.ts";
import { broken, drive, json, keyOf, type Step, scripted } from "../support/scripted-transport.ts";
import { failureOf } from "../support/server.ts";

const node = json(200, exampleNode());
// The example's hash is not that of what is sent here.
const written = json(200, exampleWritten({ contentHash: null }));
const entry = {
  position: 7,
  time: "2026-01-02T03:04:05.678Z",
  kind: "reviewed",
  nodeId: "n1",
  revision: 3,
  parentId: "root",
  name: "a.txt",
};

const PASSING: [string, Step][] = [
  ["a broken connection", broken("offline")],
  ["a refused connection", broken("offline", true)],
  ["silence", broken("silent")],
  ["500", json(500, { title: "oops" })],
  ["503", json(503, { title: "later" })],
  ["429", json(429, { title: "slow" })],
  [
    "a body that breaks off",
    () => ({
      status: 200,
      headers: {},
      body: (async function* () {
        yield Buffer.from("{");
        throw new RemoteError("offline", "broken inside");
      })(),
    }),
  ],
];

describe.each(PASSING)("%s", (_, fault) => {
  test("a read is repeated until it goes well", async () => {
    const { gateway, requests, run } = scripted([fault, fault, fault, fault, node]);
    expect((await run(gateway.nodes.get("n1"))).id).toBe("n1");
    expect(requests).toHaveLength(5);
  });

  test("a read is given up after five tries, with the last error", async () => {
    const { gateway, requests, run } = scripted([fault]);
    expect(await run(failureOf(gateway.nodes.get("n1")))).toBeInstanceOf(RemoteError);
    expect(requests).toHaveLength(5);
  });

  test("nothing is repeated when retries are off, for the connection or for the call", async () => {
    const off = scripted([fault], { retries: false });
    await off.run(failureOf(off.gateway.nodes.get("n1")));
    expect(off.requests).toHaveLength(1);
    const call = scripted([fault]);
    await call.run(failureOf(call.gateway.nodes.get("n1", { retries: false })));
    await call.run(failureOf(call.gateway.files.upload("/a", "x", { retries: false })));
    expect(call.requests).toHaveLength(2);
  });

  test.each<[string, (gateway: Gateway, idempotencyKey?: string) => Promise<unknown>, Step]>([
    ["upload", (g, k) => g.files.upload("/a", "hello", { idempotencyKey: k }), written],
    ["new file", (g, k) => g.files.create("root", "a", "hello", { idempotencyKey: k }), written],
    ["new version", (g, k) => g.files.write("n1", "hello", { idempotencyKey: k }), written],
    ["content by reference", (g, k) => g.files.writeCopy("n1", { copyOf: "n2" }, { idempotencyKey: k }), written],
    ["folder", (g, k) => g.nodes.createFolder("root", "d", { idempotencyKey: k }), written],
    ["copy", (g, k) => g.nodes.copy("root", "b", { copyOf: "n2" }, { idempotencyKey: k }), written],
    ["change", (g, k) => g.nodes.update("n1", { name: "b" }, { idempotencyKey: k }), written],
    ["exchange", (g, k) => g.nodes.exchange("n1", "n2", { idempotencyKey: k }), written],
    ["deletion", (g, k) => g.nodes.delete("n1", { idempotencyKey: k }), written],
    ["restoration", (g, k) => g.nodes.restore("n1", { idempotencyKey: k }), written],
    ["journal entry", (g, k) => g.journal.append("n1", "reviewed", { idempotencyKey: k }), json(201, entry)],
  ])("every try of a write has one key: %s", async (_name, call, answer) => {
    const { gateway, requests, run } = scripted([fault, fault, answer, fault, answer]);
    await run(call(gateway));
    await run(call(gateway, "my-key"));
    const keys = requests.map(keyOf);
    expect(keys).toHaveLength(5);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(keys).toEqual([keys[0], keys[0], keys[0], "my-key", "my-key"]);
  });
});

test("two writes have two keys", async () => {
  const { gateway, requests, run } = scripted([written]);
  await run(gateway.nodes.delete("n1"));
  await run(gateway.nodes.delete("n1"));
  expect(keyOf(requests[0] ?? never())).not.toBe(keyOf(requests[1] ?? never()));
});

function never(): never {
  throw new Error("no request was sent");
}

test.each([400, 401, 403, 404, 409, 412, 413, 418, 501])("an answer with %i is final", async (status) => {
  const { gateway, requests, run } = scripted([json(status, { title: "no" })]);
  expect(await run(failureOf(gateway.nodes.get("n1")))).toMatchObject({ status });
  expect(await run(failureOf(gateway.nodes.delete("n1")))).toMatchObject({ status });
  expect(requests).toHaveLength(2);
});

test("an answer that does not fit the contract is final", async () => {
  const { gateway, requests, run } = scripted([json(200, { id: 5 })]);
  expect(await run(failureOf(gateway.nodes.get("n1")))).toMatchObject({ code: "malformed" });
  expect(requests).toHaveLength(1);
});

test("waits double and are never shorter than half; their limit holds", async () => {
  const retries = { tries: 8, firstDelayMs: 100, maxDelayMs: 1000 };
  const { gateway, times, run } = scripted([broken()], { retries });
  await run(failureOf(gateway.nodes.get("n1")));
  const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  const full = [100, 200, 400, 800, 1000, 1000, 1000];
  expect(waits).toHaveLength(full.length);
  for (const [index, wait] of waits.entries()) {
    expect(wait).toBeGreaterThanOrEqual((full[index] ?? 0) / 2);
    expect(wait).toBeLessThanOrEqual(full[index] ?? 0);
  }
});

test("two callers that fail together do not come back together", async () => {
  const waits = await Promise.all(
    [1, 2].map(async (seed) => {
      const { gateway, times, run } = scripted([broken(), node], { seed });
      await run(gateway.nodes.get("n1"));
      return times[1];
    }),
  );
  expect(waits[0]).not.toBe(waits[1]);
});

test("Retry-After is waited for, and a little longer", async () => {
  const { gateway, times, run } = scripted([json(429, { title: "slow" }, { "retry-after": "7" }), node]);
  await run(gateway.nodes.get("n1"));
  expect(times[1]).toBeGreaterThanOrEqual(7000);
  expect(times[1]).toBeLessThan(8000);
});

test("a Retry-After that is too long is the caller's to wait", async () => {
  const steps = [json(503, { title: "closed" }, { "retry-after": "61" })];
  const { gateway, requests, clock, run } = scripted(steps);
  expect(await run(failureOf(gateway.nodes.get("n1")))).toMatchObject({ code: "server", retryAfterMs: 61_000 });
  expect(requests).toHaveLength(1);
  expect(clock.elapsed()).toBe(0);
});

test("an abort while waiting ends the call at once and leaves no timer", async () => {
  const { gateway, clock, requests } = scripted([broken()]);
  const controller = new AbortController();
  const failure = failureOf(gateway.nodes.get("n1", { signal: controller.signal }));
  while (clock.nextTimer() === undefined) await clock.settle();
  controller.abort();
  expect(await failure).toMatchObject({ code: "aborted" });
  expect(requests).toHaveLength(1);
  expect(clock.nextTimer()).toBeUndefined();
});

test("a signal that serves for many calls keeps nothing of them", async () => {
  const { gateway, run } = scripted([broken(), json(503, {}), node]);
  const { signal } = new AbortController();
  await run(gateway.nodes.get("n1", { signal }));
  await run(gateway.nodes.get("n1", { signal }));
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("closing ends what waits, and leaves no timer", async () => {
  const { gateway, clock } = scripted([broken()]);
  const failure = failureOf(gateway.nodes.get("n1"));
  while (clock.nextTimer() === undefined) await clock.settle();
  await gateway.close();
  expect(await failure).toMatchObject({ code: "aborted", message: expect.stringContaining("closed") });
  expect(clock.nextTimer()).toBeUndefined();
});

test("what a caller aborted is not repeated", async () => {
  const controller = new AbortController();
  const { gateway, requests, run } = scripted([
    () => {
      controller.abort();
      throw new RemoteError("offline", "broken, and aborted meanwhile");
    },
  ]);
  await run(failureOf(gateway.nodes.get("n1", { signal: controller.signal })));
  expect(requests).toHaveLength(1);
});

const offline = new RemoteError("offline", "broken");
const unsent = new RemoteError("offline", "refused", { isUnsent: true });
const throttled = new RemoteError("throttled", "slow", { status: 429 });
const server = new RemoteError("server", "oops", { status: 500 });

test.each<[Safety, RemoteError, number]>([
  ["unkeyed", offline, 1],
  ["unkeyed", server, 1],
  ["unkeyed", unsent, 3],
  ["unkeyed", throttled, 3],
  ["keyed", offline, 3],
  ["keyed", server, 3],
  ["read", offline, 3],
])("%s after %s is sent %i times", async (safety, error, expected) => {
  const clock = createVirtualClock();
  const retrier = createRetrier(clock, { tries: 3 });
  let count = 0;
  const call = () => {
    count += 1;
    return Promise.reject(error);
  };
  expect(await drive(clock, failureOf(retrier.run(safety, call)))).toBe(error);
  expect(count).toBe(expected);
});

test.each([0, -1, 1.5, Number.NaN])("tries of %d are refused in words", (tries) => {
  const connecting = () => scripted([broken()], { retries: { tries } });
  expect(connecting).toThrow(`connect: retries.tries: expected a whole number from 1, got ${tries}`);
});

test("a tree is gone on with where an answer was lost, all of it under one key", async () => {
  const slice = (path: string, next: string | null) =>
    json(200, { items: [{ action: "restore", nodeId: "n", kind: "file", path }], next, position: 7 });
  const { gateway, requests, run } = scripted([slice("/a", "more"), broken("offline"), slice("/b", null)]);
  const paths = async () => {
    const found: string[] = [];
    for await (const { path } of gateway.nodes.restoreTree("n1", new Date(0))) found.push(path);
    return found;
  };
  expect(await run(paths())).toEqual(["/a", "/b"]);
  const sent = requests.map(({ body }) => (body?.kind === "json" ? Object(body.value) : undefined));
  expect(sent.map(({ at, after }) => [at, after])).toEqual(
    ["", "more", "more"].map((after) => ["1970-01-01T00:00:00.000Z", after]),
  );
  expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
});
