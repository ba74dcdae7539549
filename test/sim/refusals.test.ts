/** What the gateway refuses, and a gateway that is gone for hours: by the real core, on the virtual clock. */
import { describe, expect, test } from "vitest";
import type { Feature } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { signToken } from "../../src/gateway/tokens.ts";
import type { QueueItem } from "../../src/vfs/engine.ts";
import { begin, there } from "./support/one-world.ts";

const TIMEOUT = { timeout: 120_000 };
/** As world.ts has it. */
const KEY = Buffer.alloc(32, 7);

const isUpload = ({ method, path }: HttpRequest) => method === "POST" && path.startsWith("/v1/files/");

/** A world whose requests are changed on their way by whatever `tamper.change` is by then. */
async function tampered(lacks: readonly Feature[] = []) {
  const tamper: { change: (request: HttpRequest) => HttpRequest } = { change: (request) => request };
  const one = await begin(true, { request: (request) => tamper.change(request) }, { lacks });
  const { world, mount } = one;
  const engine = () => {
    if (mount.process === undefined) throw new Error("the mount is down");
    return mount.process.engine;
  };
  async function items(): Promise<QueueItem[]> {
    const all: QueueItem[] = [];
    for await (const some of engine().queue(100)) all.push(...some);
    return all;
  }
  /** Requests as of a token with these scopes. */
  const withToken = (scopes: readonly string[], isMeant: (request: HttpRequest) => boolean = () => true) => {
    const token = signToken(KEY, world.clock, { scopes, workspace: world.workspace.id, ttlSeconds: 86_400 * 30 });
    tamper.change = (request) =>
      isMeant(request) ? { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } } : request;
  };
  const queue = () => world.run(items());
  const names = async () => [...(await there(world)).keys()];
  return { ...one, tamper, engine, queue, withToken, there: names };
}

test(
  "refused for itself (400), a file is parked with the reason, readable, and sent when somebody retries",
  TIMEOUT,
  async () => {
    const { world, tamper, save, queue, there, engine, content, asked } = await tampered();
    tamper.change = (request) => {
      const { body } = request;
      if (!isUpload(request) || !request.path.includes("bad") || body?.kind !== "upload") return request;
      return {
        ...request,
        body: { ...body, metadata: Object.assign({}, body.metadata, { contentHash: "0".repeat(64) }) },
      };
    };
    await save("bad");
    await save("good");
    await world.clock.advance(60_000);
    expect(await there()).toEqual(["good"]);
    expect(asked.filter((line) => line.includes("bad"))).toHaveLength(1);
    const [item, ...others] = await queue();
    expect(others).toEqual([]);
    expect(item).toMatchObject({ path: "/bad", what: "upload", state: "parked" });
    expect(item?.why).toContain("contentHash");
    expect((await content("bad")).length).toBeGreaterThan(0);
    expect(await world.run(engine().drain({ settle: false, signal: new AbortController().signal }))).toEqual({
      drained: false,
      left: [`/bad: ${item?.why}`],
    });
    tamper.change = (request) => request;
    expect(await world.run(engine().retry(["/nothing"]))).toEqual({ retried: 0, unknown: ["/nothing"] });
    expect(await world.run(engine().retry(["/bad"]))).toEqual({ retried: 1, unknown: [] });
    await world.clock.advance(5_000);
    expect(await there()).toEqual(["bad", "good"]);
    expect(await queue()).toEqual([]);
  },
);

test.each([{ status: 413 }, { status: 403 }] as const)(
  "refused for itself ($status), a file is parked at once, and sent when it is changed",
  TIMEOUT,
  async (it) => {
    const { world, mount, save, queue, there, content, names, asked, engine } = await tampered();
    await names();
    mount.weather.refusal = it.status;
    await save("bad");
    await world.clock.advance(10_000);
    mount.weather.refusal = undefined;
    await save("good");
    await world.clock.advance(600_000);
    expect([await there(), await names()]).toEqual([["good"], ["bad", "good"]]);
    expect((await content("bad")).length).toBeGreaterThan(0);
    expect(asked.filter((line) => line.includes("/bad"))).toEqual([]);
    const [item] = await queue();
    expect([item?.path, item?.state, engine().status().parked]).toEqual(["/bad", "parked", 1]);
    expect(item?.why).toMatch(/^refused: /);
    await save("bad", "another");
    await world.clock.advance(10_000);
    expect([await there(), await queue(), engine().status().parked]).toEqual([["bad", "good"], [], 0]);
  },
);

test("a scope the token lacks (403) pauses what needs it after one request, and nothing else", TIMEOUT, async () => {
  const { world, save, unlink, withToken, asked, there, engine, queue, tamper } = await tampered();
  for (const name of ["a", "b", "c", "d"]) await save(name);
  await world.clock.advance(10_000);
  withToken(SCOPES.filter((scope) => scope !== "node.file.delete"));
  await unlink("a");
  await world.clock.advance(10_000);
  await save("e");
  await world.clock.advance(60_000);
  const refused = () => asked.filter((line) => line.startsWith("DELETE") && line.endsWith("403")).length;
  expect(refused()).toBe(1);
  expect(await there()).toEqual(["a", "b", "c", "d", "e"]);
  expect(engine().status().paused).toContain("node.file.delete");
  expect(await queue()).toMatchObject([{ path: "/a", what: "delete", state: "waiting" }]);
  expect((await queue())[0]?.why).toMatch(/^the token lacks node\.file\.delete, it goes with one that has it/);
  // It is tried again, ever more seldom.
  await world.clock.advance(3_600_000);
  expect(refused()).toBeGreaterThan(1);
  expect(refused()).toBeLessThan(7);
  // Another token: at once.
  tamper.change = (request) => request;
  engine().context.network.tokenChanged(undefined);
  await world.clock.advance(5_000);
  expect(await there()).toEqual(["b", "c", "d", "e"]);
  expect(engine().status().paused).toBe(undefined);
});

describe("a scope was refused for long", () => {
  const lacking = SCOPES.filter((scope) => scope !== "node.file.read");
  const posts = (asked: readonly string[]) => asked.filter((line) => line.startsWith("POST")).length;

  test("what waits for it goes soon after something else went that takes it", TIMEOUT, async () => {
    const { world, save, withToken, asked, there, tamper } = await tampered();
    withToken(lacking);
    await save("a");
    // Tried after five minutes, after ten and twenty more.
    await world.clock.advance(40 * 60_000);
    expect(posts(asked)).toBeLessThan(5);
    await world.run(world.outside.createFolder(world.workspace.root, "b"));
    await world.clock.advance(10_000);
    expect(await there()).toEqual(["b"]);
    tamper.change = (request) => request;
    await world.clock.advance(10_000);
    expect(await there()).toEqual(["a", "b"]);
  });

  test("and that has another reason: it is not tried with each thing that is read", TIMEOUT, async () => {
    const { world, save, withToken, asked } = await tampered();
    withToken(lacking, isUpload);
    await save("a");
    for (let minute = 0; minute < 60; minute += 1) {
      await world.run(world.outside.createFolder(world.workspace.root, `b${minute}`));
      await world.clock.advance(60_000);
    }
    expect(world.lines.filter((line) => line.includes("GET /v1/nodes/")).length).toBeGreaterThan(50);
    expect(posts(asked)).toBeGreaterThan(5);
    expect(posts(asked)).toBeLessThan(15);
  });
});

test("a scope nobody expects a request to need (403) does not make it go again and again", TIMEOUT, async () => {
  const { world, unlink, save, withToken, asked, there, tamper, drain } = await tampered();
  await save("a");
  await drain();
  // Without node.file.delete, this gateway says, it wants another one.
  withToken(SCOPES.filter((scope) => scope !== "node.node.update"));
  tamper.change = (
    (change) => (request) =>
      request.method === "DELETE" ? { ...change(request), method: "PATCH", body: { kind: "json", value: {} } } : request
  )(tamper.change);
  await unlink("a");
  await world.clock.advance(60_000);
  expect(asked.filter((line) => line.startsWith("PATCH") && line.endsWith("403")).length).toBeLessThan(10);
  tamper.change = (request) => request;
  await world.clock.advance(60_000);
  expect(await there()).toEqual([]);
});

test("the try after a refused scope meets a conflict: the others do not wait for the next one", TIMEOUT, async () => {
  const { world, calls, withToken, there, tamper, save } = await tampered();
  withToken(SCOPES.filter((scope) => scope !== "node.node.create"));
  await world.run(calls().mkdir("a"));
  await world.clock.advance(2_000);
  await save("b");
  await save("c");
  tamper.change = (request) => request;
  // The journal is late: what is tried first is in somebody's way.
  world.setLag({ path: 600_000, journal: 600_000, id: 0 });
  await world.run(world.outside.createFolder(world.workspace.root, "a"));
  // Tried again after five minutes, or half as much more.
  await world.clock.advance(8 * 60_000);
  world.setLag({ path: 0, journal: 0, id: 0 });
  expect(await there()).toEqual(["a", "b", "c"]);
});

test(
  "without keys, the answer to the try after a refused scope is lost: the others do not wait for the next one",
  TIMEOUT,
  async () => {
    const { world, calls, withToken, there, tamper, save, rules } = await tampered(["uploadKeys", "folderKeys"]);
    withToken(SCOPES.filter((scope) => scope !== "node.node.create"));
    await world.run(calls().mkdir("a"));
    await world.clock.advance(2_000);
    await save("b");
    await save("c");
    tamper.change = (request) => request;
    let isTried = false;
    rules.choose = ({ method }) => {
      if (isTried || method !== "POST") return undefined;
      isTried = true;
      return "lost-after";
    };
    // Tried again after five minutes, or half as much more.
    await world.clock.advance(8 * 60_000);
    expect([isTried, await there()]).toEqual([true, ["a", "b", "c"]]);
  },
);

test("what was removed with its folder is named by where it was, and tried again by that name", TIMEOUT, async () => {
  const { world, mount, calls, save, queue, engine, there } = await tampered();
  for (const folder of ["d", "d/e"]) await world.run(calls().mkdir(folder));
  for (const file of ["d/x", "d/e/y"]) await save(file);
  await world.clock.advance(10_000);
  mount.weather.isOffline = true;
  for (const file of ["d/x", "d/e/y"]) await world.run(calls().unlink(file));
  for (const folder of ["d/e", "d"]) await world.run(calls().rmdir(folder));
  const removed = (await queue()).filter(({ what }) => what === "delete").map(({ path }) => path);
  expect(removed.sort()).toEqual(["/d", "/d/e", "/d/e/y", "/d/x"]);
  expect(await world.run(engine().retry(["/d/e"]))).toMatchObject({ retried: 2, unknown: [] });
  mount.weather.isOffline = false;
  await world.clock.advance(60_000);
  expect(await there()).toEqual([]);
});

test(
  "a token that is refused (401) pauses the queue; the mount goes on, and so does the queue with a good one",
  TIMEOUT,
  async () => {
    const { world, save, content, names, there, engine, tamper, asked, queue } = await tampered();
    await save("a");
    await world.clock.advance(10_000);
    tamper.change = (request) => ({ ...request, headers: { ...request.headers, authorization: "Bearer x" } });
    // With a stream the journal is asked for twice a minute.
    await world.clock.advance(40_000);
    for (const name of ["b", "c", "d"]) await save(name);
    const before = asked.length;
    await world.clock.advance(3_600_000);
    expect(asked.length).toBe(before);
    expect(await names()).toEqual(["a", "b", "c", "d"]);
    expect((await content("a")).length).toBeGreaterThan(0);
    expect(engine().status().paused).toContain("login needed");
    const files = (await queue()).filter(({ path }) => path !== "/");
    expect(files.map(({ state, why }) => [state, why.startsWith("login needed")])).toEqual(
      Array.from({ length: 3 }, () => ["waiting", true]),
    );
    tamper.change = (request) => request;
    await world.clock.advance(10_000);
    expect(await there()).toEqual(["a", "b", "c", "d"]);
    expect(engine().status().paused).toBe(undefined);
  },
);

test(
  "a token is found to be good again within seconds, also while the stream of the journal is as it was",
  TIMEOUT,
  async () => {
    const { world, save, there, engine, tamper } = await tampered();
    await save("a");
    await world.clock.advance(40_000);
    tamper.change = (request) => ({ ...request, headers: { ...request.headers, authorization: "Bearer x" } });
    await save("b");
    await world.clock.advance(4_000);
    expect(engine().status().paused).toContain("login needed");
    tamper.change = (request) => request;
    await world.clock.advance(3_000);
    expect(engine().status().paused).toBe(undefined);
    expect(await there()).toEqual(["a", "b"]);
  },
);

test("what a 429 to an upload asks for is kept by all uploads", TIMEOUT, async () => {
  const { world, save, rules, there } = await tampered();
  let throttledAt: number | undefined;
  const sentAt: number[] = [];
  rules.choose = (request) => {
    if (!isUpload(request)) return undefined;
    sentAt.push(world.clock.elapsed());
    if (throttledAt !== undefined) return undefined;
    throttledAt = world.clock.elapsed();
    return "throttled";
  };
  await save("a");
  await world.clock.advance(500);
  for (let index = 0; index < 6; index += 1) await save(`f${index}`);
  await world.clock.advance(30_000);
  expect((await there()).length).toBe(7);
  const [, ...later] = sentAt;
  // One second is the least that Retry-After says.
  expect(Math.min(...later) - (throttledAt ?? 0)).toBeGreaterThanOrEqual(1_000);
  expect(later).toHaveLength(7);
});

test("offline for hours: everything goes on, then all is delivered in a right order", TIMEOUT, async () => {
  const { world, mount, calls, save, rename, unlink, content, names, there, engine, drain } = await tampered();
  await world.run(calls().mkdir("old"));
  for (const name of ["old/a", "old/b", "c"]) await save(name);
  await drain();
  const kept = await content("old/a");
  mount.weather.isOffline = true;
  await world.clock.advance(60_000);
  const clock = world.clock.wallClock();
  for (let hour = 0; hour < 5; hour += 1) {
    await world.run(calls().mkdir(`new${hour}`));
    await save(`new${hour}/x`);
    await save("c", `c of hour ${hour}`);
    await world.clock.advance(3_600_000);
  }
  await rename("old/a", "new0/a");
  await rename("new1", "new0/inner");
  await unlink("old/b");
  await world.run(calls().rmdir("old"));
  expect(await content("new0/a")).toBe(kept);
  expect(await names()).toEqual(["c", "new0", "new2", "new3", "new4"]);
  const { offlineMs = 0, dirty, online } = engine().status();
  expect([online, dirty > 8]).toEqual([false, true]);
  expect(offlineMs).toBeGreaterThanOrEqual(world.clock.wallClock() - clock);
  const last = await content("c");
  mount.weather.isOffline = false;
  await world.clock.advance(30_000);
  await drain();
  world.check();
  expect(await there()).toEqual([
    "c",
    "new0",
    "new0/a",
    "new0/inner",
    "new0/inner/x",
    "new0/x",
    "new2",
    "new2/x",
    "new3",
    "new3/x",
    "new4",
    "new4/x",
  ]);
  expect(await content("c")).toBe(last);
});
