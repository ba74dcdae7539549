/** The gateway refuses requests, asks for pauses, breaks connections or is away for hours: what waits, what goes on, and when it is tried again. */

import { describe, expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { millisecondsOf, minus } from "../../src/lib/clocks.ts";
import { begin, there } from "./support/one-world.ts";
import { tampered } from "./support/tampered.ts";

describe("refusals", () => {
  const TIMEOUT = { timeout: 120_000 };

  const isUpload = ({ method, path }: HttpRequest) => method === "POST" && path.startsWith("/v1/files/");

  test(
    "refused for itself (400), a file is parked with the reason, readable, and sent when somebody retries",
    TIMEOUT,
    async () => {
      const { world, tamper, heal, save, queue, there, engine, content, asked } = await tampered();
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
      heal();
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

  test("what a 429 to an upload asks for is kept by all uploads", TIMEOUT, async () => {
    const { world, save, rules, there } = await tampered();
    let throttledAt: number | undefined;
    const sentAt: number[] = [];
    rules.choose = (request) => {
      if (!isUpload(request)) return undefined;
      sentAt.push(millisecondsOf(world.clock.elapsed()));
      if (throttledAt !== undefined) return undefined;
      throttledAt = millisecondsOf(world.clock.elapsed());
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
});

describe("Retry-After", () => {
  const TIMEOUT = { timeout: 60_000 };

  const SOON_MS = 5_000;

  const LIMIT_MS = 5 * 60_000;

  const isUpload = ({ method, path }: HttpRequest) => method === "POST" && path.startsWith("/v1/files/");

  const isList = ({ path }: HttpRequest) => path === "/v1/nodes";

  const isPage = ({ path }: HttpRequest) => path === "/v1/journal";

  async function started() {
    const sim = await begin();
    const { world, engine, names } = sim;
    await world.run(world.outside.createFolder(world.workspace.root, "before"));
    await sim.until(() => engine().status().live);
    await world.clock.advance(SOON_MS);
    expect(await names()).toEqual(["before"]);
    const others = async (name: string) => {
      await world.run(world.outside.createFolder(world.workspace.root, name));
      await world.clock.advance(SOON_MS);
      expect(await names()).toContain(name);
      expect(engine().status()).toMatchObject({ live: true, online: true });
    };
    return { ...sim, others };
  }

  test.each(["throttled-long", "unavailable-long"] as const)(
    "uploads wait after one was %s, no longer than five minutes, and what others do is shown at once",
    TIMEOUT,
    async (fault) => {
      const { world, once, until, save, engine, others } = await started();
      const refused = once(fault, isUpload);
      await save("mine");
      await until(refused.isSent);
      const begun = world.clock.elapsed();
      await others("theirs");
      expect(engine().status().paused).toContain("takes no more");
      await save("another");
      await until(() => engine().status().dirty === 0, LIMIT_MS + SOON_MS);
      const waited = minus(world.clock.elapsed(), begun);
      expect(waited).toBeGreaterThanOrEqual(LIMIT_MS - SOON_MS);
      expect([...(await there(world)).keys()]).toEqual(expect.arrayContaining(["mine", "another"]));
      world.end();
    },
  );

  test("a retry by hand is tried at once", TIMEOUT, async () => {
    const { world, once, until, save, engine } = await started();
    const refused = once("throttled-long", isUpload);
    await save("mine");
    await until(refused.isSent);
    await world.clock.advance(SOON_MS);
    expect(await world.run(engine().retry())).toEqual({ retried: 1, unknown: [] });
    await until(() => engine().status().dirty === 0, SOON_MS);
    world.end();
  });

  test("what is asked for by hand is held back no more where nodes could not be read", TIMEOUT, async () => {
    const { world, once, until, names, engine } = await started();
    const refused = once("throttled-long", ({ method, path }) => method === "GET" && /^\/v1\/nodes\/[^/]+$/.test(path));
    await world.run(world.outside.createFolder(world.workspace.root, "theirs"));
    await until(refused.isSent);
    await world.clock.advance(60_000);
    expect(await names()).toEqual(["before"]);
    expect(engine().status()).toMatchObject({ live: false, online: true });
    await world.run(engine().retry());
    await world.clock.advance(SOON_MS);
    expect(await names()).toContain("theirs");
    world.end();
  });

  test.each([
    { what: "lists", isIt: isList },
    { what: "pages of the journal", isIt: isPage },
  ])("$what that are to wait hold up neither uploads nor what comes by the stream", TIMEOUT, async ({ isIt }) => {
    const { world, rules, save, until, engine, others, calls } = await started();
    await world.run(world.outside.createFolder(world.workspace.root, "unknown"));
    await world.clock.advance(SOON_MS);
    const asked: number[] = [];
    rules.choose = (request) => {
      if (!isIt(request)) return undefined;
      asked.push(millisecondsOf(world.clock.elapsed()));
      return "throttled-long";
    };
    // A page is asked for now and then, a list by who looks into what is not known.
    if (isIt === isList) await expect(world.run(calls().list("unknown"))).rejects.toThrow();
    else await until(() => asked.length > 0, 60_000);
    const before = asked.length;
    await others("theirs");
    await save("mine");
    await until(() => engine().status().dirty === 0, SOON_MS);
    // The next page would have been asked for by then.
    await world.clock.advance(30_000);
    expect(asked).toHaveLength(before);
    await others("more");
    world.end();
  });
});

describe("connections that break", () => {
  const TIMEOUT = { timeout: 60_000 };

  const isWrite = ({ method }: HttpRequest) => method !== "GET";

  test("every third connection breaks: a hundred files are there within seconds", TIMEOUT, async () => {
    const it = await begin();
    let sent = 0;
    it.rules.choose = (request) => (isWrite(request) && ++sent % 3 === 0 ? "lost-before" : "none");
    for (let index = 0; index < 100; index += 1) await it.save(`f${index}`);
    const begun = it.world.clock.elapsed();
    await it.drain();
    // The debounce, a few turns of what broke, and the index.
    expect(minus(it.world.clock.elapsed(), begun)).toBeLessThan(3_000);
    expect(sent).toBeGreaterThan(100);
  });

  test("what breaks each time is sent ever more seldom, though all else is answered", TIMEOUT, async () => {
    const it = await begin();
    let sent = 0;
    it.rules.choose = (request) => {
      if (!isWrite(request)) return "none";
      sent += 1;
      return "lost-before";
    };
    await it.save("a");
    await it.world.clock.advance(10 * 60_000);
    expect(sent).toBeGreaterThan(5);
    // The file and the time of its folder, each after one second, two, four, and so on.
    expect(sent).toBeLessThan(30);
    it.rules.choose = () => undefined;
    await it.ends(["a"]);
  });

  test("a gateway that is away is asked at once whether it is, then at most every five seconds", TIMEOUT, async () => {
    const it = await begin();
    let asked = 0;
    await it.world.clock.advance(5_000);
    it.rules.choose = () => {
      asked += 1;
      return "lost-before";
    };
    await it.world.clock.advance(60_000);
    const inAMinute = asked;
    expect(inAMinute).toBeGreaterThan(10);
    expect(inAMinute).toBeLessThan(60);
    await it.world.clock.advance(60_000);
    expect(asked - inAMinute).toBeLessThan(40);
    it.rules.choose = () => undefined;
    await it.world.clock.advance(6_000);
    expect(it.mount.process?.engine.condition().online).toBe(true);
  });
});
