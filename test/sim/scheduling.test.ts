/**
 * Which request is sent when, and with what. No file waits for ever for others or for its own next change, programs go
 * before uploads, a start does not grow with the queue, and a mount at rest is hardly woken. For a changed file bytes
 * are sent, a reference to a version that the gateway has, or nothing; an upload under way gives way to newer content,
 * and ends when its file is removed.
 */
import { describe, expect, test } from "vitest";
import { ALL_FEATURES } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { watchTokens } from "../../src/daemon/notice-tokens.ts";
import { keepRegistered } from "../../src/daemon/registration.ts";
import { millisecondsOf, minus } from "../../src/lib/clocks.ts";
import { deferred } from "../../src/lib/deferred.ts";
import { SILENT } from "../../src/lib/log.ts";
import { every } from "../../src/lib/runtime.ts";
import type { Connection } from "../../src/metadata/database.ts";
import { PLAIN, without } from "../support/features.ts";
import type { VirtualClock } from "../support/virtual-clock.ts";
import type { Calls } from "./support/calls.ts";
import { DEBOUNCE_MS, type EngineHook, MAXIMUM_AGE_MS } from "./support/mount.ts";
import { ALL_ARRIVED_MS, begin, there } from "./support/one-world.ts";
import { bytesOf, runProgram, sourceOf, textOf } from "./support/programs.ts";
import { isDeletion, isFileCreation } from "./support/requests.ts";
import { hashOf, readFile } from "./support/tree.ts";
import { watchedRows } from "./support/watched-rows.ts";

/** As large as files of the priority class "bulk". */
const BULK_BYTES = 1024 * 1024;

/** Each look at the queue asks at its end when the next row is due. */
const NEXT_DUE = /^SELECT due FROM node WHERE bulk/;

/** Arrivals are tried. */
const ARRIVALS = /^SELECT node FROM arrival WHERE node_id >/;

describe("fairness", () => {
  const TIMEOUT = { timeout: 120_000 };

  /** Less than the debounce; see mount.ts. */
  const AGAIN_MS = 250;

  /** More than requests may be in flight. */
  const BIG_FILES = 20;

  /** The debounce, and a request. */
  const SOON_MS = 2_000;

  const isUploadOf = (name: string, request: HttpRequest) => isFileCreation(request) && request.path.includes(name);

  test("a file that is saved again within each debounce is sent at its maximum age", TIMEOUT, async () => {
    const { world, save, asked, content } = await begin();
    const isArrived = async () => (await there(world)).has("a");
    const saves = Math.ceil((3 * MAXIMUM_AGE_MS) / AGAIN_MS);
    for (let saved = 1; saved <= saves; saved += 1) {
      await save("a", `save ${saved}`);
      await world.clock.advance(AGAIN_MS);
      if (saved * AGAIN_MS > MAXIMUM_AGE_MS + DEBOUNCE_MS) expect(await isArrived()).toBe(true);
    }
    // Once each maximum age, not once each save.
    expect(asked.length).toBeGreaterThanOrEqual(2);
    expect(asked.length).toBeLessThan(saves / 2);
    expect(await content("a")).toContain(`save ${saves}`);
  });

  test("while bulk files take all their slots, a small one goes at once and no ls waits", TIMEOUT, async () => {
    const { world, calls, rules, save, asked, names } = await begin();
    // Of the big ones no answer comes until the client gives up.
    rules.choose = (request) => (isUploadOf("big", request) ? "silent-before" : "none");
    const big = Array.from({ length: BIG_FILES }, (_, index) => `big-${index}`);
    for (const path of big) await world.run(runProgram(calls(), { do: "save", path, size: BULK_BYTES }, path));
    await world.clock.advance(SOON_MS);
    for (let round = 0; round < 10; round += 1) {
      await save(`small-${round}`);
      await world.clock.advance(SOON_MS);
      expect(asked.filter((line) => line.includes(`small-${round}`))).toHaveLength(1);
      const begun = world.clock.elapsed();
      expect(await names()).toHaveLength(BIG_FILES + round + 1);
      await world.run(calls().stat("big-0"));
      expect(world.clock.elapsed()).toBe(begun);
    }
    // Refused or not, the big ones had their tries meanwhile, and arrive when they may.
    rules.choose = () => "none";
    await world.clock.advance(300_000);
    expect([...(await there(world)).keys()]).toEqual(expect.arrayContaining(big));
  });

  test(
    "a file that becomes due while the gateway has asked for a pause goes when that is over, whatever is under way",
    TIMEOUT,
    async () => {
      const { world, calls, engine, rules, save, asked, until } = await begin();
      let isThrottled = false;
      rules.choose = (request) => {
        if (isUploadOf("big", request)) return "silent-before";
        if (isThrottled || !isUploadOf("other", request)) return "none";
        isThrottled = true;
        return "throttled";
      };
      await world.run(runProgram(calls(), { do: "save", path: "big", size: BULK_BYTES }, "big"));
      await world.clock.advance(SOON_MS);
      await save("other");
      await until(() => isThrottled);
      await save("small");
      // It is due by then. One second is the least that Retry-After says, three the most.
      await world.clock.advance(DEBOUNCE_MS + 200);
      const ofSmall = () => asked.filter((line) => line.includes("small")).length;
      expect([ofSmall(), engine().status().paused]).toEqual([0, expect.stringContaining("takes no more")]);
      await world.clock.advance(3_000);
      expect(ofSmall()).toBe(1);
    },
  );

  test(
    "at a plain gateway, files so new that they cannot be read yet delay nothing that is to be sent",
    TIMEOUT,
    async () => {
      const { world, calls, engine, save, asked } = await begin({}, { features: PLAIN });
      world.setLag({ path: 0, journal: 0, id: 9_000 });
      // More than it takes for an outage, were each of them one.
      const fresh = Array.from({ length: 9 }, (_, index) => `fresh-${index}`);
      const bytes = Buffer.alloc(5_000, "fresh");
      for (const name of fresh) await world.run(world.outside.upload(world.workspace.root, name, sourceOf(bytes)));
      await world.run(calls().list(""));
      // Listed again, now with them.
      await world.clock.advance(3_000);
      const reads = fresh.map((name) => readFile(calls(), name));
      await save("mine");
      for (let waited = 0; waited < SOON_MS; waited += 100) {
        await world.clock.advance(100);
        expect(engine().condition().paused).toBeUndefined();
      }
      expect(asked.filter((line) => line.includes("mine"))).toHaveLength(1);
      for (const read of await world.run(Promise.all(reads))) expect(bytes.equals(read)).toBe(true);
    },
  );

  test.each([0, 1, 2, 3, 5, 8])(
    "a bulk file whose hash is ready %i microtasks after a look at the queue is sent at once",
    TIMEOUT,
    async (turns) => {
      let release: (() => void) | undefined;
      let isSmallSent = false;
      const it = await begin(
        {},
        {
          engine(_, rows, { runtime: { files } }) {
            const { hash } = files;
            Object.assign(files, {
              async hash(path: string, signal?: AbortSignal) {
                await new Promise<void>((resolve) => {
                  release = resolve;
                });
                return hash(path, signal);
              },
            });
            const database = watchedRows(rows, (sql) => {
              const go = release;
              if (go === undefined || !isSmallSent || !NEXT_DUE.test(sql)) return;
              let over = Promise.resolve();
              for (let turn = 0; turn < turns; turn += 1) over = over.then(() => {});
              if (turns === 0) go();
              else void over.then(go);
            });
            return { database };
          },
        },
      );
      const { world, calls, save, asked } = it;
      it.rules.choose = (request) => {
        isSmallSent ||= isUploadOf("small", request);
        return "none";
      };
      await world.run(runProgram(calls(), { do: "save", path: "big", size: 3 * BULK_BYTES }, "big"));
      await world.clock.advance(SOON_MS);
      expect(release).toBeDefined();
      await save("small");
      await world.clock.advance(SOON_MS);
      expect(asked.filter((line) => line.includes("big"))).toHaveLength(1);
    },
  );

  test.each([
    ["a program hears first", async (calls: Calls) => void (await calls.list("there"))],
    ["the journal is heard first, and a node that was to be read fails", undefined],
  ] as const)(
    "the gateway answers again, %s: a request that had failed often before is tried at once",
    TIMEOUT,
    async (_, ask) => {
      const { world, mount, calls, rules, save, engine, queue } = await begin();
      await world.run(world.outside.createFolder(world.workspace.root, "there"));
      await world.clock.advance(10_000);
      await world.run(calls().stat("there"));
      const { id } = (await world.run(world.outside.listFolder(world.workspace.root))).items[0] ?? expect.unreachable();
      rules.choose = (request) => (isUploadOf("a", request) ? "failed" : "none");
      await save("a");
      while (((await queue())[0]?.nextTryMs ?? 0) < 25_000) await world.clock.advance(100);
      const isRead = (request: HttpRequest) => request.method === "GET" && request.path.endsWith(id);
      rules.choose = (request) => (ask === undefined && isRead(request) ? "failed" : "none");
      mount.weather.isOffline = true;
      await world.clock.advance(10_000);
      expect(engine().status().online).toBe(false);
      if (ask === undefined) await world.run(world.outside.patchNode(id, { attributes: { mode: 0o700 } }));
      mount.weather.isOffline = false;
      if (ask !== undefined) await world.run(ask(calls()));
      await world.clock.advance(8_000);
      expect((await there(world)).has("a")).toBe(true);
    },
  );
});

describe("the foreground throttle, under endless requests of programs", () => {
  const TIMEOUT = { timeout: 60_000 };

  const FILES = 120;

  /** A rest, and what an upload takes. */
  const REST_MS = 2_000;

  const EVERY_MS = 5;

  async function busy(more: Parameters<typeof begin>[1] = {}) {
    const one = await begin({}, more);
    const { world, mount } = one;
    let isOver = false;
    mount.weather.latencyMs = 20;
    const ask = () => {
      if (isOver) return;
      mount.process?.engine.fileSystem.noteProgramTime(EVERY_MS, false);
      world.clock.setTimer(EVERY_MS, ask);
    };
    ask();
    // It is noticed at the first look.
    await one.save("first");
    await world.clock.advance(DEBOUNCE_MS + REST_MS);
    expect(await one.world.run(there(world)).then((tree) => tree.has("first"))).toBe(true);
    return {
      ...one,
      pause() {
        isOver = true;
      },
      arrived: async () => (await there(world)).size,
      async saveMany() {
        for (let index = 0; index < FILES; index += 1) await one.save(`file-${index}`);
      },
    };
  }

  test("many files go in short turns, a few rows each, and all arrive", TIMEOUT, async () => {
    const { world, saveMany, arrived } = await busy({ settings: { maximumAgeMs: 60_000 } });
    await saveMany();
    await world.clock.advance(DEBOUNCE_MS + 1_000);
    expect(await arrived()).toBeLessThan(FILES / 2);
    const before = await arrived();
    await world.clock.advance(4_000);
    expect(await arrived()).toBeGreaterThan(before + 30);
    expect(await arrived()).toBeLessThan(FILES);
    await world.clock.advance(20_000);
    expect(await arrived()).toBe(FILES + 1);
  });

  test("while the write-back loop only waits for its next turn, arrivals are not tried", TIMEOUT, async () => {
    const count = { looks: 0, tries: 0 };
    const engine: EngineHook = (_, rows) => ({
      database: watchedRows(rows, (sql) => {
        if (NEXT_DUE.test(sql)) count.looks += 1;
        if (ARRIVALS.test(sql)) count.tries += 1;
      }),
    });
    const it = await busy({ engine, settings: { maximumAgeMs: 60_000 } });
    const { world, saveMany, arrived, asked } = it;
    // A node waits for its name: what is made under it here is not answered.
    it.once("silent-before", ({ method, path }) => method === "POST" && path.endsWith("/taken"));
    await it.save("taken");
    await it.until(() => it.engine().status().uploading > 0);
    await world.run(world.outside.upload(world.workspace.root, "taken", sourceOf(bytesOf("theirs", 40))));
    await it.until(() => it.rows().arrivals() > 0);
    count.tries = 0;
    await saveMany();
    await world.clock.advance(DEBOUNCE_MS);
    /** Within a rest: the last turn is over, its answers are here, and the next one has not begun. */
    const resting = { looks: 0, tries: 0 };
    let last = { looks: 0, tries: 0 };
    for (let still = 0, window = 0; window < 50; window += 1) {
      const before = { ...count, asked: asked.length };
      await world.clock.advance(100);
      still = asked.length === before.asked ? still + 1 : 0;
      if (still > 3) {
        resting.looks += last.looks;
        resting.tries += last.tries;
      }
      last = { looks: count.looks - before.looks, tries: count.tries - before.tries };
    }
    expect(await arrived()).toBeLessThan(FILES);
    expect(resting.looks).toBeGreaterThan(20);
    expect(resting.tries).toBe(0);
    // What ends wakes the loop for all there is.
    expect(count.tries).toBeGreaterThan(0);
  });

  test("a file saved now and then arrives soon after each save", TIMEOUT, async () => {
    const { world, save } = await busy();
    for (let round = 0; round < 20; round += 1) {
      await save(`round-${round}`);
      await world.clock.advance(DEBOUNCE_MS + REST_MS);
      expect((await there(world)).has(`round-${round}`)).toBe(true);
    }
  });

  test("when the programs pause, all that waits goes at full speed", TIMEOUT, async () => {
    const { world, saveMany, arrived, pause } = await busy({ settings: { maximumAgeMs: 60_000 } });
    await saveMany();
    await world.clock.advance(DEBOUNCE_MS);
    pause();
    await world.clock.advance(2_000);
    expect(await arrived()).toBe(FILES + 1);
  });

  test("a drain has full speed while the programs go on", TIMEOUT, async () => {
    const { world, saveMany, drain } = await busy({ settings: { maximumAgeMs: 60_000 } });
    await saveMany();
    const begun = world.clock.elapsed();
    await drain();
    expect(minus(world.clock.elapsed(), begun)).toBeLessThan(3_000);
  });

  test("with durability remote a close waits for no turn", TIMEOUT, async () => {
    const { world, save } = await busy({ settings: { durability: "remote" } });
    const begun = world.clock.elapsed();
    for (let round = 0; round < 10; round += 1) await save(`round-${round}`);
    expect(minus(world.clock.elapsed(), begun)).toBeLessThan(10 * 350);
  });
});

describe("a request that waits for a slot", () => {
  type It = Awaited<ReturnType<typeof begin>>;

  /**
   * One request at a time may be out: that of the root's time is, for seconds; those of `a` and `b` are rows, and wait.
   */
  async function waiting(): Promise<It> {
    const it = await begin({}, { settings: { concurrency: 1 } });
    await it.world.clock.advance(5_000);
    it.mount.weather.latencyMs = 30_000;
    await it.save("a");
    await it.save("b");
    const isRequested = (wanted: string) =>
      it
        .rows()
        .openRequests()
        .some(({ name }) => name === wanted);
    await it.until(() => ["a", "b"].every(isRequested));
    it.mount.weather.latencyMs = 0;
    expect(it.asked.filter((line) => line.startsWith("POST"))).toEqual([]);
    return it;
  }

  /** What happens, and by name what was saved last under it. */
  const CASES: Readonly<Record<string, readonly [(it: It) => Promise<unknown>, Readonly<Record<string, string>>]>> = {
    "its file is left alone": [async () => {}, { a: "a", b: "b" }],
    "its file is saved anew": [(it) => it.save("b", "new"), { a: "a", b: "new" }],
    "its file is removed": [(it) => it.unlink("b"), { a: "a" }],
    "its file is renamed": [(it) => it.rename("b", "c"), { a: "a", c: "b" }],
    "its file takes the name of the one before": [(it) => it.rename("b", "a"), { a: "b" }],
    "the daemon dies": [(it) => it.again("crash"), { a: "a", b: "b" }],
    "the mount ends and comes back": [(it) => it.again("remount"), { a: "a", b: "b" }],
    "the gateway goes away for a minute": [
      async (it) => {
        it.mount.weather.isOffline = true;
        await it.world.clock.advance(60_000);
        it.mount.weather.isOffline = false;
      },
      { a: "a", b: "b" },
    ],
  };

  test.each(Object.entries(CASES))("%s", async (_, [happens, saved]) => {
    const it = await waiting();
    await happens(it);
    await it.ends(Object.keys(saved));
    for (const [name, label] of Object.entries(saved)) {
      expect(await it.content(name)).toBe(textOf(label));
    }
    const made = it.asked.filter((line) => /^POST .* 201$/.test(line));
    expect(made).toEqual([...new Set(made)]);
  });

  test("while the gateway asks for a pause, the next request is not sent", async () => {
    const it = await waiting();
    let asked = 0;
    it.rules.choose = ({ method }) => {
      if (method !== "POST") return undefined;
      asked += 1;
      return "throttled";
    };
    await it.save("c");
    await it.until(() => asked > 0, 120_000);
    expect(asked).toBe(1);
    it.rules.choose = () => undefined;
    await it.ends(["a", "b", "c"]);
  });
});

describe("a start with a long queue", () => {
  /** Of a mount with so many files to be sent. */
  async function workOfStart(files: number): Promise<number> {
    let work = 0;
    let isCounted = false;
    const inUse = deferred<void>();
    const engine = (_files: unknown, database: Connection) =>
      isCounted
        ? {
            inUse: inUse.promise,
            database: watchedRows(database, (_, rows) => {
              work += 1 + rows;
            }),
          }
        : {};
    const it = await begin({}, { engine });
    await it.names();
    it.mount.weather.isOffline = true;
    for (let index = 0; index < files; index++) await it.save(`f${index}`);
    isCounted = true;
    await it.again("remount");
    const { engine: started } = it.mount.process ?? {};
    expect(started?.condition()).toMatchObject({ online: false });
    const before = work;
    it.mount.weather.isOffline = false;
    inUse.resolve();
    await it.drain();
    it.world.check();
    return before;
  }

  test("what is done before the mount is used does not grow with the queue", async () => {
    const few = await workOfStart(5);
    expect(few).toBeGreaterThan(10);
    expect(await workOfStart(60)).toBe(few);
  });
});

describe("at rest", () => {
  const REST_MS = 60_000;

  /** Of the gateway's stream. */
  const HEARTBEAT_MS = 10_000;

  /** When timers fire, from now on. */
  function firings(clock: VirtualClock): Set<number> {
    const times = new Set<number>();
    const { setTimer } = clock;
    clock.setTimer = (milliseconds, callback) =>
      setTimer(milliseconds, () => {
        times.add(millisecondsOf(clock.elapsed()));
        callback();
      });
    return times;
  }

  test("a mount at rest is woken no more than once a second, and by the stream", async () => {
    const it = await begin();
    const { clock } = it.world;
    const runtime = it.mount.process?.runtime ?? expect.unreachable("the mount is down");
    for (const name of ["a", "b", "c"]) await it.save(name);
    await it.drain();
    const ends = [];
    // Each begins some time after the other.
    ends.push(every(runtime, 1_000, () => {}).cancel);
    await clock.advance(337);
    ends.push(keepRegistered({ isThere: () => true, makeAgain: async () => {} }, runtime, SILENT));
    await clock.advance(337);
    ends.push(watchTokens({ token: async () => "token" }, runtime));
    await clock.advance(ALL_ARRIVED_MS);
    expect(it.engine().status()).toMatchObject({ live: true, conflicts: 0 });
    const fired = firings(clock);
    // What was begun before is over by then.
    await clock.advance(2 * HEARTBEAT_MS);
    fired.clear();
    await clock.advance(REST_MS);
    expect(fired.size).toBeGreaterThan(0);
    expect(fired.size).toBeLessThanOrEqual(REST_MS / 1_000 + REST_MS / HEARTBEAT_MS);
    for (const end of ends) await end();
  });
});

describe("saved again while it is being sent", () => {
  /** So many uploads are not answered, for longer than a save is waited for. */
  const SILENT_UPLOADS = 3;

  test.each([
    ["stays open", false],
    ["is closed after the last save", true],
  ] as const)(
    "the file %s: an upload gives way to newer content, the third one goes on to its end",
    async (_, isClosed) => {
      const it = await begin();
      const { world, calls } = it;
      await it.save("a");
      await it.drain();
      const uploads: AbortSignal[] = [];
      it.rules.choose = ({ body, signal }) => {
        if (body?.kind !== "upload" || signal === undefined || uploads.length >= SILENT_UPLOADS) return undefined;
        uploads.push(signal);
        return "silent-before";
      };
      const handle = await world.run(calls().open("a", { write: true }));
      const write = (text: string) => world.run(calls().write(handle, 0, Buffer.from(text)));
      await write("one");
      await it.until(() => uploads.length === 1);
      // Its writing goes on: the pause is longer now.
      await write("two");
      await it.until(() => uploads.length === 2);
      expect(uploads.map(({ aborted }) => aborted)).toEqual([true, false]);
      await world.run(calls().fsync(handle));
      await write("six");
      await world.run(calls().fsync(handle));
      await it.until(() => uploads.length === 3);
      expect(uploads.map(({ aborted }) => aborted)).toEqual([true, true, false]);
      await write("ten");
      if (isClosed) await world.run(calls().close(handle));
      else await world.run(calls().fsync(handle));
      await world.clock.advance(5_000);
      expect(uploads[2]?.aborted).toBe(false);
      await it.drain();
      expect((await there(world)).get("a")?.content).toBe(hashOf(Buffer.from(await it.content("a"), "latin1")));
      expect(await it.content("a")).toMatch(/^ten/);
      if (!isClosed) await world.run(calls().close(handle));
    },
  );

  test("a snapshot taken while the file was open gives way to the content at its last close", async () => {
    const it = await begin();
    const { world, calls } = it;
    await it.save("a");
    await it.drain();
    let upload: AbortSignal | undefined;
    it.once("silent-before", ({ body, signal }) => {
      if (body?.kind === "upload") upload = signal;
      return upload !== undefined;
    });
    const handle = await world.run(calls().open("a", { write: true }));
    await world.run(calls().write(handle, 0, Buffer.from("one")));
    await it.until(() => upload !== undefined);
    await world.run(calls().write(handle, 0, Buffer.from("two")));
    expect(upload?.aborted).toBe(false);
    await world.run(calls().close(handle));
    expect(upload?.aborted).toBe(true);
    await world.clock.advance(3_000);
    expect((await there(world)).get("a")?.content).toBe(hashOf(Buffer.from(await it.content("a"), "latin1")));
  });
});

describe("removed while it is being sent", () => {
  /** On the disk, of a small file. */
  const BLOCK = 4096;

  /** What becomes of the request. */
  const ENDS = [
    { how: "it arrives", fault: undefined },
    { how: "it fails", fault: "failed" },
    { how: "its answer is lost", fault: "silent-after" },
    { how: "it is lost", fault: "lost-before" },
  ] as const;

  test.each(ENDS)(
    "removed, and forgotten by the kernel, while it is sent, and $how: nothing of it stays",
    async (given) => {
      const it = await begin();
      const { world, mount, calls } = it;
      await it.save("kept");
      await it.drain();
      mount.weather.latencyMs = 4_000;
      if (given.fault !== undefined) it.once(given.fault, ({ method }) => method === "POST");
      await it.save("a");
      await it.until(() => mount.process?.engine.status().uploading === 1);
      const held = () => it.engine().status().cacheBytes;
      expect(held()).toBe(2 * BLOCK);
      await it.unlink("a");
      calls().dropCaches();
      await world.clock.advance(1_000);
      mount.weather.latencyMs = 0;
      await world.clock.advance(60_000);
      await it.drain();
      await world.clock.advance(1_000);
      expect(held()).toBe(BLOCK);
      world.check();
      expect([...(await it.names())]).toEqual(["kept"]);
    },
  );

  /** What becomes of the request that is ended. */
  const ARRIVALS = [
    { how: "it is lost on the way", fault: "silent-before" },
    { how: "it arrives later", fault: "late" },
    { how: "it was carried out", fault: "silent-after" },
  ] as const;

  const GONE = [
    { what: "removed", left: ["d", "other"] },
    { what: "renamed over", left: ["d", "d/a"] },
    { what: "in a folder that is removed", left: ["other"] },
  ] as const;

  test.each(GONE.flatMap((gone) => ARRIVALS.map((arrival) => ({ ...gone, ...arrival }))))(
    "$what while it is sent, $how: the upload ends at once, a drain does not wait for it, and nothing of it stays",
    async ({ what, left, fault }) => {
      for (const isVersion of [false, true]) {
        const it = await begin();
        const { world, calls } = it;
        await it.save("other");
        await world.run(calls().mkdir("d"));
        if (isVersion) await it.save("d/a", "older");
        await it.drain();
        let upload: AbortSignal | undefined;
        it.once(fault, ({ body, signal }) => {
          if (body?.kind === "upload") upload = signal;
          return upload !== undefined;
        });
        await it.save("d/a");
        await it.until(() => upload !== undefined);
        expect(upload?.aborted).toBe(false);
        if (what === "renamed over") await it.rename("other", "d/a");
        else await it.unlink("d/a");
        if (what === "in a folder that is removed") await world.run(calls().rmdir("d"));
        expect(upload?.aborted).toBe(true);
        const begun = world.clock.elapsed();
        await it.drain();
        expect(minus(world.clock.elapsed(), begun)).toBeLessThan(5_000);
        await it.ends(left);
      }
    },
  );
});

describe("saved with the bytes the gateway has", () => {
  const WAYS = (["save", "replace", "recreate"] as const).flatMap((how) =>
    [
      { what: "a whole gateway", features: ALL_FEATURES },
      { what: "a gateway without hashes", features: without("hashes") },
      { what: "a plain gateway", features: PLAIN },
    ].flatMap((where) => [0, 40].map((size) => ({ how, size, ...where }))),
  );

  test.each(WAYS)(
    "$how with the same $size bytes, at $what: clean, without a new version",
    async ({ how, size, features }) => {
      const it = await begin({}, { features });
      const write = (by: "save" | typeof how) =>
        it.world.run(runProgram(it.calls(), { do: by, path: "a", size }, "alike"));
      await write("save");
      await it.drain();
      const { outside, workspace } = it.world;
      const node = async () => (await it.world.run(outside.listFolder(workspace.root))).items[0];
      const before = await node();
      await write(how);
      await it.drain();
      const inode = it.rows().inode("a");
      expect(inode).toMatchObject({ content: "clean", originNode: before?.id, originVersion: before?.head });
      expect((await node())?.head).toBe(before?.head);
      await it.save("a", "other");
      await it.ends(["a"]);
      expect(await it.content("a")).toBe(textOf("other"));
    },
  );

  test.each([0, 40])("%i bytes created elsewhere at the same moment: one file, clean", async (size) => {
    const it = await begin();
    await it.drain();
    const { outside, workspace } = it.world;
    it.world.setLag({ path: 3_000, journal: 3_000, id: 0 });
    const theirs = await it.world.run(outside.upload(workspace.root, "a", sourceOf(bytesOf("alike", size))));
    await it.world.run(runProgram(it.calls(), { do: "save", path: "a", size }, "alike"));
    await it.world.clock.advance(10_000);
    await it.drain();
    const inode = it.rows().inode("a");
    expect(inode).toMatchObject({ content: "clean", originNode: theirs.id, originVersion: theirs.head });
    await it.ends(["a"]);
  });
});

describe("sent by reference to another version", () => {
  test("a node stays until the new name of its file has the content, also while it is open", async () => {
    const it = await begin();
    await it.save("a");
    await it.save("b");
    await it.drain();
    const held = await it.world.run(it.calls().open("b", { write: true }));
    it.asked.length = 0;
    await it.rename("b", "a");
    await it.world.clock.advance(30_000);
    // What b was is there as a version of b's node, and nothing was written since.
    expect(it.asked).toEqual(["POST /v1/nodes/ID/versions 200", "DELETE /v1/nodes/ID 200"]);
    expect([...(await there(it.world)).keys()]).toEqual(["a"]);
    it.asked.length = 0;
    await it.world.run(it.calls().close(held));
    await it.ends(["a"]);
    expect(it.asked).toEqual([]);
    expect(await it.content("a")).toBe(textOf("b"));
  });

  test("a file does not become a version of a node that is being deleted", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    // The node goes back to a: b is a new file that grew from its version.
    await it.rename("a", "b");
    const held = await it.world.run(it.calls().open("b", { write: true }));
    await it.world.run(it.calls().write(held, 0, bytesOf("a", 40)));
    await it.save("a", "new");
    await it.unlink("a");
    const deletion = it.once("silent-after", isDeletion);
    await it.until(deletion.isSent);
    // With the very bytes of the version it grew from.
    await it.world.run(it.calls().close(held));
    await it.ends(["b"]);
    expect(it.asked.filter((line) => line.startsWith("POST"))).toEqual([
      "POST /v1/files/a 201",
      "POST /v1/files/b 201",
    ]);
  });
});

describe("moved over another file, at plain gateways", () => {
  test.each([
    { what: "with hashes", features: PLAIN },
    { what: "without hashes", features: { ...PLAIN, hashes: false } },
  ])("$what: an empty file and a symlink are moved over files", async ({ features }) => {
    const it = await begin({}, { features });
    const { run } = it.world;
    for (const name of ["a", "b"]) await it.save(name);
    await run(it.calls().symlink("target", "link"));
    await run(it.calls().close(await run(it.calls().open("empty", { write: true, create: true }))));
    await it.drain();
    // They are versions the gateway has by now.
    await it.again("remount");
    await it.rename("link", "a");
    await it.rename("empty", "b");
    await it.ends(["a", "b"]);
    const tree = await there(it.world);
    expect(["a", "b"].map((name) => tree.get(name)?.kind)).toEqual(["symlink", "file"]);
    expect(await run(it.calls().readlink("a"))).toBe("target");
    expect(await it.content("b")).toBe("");
  });

  test("a file is renamed over another while offline, and its node deleted elsewhere before that is sent", {
    timeout: 120_000,
  }, async () => {
    const it = await begin({}, { features: PLAIN, settings: { cacheLimit: 0 } });
    const { world, mount, calls } = it;
    const { outside, workspace } = world;
    await it.save("a", "content of a");
    await it.save("b", "content of b");
    await it.drain();
    const content = await it.content("a");
    const reader = await world.run(calls().open("a", {}));
    await world.run(calls().read(reader, 0, 100));
    mount.weather.isOffline = true;
    await world.clock.advance(10_000);
    await it.rename("a", "b");
    await world.run(calls().close(reader));
    // The cache may hold nothing.
    await world.clock.advance(10_000);
    const { items } = await world.run(outside.listFolder(workspace.root, { name: "a" }));
    const [node] = items;
    if (node === undefined) throw new Error("it is gone");
    await world.run(outside.deleteNode(node.id, { ifRevision: node.revision }));
    mount.weather.isOffline = false;
    await it.ends(["b"]);
    expect((await there(world)).get("b")?.content).toBe(hashOf(Buffer.from(content)));
    // It goes like everything else once it is the node's own.
    expect(await it.content("b")).toBe(content);
    await world.clock.advance(10_000);
    expect(it.engine().status().cacheBytes).toBe(0);
  });
});
