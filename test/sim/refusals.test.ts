/**
 * Requests that are not carried out: the gateway refuses them, asks for pauses, breaks connections or does not answer
 * for hours, or the token, its scopes or the account's role do not suffice. Which requests wait, which go on, when they
 * are tried again, what programs and people are told, and whether the journal counts as live.
 */
import { describe, expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import type { Role } from "../../src/contract/roles.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { millisecondsOf, minus } from "../../src/lib/clocks.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { CALLER } from "../engine/support/bytes-world.ts";
import { accountToken, newAccount } from "../support/account-token.ts";
import { PLAIN } from "../support/features.ts";
import { codeOf } from "./support/calls.ts";
import { begin, there } from "./support/one-world.ts";
import { isFileCreation, isReference } from "./support/requests.ts";
import { tampered } from "./support/tampered.ts";
import { hashOf } from "./support/tree.ts";
import { beginTwo, LEASES_MS } from "./support/two-world.ts";

const TIMEOUT = { timeout: 120_000 };

const A_MINUTE = { timeout: 60_000 };

describe("refused requests", () => {
  test(
    "refused for itself (400), a file is parked with the reason, readable, and sent when a person retries",
    TIMEOUT,
    async () => {
      const { world, tamper, heal, save, queue, there, engine, content, asked } = await tampered();
      tamper.change = (request) => {
        const { body } = request;
        if (!isFileCreation(request) || !request.path.includes("bad") || body?.kind !== "upload") return request;
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

  test(
    "a deletion is named by where the file was, also when its folder went too, and retried by that name",
    TIMEOUT,
    async () => {
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
    },
  );

  test("all uploads keep the pause that a 429 to one of them asks for", TIMEOUT, async () => {
    const { world, save, rules, there } = await tampered();
    let throttledAt: number | undefined;
    const sentAt: number[] = [];
    rules.choose = (request) => {
      if (!isFileCreation(request)) return undefined;
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

  test("offline for hours: everything goes on, then all is sent in a right order", TIMEOUT, async () => {
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
  const SOON_MS = 5_000;

  const LIMIT_MS = 5 * 60_000;

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
    A_MINUTE,
    async (fault) => {
      const { world, once, until, save, engine, others } = await started();
      const refused = once(fault, isFileCreation);
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

  test("a retry by hand is sent at once", A_MINUTE, async () => {
    const { world, once, until, save, engine } = await started();
    const refused = once("throttled-long", isFileCreation);
    await save("mine");
    await until(refused.isSent);
    await world.clock.advance(SOON_MS);
    expect(await world.run(engine().retry())).toEqual({ retried: 1, unknown: [] });
    await until(() => engine().status().dirty === 0, SOON_MS);
    world.end();
  });

  test("where nodes were not to be read for a while, a retry by hand reads them at once", A_MINUTE, async () => {
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
  ])("$what that are to wait delay neither uploads nor the stream", A_MINUTE, async ({ isIt }) => {
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
  const isWrite = ({ method }: HttpRequest) => method !== "GET";

  test("every third connection breaks: a hundred files are there within seconds", A_MINUTE, async () => {
    const it = await begin();
    let sent = 0;
    it.rules.choose = (request) => (isWrite(request) && ++sent % 3 === 0 ? "lost-before" : "none");
    for (let index = 0; index < 100; index += 1) await it.save(`f${index}`);
    const begun = it.world.clock.elapsed();
    await it.drain();
    // The debounce, a few tries of what broke, and the index.
    expect(minus(it.world.clock.elapsed(), begun)).toBeLessThan(3_000);
    expect(sent).toBeGreaterThan(100);
  });

  test(
    "a request that breaks each time is sent less and less often, though all others are answered",
    A_MINUTE,
    async () => {
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
    },
  );

  test(
    "a gateway that does not answer is asked once more at once, then at most every five seconds",
    A_MINUTE,
    async () => {
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
    },
  );
});

describe("a reference that the gateway refuses", () => {
  /** Files "a" and "b"; what names another node's content is refused on its way. */
  async function refusing(cacheLimit: number) {
    const it = await tampered({ settings: { cacheLimit } });
    const { world, tamper } = it;
    await it.save("a", "content of a");
    await it.save("b", "content of b");
    await it.drain();
    const content = await it.content("a");
    await world.clock.advance(10_000);
    let references = 0;
    let reads = 0;
    const unknown = "019b76da-0000-7000-8000-000000000000";
    tamper.change = (request) => {
      const { body } = request;
      if (body?.kind !== "json" || !isReference(request)) return request;
      references += 1;
      return { ...request, body: { ...body, value: Object.assign({}, body.value, { copyOf: unknown }) } };
    };
    return {
      ...it,
      text: content,
      /** Requests that were refused. */
      refused: () => ({ references, reads }),
      /** Its bytes are not to be had either. */
      hide() {
        const before = tamper.change;
        tamper.change = (request) => {
          if (request.method !== "GET" || !request.path.endsWith("/content")) return before(request);
          reads += 1;
          return { ...request, path: `/v1/nodes/${unknown}/content` };
        };
      },
      contentOf: async (name: string) => (await there(world)).get(name)?.content,
    };
  }

  test.each([
    { where: "kept here", cacheLimit: 1 << 20 },
    { where: "fetched for it", cacheLimit: 0 },
  ])("it is refused once, and the bytes are sent: $where", TIMEOUT, async ({ cacheLimit }) => {
    const it = await refusing(cacheLimit);
    await it.rename("a", "b");
    await it.ends(["b"]);
    expect([it.refused().references, await it.contentOf("b")]).toEqual([1, hashOf(Buffer.from(it.text))]);
  });

  test(
    "the bytes cannot be read either: it is parked with the reason, delays nothing else, and goes when it can",
    TIMEOUT,
    async () => {
      const it = await refusing(0);
      it.hide();
      await it.rename("a", "b");
      await it.world.clock.advance(5_000);
      const trying = (await it.queue()).find(({ path }) => path === "/b");
      expect(trying).toMatchObject({ what: "version", state: "retry" });
      expect(trying?.why).toMatch(/^its content could not be read \d times: /);
      await it.save("other");
      await it.world.clock.advance(10_000);
      expect(await it.contentOf("other")).toBeDefined();
      await it.world.clock.advance(300_000);
      const [parked, waiting] = await it.queue();
      expect(parked).toMatchObject({ path: "/b", state: "parked" });
      expect(parked?.why).toContain("the missing bytes of its content cannot be had: ");
      expect(waiting).toMatchObject({ path: "/a", what: "delete", why: "its content is still needed by another one" });
      expect(it.engine().status().parked).toBe(1);
      const { references, reads } = it.refused();
      expect([references, reads < 12]).toEqual([1, true]);
      it.heal();
      expect(await it.world.run(it.engine().retry(["/b"]))).toEqual({ retried: 1, unknown: [] });
      await it.ends(["b", "other"]);
      expect(await it.contentOf("b")).toBe(hashOf(Buffer.from(it.text)));
    },
  );
});

describe("scopes and refused tokens", () => {
  test(
    "a scope the token lacks (403) pauses the requests that need it after the first one, and no others",
    TIMEOUT,
    async () => {
      const { world, save, unlink, withBearer, tokenWith, tokenChanged, asked, there, engine, queue, heal } =
        await tampered();
      for (const name of ["a", "b", "c", "d"]) await save(name);
      await world.clock.advance(10_000);
      withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.file.delete")));
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
      heal();
      tokenChanged();
      await world.clock.advance(5_000);
      expect(await there()).toEqual(["b", "c", "d", "e"]);
      expect(engine().status().paused).toBe(undefined);
    },
  );

  test("a folder that waits for its name is read by its id now and then", TIMEOUT, async () => {
    const { world, rules, calls, drain, withBearer, tokenWith } = await tampered({ features: PLAIN });
    await world.run(calls().mkdir("d"));
    await world.run(calls().mkdir("e"));
    await drain();
    const { items } = await world.run(world.outside.listFolder(world.workspace.root));
    const path = `/v1/nodes/${items.find(({ name }) => name === "e")?.id}`;
    let reads = 0;
    rules.choose = (request) => {
      if (request.method === "GET" && request.path === path) reads += 1;
      return undefined;
    };
    withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.file.delete")));
    await world.run(calls().rmdir("d"));
    await world.run(calls().rename("e", "d"));
    await world.clock.advance(120_000);
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThan(12);
  });

  const lacking = SCOPES.filter((scope) => scope !== "node.file.read");

  describe("a scope was refused for long", () => {
    const posts = (asked: readonly string[]) => asked.filter((line) => line.startsWith("POST")).length;

    test("requests that wait for it go soon after another one that needs it was carried out", TIMEOUT, async () => {
      const { world, save, withBearer, tokenWith, asked, there, heal } = await tampered();
      withBearer(tokenWith(lacking));
      await save("a");
      // Tried after five minutes, after ten and twenty more.
      await world.clock.advance(40 * 60_000);
      expect(posts(asked)).toBeLessThan(5);
      await world.run(world.outside.createFolder(world.workspace.root, "b"));
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["b"]);
      heal();
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["a", "b"]);
    });

    test("where it has another reason, it is not tried with each node that is read", TIMEOUT, async () => {
      const { world, save, withBearer, tokenWith, asked } = await tampered();
      withBearer(tokenWith(lacking), isFileCreation);
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

  test(
    "a scope that only a reference to other content needs (403): the reference waits and is not sent again and again",
    TIMEOUT,
    async () => {
      const { world, save, rename, withBearer, tokenWith, asked, there, engine, heal, tokenChanged, drain } =
        await tampered();
      await save("a");
      await save("b");
      await drain();
      withBearer(tokenWith(lacking), ({ method, path }) => method === "POST" && path.endsWith("/versions"));
      await rename("b", "a");
      await world.clock.advance(60_000);
      expect(asked.filter((line) => line.endsWith("/versions 403"))).toHaveLength(1);
      expect(engine().status().paused).toContain("node.file.read");
      heal();
      tokenChanged();
      await world.clock.advance(60_000);
      expect(await there()).toEqual(["a"]);
    },
  );

  test("a scope that a request is not known to need (403) does not make it go again and again", TIMEOUT, async () => {
    const { world, unlink, save, withBearer, tokenWith, asked, there, tamper, heal, drain } = await tampered();
    await save("a");
    await drain();
    // Without node.file.delete, this gateway says, it wants another one.
    withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.node.update")));
    tamper.change = (
      (change) => (request) =>
        request.method === "DELETE"
          ? { ...change(request), method: "PATCH", body: { kind: "json", value: {} } }
          : request
    )(tamper.change);
    await unlink("a");
    await world.clock.advance(60_000);
    expect(asked.filter((line) => line.startsWith("PATCH") && line.endsWith("403")).length).toBeLessThan(10);
    heal();
    await world.clock.advance(60_000);
    expect(await there()).toEqual([]);
  });

  test(
    "the try after a refused scope meets a conflict: the other requests do not wait for the next try",
    TIMEOUT,
    async () => {
      const { world, calls, withBearer, tokenWith, there, heal, save } = await tampered();
      withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.node.create")));
      await world.run(calls().mkdir("a"));
      await world.clock.advance(2_000);
      await save("b");
      await save("c");
      heal();
      // The journal is late: what is tried first is in somebody's way.
      world.setLag({ path: 600_000, journal: 600_000, id: 0 });
      await world.run(world.outside.createFolder(world.workspace.root, "a"));
      // Tried again after five minutes, or half as much more.
      await world.clock.advance(8 * 60_000);
      world.setLag({ path: 0, journal: 0, id: 0 });
      expect(await there()).toEqual(["a", "b", "c"]);
    },
  );

  test(
    "at a plain gateway, the answer to the try after a refused scope is lost: the other requests do not wait for the next try",
    TIMEOUT,
    async () => {
      const { world, calls, withBearer, tokenWith, there, heal, save, rules } = await tampered({ features: PLAIN });
      withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.node.create")));
      await world.run(calls().mkdir("a"));
      await world.clock.advance(2_000);
      await save("b");
      await save("c");
      heal();
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

  test(
    "a token that is refused (401) pauses the queue; the mount goes on, and so does the queue with a good one",
    TIMEOUT,
    async () => {
      const { world, save, content, names, there, engine, withBearer, heal, asked, queue } = await tampered();
      await save("a");
      await world.clock.advance(10_000);
      withBearer("x");
      // With a stream the journal is asked for twice a minute.
      await world.clock.advance(40_000);
      for (const name of ["b", "c", "d"]) await save(name);
      const before = asked.length;
      await world.clock.advance(3_600_000);
      expect(asked.length).toBe(before);
      expect(await names()).toEqual(["a", "b", "c", "d"]);
      expect((await content("a")).length).toBeGreaterThan(0);
      expect(engine().status().paused).toContain("login needed");
      const files = await queue();
      expect(files.map(({ state, why }) => [state, why.startsWith("login needed")])).toEqual(
        Array.from({ length: 3 }, () => ["waiting", true]),
      );
      heal();
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["a", "b", "c", "d"]);
      expect(engine().status().paused).toBe(undefined);
    },
  );

  test(
    "a token is found to be good again within seconds, also while the stream of the journal goes on",
    TIMEOUT,
    async () => {
      const { world, save, there, engine, withBearer, heal } = await tampered();
      await save("a");
      await world.clock.advance(40_000);
      withBearer("x");
      await save("b");
      await world.clock.advance(4_000);
      expect(engine().status().paused).toContain("login needed");
      heal();
      await world.clock.advance(3_000);
      expect(engine().status().paused).toBe(undefined);
      expect(await there()).toEqual(["a", "b"]);
    },
  );
});

describe("roles", () => {
  /** Longer than an id that answers 404 counts as merely late. */
  const LONG_MS = 15 * 60_000;

  /** A look at the workspace, and what is sent for it. */
  const SOON_MS = 25_000;

  const MANY = Array.from({ length: 40 }, (_, index) => `f${String(index).padStart(2, "0")}`);

  /** With the time of the folder they are in. */
  const UNSENT = MANY.length + 1;

  /** One mount with ada's tokens, for one workspace if they are bound; she is an editor at first. */
  async function mountOfAda(isBound = false) {
    const one = await tampered();
    const { world, calls, engine } = one;
    const { accounts } = world.accounts;
    const ada = newAccount(world.accounts, "ada");
    const setRole = (role: Role | undefined) => {
      if (role === undefined) accounts.removeRole(ada.id, world.workspace.id);
      else accounts.setRole(ada.id, world.workspace.id, role);
    };
    setRole("editor");
    const binding = isBound ? { workspace: world.workspace.id } : {};
    one.withBearer(() => accountToken(world.accounts, world.clock, ada, binding));
    await one.again("remount");
    return {
      ...one,
      setRole,
      said: (work: Promise<unknown>) => world.run(work.then(() => "done", codeOf)),
      make: (name: string) => calls().mkdir(name),
      drain: () => world.run(engine().drain({ settle: false, signal: new AbortController().signal })),
      refusals: () => one.asked.filter((line) => line.endsWith("403")).length,
    };
  }

  const AS_VIEWER = /^your role in workspace "workspace" is viewer, changing files takes editor: ask an owner of it/;

  const AS_STRANGER = /^you have no role in workspace "workspace" any more: ask an owner of it/;

  test(
    "a role that becomes too low: a few refusals, then everything waits, and goes by itself when the role is given",
    TIMEOUT,
    async () => {
      const { world, save, setRole, engine, refusals, there, said, make, drain, queue, content, calls, again } =
        await mountOfAda();
      await save("before");
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["before"]);
      setRole("viewer");
      for (const name of MANY) await save(name);
      await world.clock.advance(SOON_MS);
      // Those that were on their way when the first answer came.
      expect(refusals()).toBeGreaterThan(0);
      expect(refusals()).toBeLessThanOrEqual(8);
      const before = refusals();
      expect(engine().status()).toMatchObject({
        readOnly: expect.stringMatching(AS_VIEWER),
        dirty: UNSENT,
        parked: 0,
      });
      expect(engine().status().paused).toBe(undefined);
      expect(new Set((await queue()).map(({ state, why }) => `${state} ${why.slice(0, 40)}`)).size).toBe(1);
      // A program hears that it cannot save; what is there is read.
      expect([await said(make("no")), await said(calls().unlink("before"))]).toEqual(["EROFS", "EROFS"]);
      expect((await content("f00")).length).toBe(40);
      const { drained, left } = await drain();
      expect([drained, left[0]]).toEqual([false, expect.stringContaining("your role")]);
      await world.clock.advance(60_000);
      expect(await world.run(engine().retry())).toMatchObject({ held: { why: expect.stringContaining("your role") } });
      await world.clock.advance(60_000);
      expect(refusals()).toBe(before);
      // As a new mount hears at once.
      await again("crash");
      expect([engine().status().readOnly, engine().status().dirty]).toEqual([expect.stringMatching(AS_VIEWER), UNSENT]);
      setRole("editor");
      await world.clock.advance(SOON_MS);
      expect(await there()).toEqual(["before", ...MANY]);
      expect([engine().status().readOnly, engine().status().dirty, refusals()]).toEqual([undefined, 0, before]);
      world.end();
    },
  );

  test("a retry by hand looks at the role at once", TIMEOUT, async () => {
    const { world, save, setRole, engine, there } = await mountOfAda();
    setRole("viewer");
    await save("f");
    await world.clock.advance(SOON_MS);
    setRole("editor");
    expect(await world.run(engine().retry())).toEqual({ retried: 2, unknown: [] });
    await world.clock.advance(1_000);
    expect(await there()).toEqual(["f"]);
    world.end();
  });

  test.each([{ isBound: false }, { isBound: true }])(
    "a role that is taken away: names stay, and nothing unsent is lost; given again, everything goes on (bound: $isBound)",
    TIMEOUT,
    async ({ isBound }) => {
      const ofAda = await mountOfAda(isBound);
      const { world, save, setRole, engine, there, said, make, names, content, rename, asked } = ofAda;
      for (const name of ["kept", "moved"]) await save(name);
      await world.clock.advance(10_000);
      setRole(undefined);
      await save("unsent");
      await save("kept", "newer");
      await rename("moved", "elsewhere");
      const mine = await content("kept");
      await world.clock.advance(SOON_MS);
      expect(engine().status()).toMatchObject({ readOnly: expect.stringMatching(AS_STRANGER), parked: 0, live: false });
      expect(await said(make("no"))).toBe("EROFS");
      const before = asked.length;
      await world.clock.advance(LONG_MS);
      expect(asked.length).toBe(before);
      const { dirty } = engine().status();
      expect([await names(), dirty]).toEqual([["elsewhere", "kept", "unsent"], 4]);
      setRole("editor");
      await world.clock.advance(SOON_MS);
      expect(await there()).toEqual(["elsewhere", "kept", "unsent"]);
      expect([await content("kept"), engine().status().dirty, engine().status().live]).toEqual([mine, 0, true]);
      // By the stream again, not by pages alone.
      await world.clock.advance(60_000);
      await world.run(world.outside.createFolder(world.workspace.root, "theirs"));
      await world.clock.advance(300);
      expect(await names()).toEqual(["elsewhere", "kept", "theirs", "unsent"]);
      world.end();
    },
  );

  test(
    "a viewer's mount refuses changes from the start, and takes them soon after the role is given",
    TIMEOUT,
    async () => {
      const { world, setRole, engine, again, said, make, there, refusals } = await mountOfAda();
      setRole("viewer");
      await again("remount");
      expect(engine().condition().readOnly).toMatch(AS_VIEWER);
      expect([await said(make("no")), refusals()]).toEqual(["EROFS", 0]);
      setRole("owner");
      await world.clock.advance(SOON_MS);
      expect(await said(make("yes"))).toBe("done");
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["yes"]);
      world.end();
    },
  );

  test.each([{ isBound: false }, { isBound: true }])(
    "a stranger's mount does not start, and says that no such workspace is visible (bound: $isBound)",
    TIMEOUT,
    async ({ isBound }) => {
      const { world, setRole, mount } = await mountOfAda(isBound);
      await world.run(mount.stop());
      setRole(undefined);
      await expect(world.run(mount.start())).rejects.toThrow(/^no workspace "workspace" is visible to this token[;,] /);
      world.end();
    },
  );
});

describe("whether the journal is live", () => {
  /** Two looks at the token, and a request. */
  const SOON_MS = 5_000;

  /** A mount that is live, and the paths it asks for; its stream stays open when its requests bear another token. */
  async function started() {
    const it = await tampered();
    const seen: string[] = [];
    it.rules.choose = ({ path }) => {
      seen.push(path);
      return undefined;
    };
    await it.until(() => it.engine().status().live);
    await it.world.clock.advance(SOON_MS);
    expect(await it.names()).toEqual([]);
    expect(it.engine().status().live).toBe(true);
    return { ...it, seen };
  }

  test(
    "a refused token ends it, though the stream of the token before goes on; a good one brings it back",
    A_MINUTE,
    async () => {
      const { world, engine, withBearer, heal, names } = await started();
      withBearer("bad");
      const begun = world.clock.wallClock();
      await world.run(world.outside.createFolder(world.workspace.root, "theirs"));
      await world.clock.advance(SOON_MS);
      expect(await names()).toEqual([]);
      const { live, staleMs = 0, staleWhy } = engine().status();
      expect([live, staleWhy]).toEqual([false, expect.stringMatching(/^login needed.*401/)]);
      expect(staleMs).toBeLessThanOrEqual(world.clock.wallClock() - begun);
      // Heartbeats go on, and prove nothing.
      await world.clock.advance(60_000);
      expect(engine().status().live).toBe(false);
      heal();
      await world.clock.advance(SOON_MS);
      expect(engine().status()).toMatchObject({ live: true });
      expect(engine().status().staleWhy).toBe(undefined);
      expect(await names()).toEqual(["theirs"]);
      world.end();
    },
  );

  test("another token is tried on the journal at once, also where nothing has changed", A_MINUTE, async () => {
    const { world, engine, withBearer, tokenChanged, seen } = await started();
    seen.length = 0;
    tokenChanged();
    await world.clock.advance(SOON_MS);
    expect(seen).toEqual(expect.arrayContaining(["/v1/journal", "/v1/journal/stream"]));
    expect(engine().status().live).toBe(true);
    withBearer("bad");
    tokenChanged();
    await world.clock.advance(SOON_MS);
    expect(engine().status()).toMatchObject({ live: false, staleWhy: expect.stringContaining("login needed") });
    world.end();
  });

  test("a token that may not read the journal any more ends it", A_MINUTE, async () => {
    const { world, engine, withBearer, tokenWith, tokenChanged } = await started();
    const scopes = SCOPES.filter((scope) => scope !== "node.node.read-all");
    withBearer(tokenWith(scopes));
    tokenChanged();
    await world.clock.advance(SOON_MS);
    expect(engine().status()).toMatchObject({ live: false, online: true, staleWhy: expect.stringContaining("403") });
    world.end();
  });

  test(
    "while the gateway does not answer it is not live, from the first call without an answer on",
    A_MINUTE,
    async () => {
      const { world, engine, mount, save } = await started();
      mount.weather.isOffline = true;
      await save("mine");
      await world.clock.advance(SOON_MS);
      const { live, online, staleWhy, staleMs = 0 } = engine().status();
      expect([live, online, staleWhy]).toEqual([false, false, "the gateway does not answer"]);
      // The kernel believes nothing either.
      const { validMs } = await world.run(engine().fileSystem.getattr(CALLER, kernelNodeId(1)));
      expect(validMs).toBeLessThanOrEqual(1_000);
      expect(staleMs).toBeLessThanOrEqual(SOON_MS);
      mount.weather.isOffline = false;
      await world.clock.advance(2 * SOON_MS);
      expect(engine().status()).toMatchObject({ live: true, online: true });
      world.end();
    },
  );
});

test("a file that another client deletes and restores while the account may not read is there once it may", async () => {
  const { world, alpha, beta, calls, run, drain, nodes } = await beginTwo();
  await run(alpha, { do: "save", path: "a", size: 20 });
  await drain(alpha);
  await world.clock.advance(LEASES_MS);
  expect(await world.run(calls(beta).list(""))).toEqual(["a"]);
  const [{ id } = expect.unreachable("it was saved")] = await nodes();
  beta.weather.refusal = 403;
  await world.run(world.outside.deleteNode(id));
  await world.run(world.outside.restoreNode(id));
  await world.clock.advance(10_000);
  beta.weather.refusal = undefined;
  await world.clock.advance(LEASES_MS);
  expect(await world.run(calls(beta).list(""))).toEqual(["a"]);
  world.end();
});
