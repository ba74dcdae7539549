/**
 * The simulation itself: the same seed is the same history, and an engine or a past that is broken on purpose does not
 * get through. How many histories that takes is printed.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import type { JournalEntry } from "../../../src/client/index.ts";
import type { Paged } from "../../../src/client/sdk/paged.ts";
import type { HttpRequest } from "../../../src/contract/http.ts";
import { elapsedTime } from "../../../src/lib/clocks.ts";
import type { Connection } from "../../../src/metadata/database.ts";
import { ignoring } from "./break-rows.ts";
import { CallError } from "./calls.ts";
import { hearLists } from "./heard.ts";
import { playHistory } from "./history.ts";
import { createModel } from "./model.ts";
import type { Sabotage, StartedEngine } from "./mount.ts";
import { createPaired } from "./paired.ts";
import { runProgram } from "./programs.ts";
import { playHistories } from "./run.ts";
import { type Step, stepsOf } from "./steps.ts";
import { lookAround, readFile } from "./tree.ts";
import { PAST } from "./worlds.ts";

const [steps = []] = fc.sample(stepsOf({ mounts: 2, isOutside: true }, { min: 25, max: 25 }), {
  seed: 7,
  numRuns: 1,
});

test("the same steps and seed are the same history, line by line", async () => {
  const first = await playHistory(steps, { seed: 7, mounts: 2 });
  const second = await playHistory(steps, { seed: 7, mounts: 2 });
  expect(second).toEqual(first);
  expect(first.length).toBeGreaterThan(steps.length);
});

test("another seed is another history", async () => {
  const first = await playHistory(steps, { seed: 7, mounts: 2 });
  const other = await playHistory(steps, { seed: 8, mounts: 2 });
  expect(other).not.toEqual(first);
});

test("a process that dies leaves nothing behind: however many do, no signal has more listeners than calls", async () => {
  const death: Step = { do: "crash", mount: 0, program: { do: "read", path: "a" }, ticks: 3, ms: 0 };
  const warnings: string[] = [];
  const warned = ({ name, message }: Error) => void warnings.push(`${name}: ${message}`);
  process.on("warning", warned);
  try {
    await playHistory([{ do: "lag", path: 0, journal: 0, id: 0 }, ...Array<Step>(15).fill(death)], {
      seed: 1,
      mounts: 2,
    });
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", warned);
  }
  expect(warnings).toEqual([]);
});

test("a list that is asked for at the very moment in question does not count as heard since", async () => {
  let now = elapsedTime(0);
  const client = { listFolder: async () => ({ items: [] }) } as unknown as Client;
  const heard = hearLists(
    client,
    () => now,
  )({
    prepare: () => ({ all: () => [{ folder: 1, nodeId: "root" }] }),
  } as unknown as Connection);
  const list = async (at: number) => {
    now = elapsedTime(at);
    await client.listFolder("root");
  };
  await list(5_000);
  expect(heard.notSince(elapsedTime(5_000))).toEqual([1]);
  await list(10_000);
  expect(heard.notSince(elapsedTime(5_000))).toEqual([]);
  expect(heard.notSince(elapsedTime(5_001))).toEqual([1]);
});

/**
 * For some of these moments the deletion arrives after the mount made afresh has seen `d`, and before it asks for its
 * list.
 */
const removedWhile = (ms: number): readonly Step[] => [
  { do: "run", mount: 0, program: { do: "mkdir", path: "d" } },
  { do: "run", mount: 0, program: { do: "mkdir", path: "e" } },
  { do: "drain", mount: 0 },
  { do: "weather", mount: 1, isOffline: false, latencyMs: 100, faultShare: 0 },
  { do: "run", mount: 0, program: { do: "rmdir", path: "d" } },
  { do: "wait", ms },
  { do: "fresh", mount: 1 },
];

test("a folder that goes while a fresh mount looks around is no fault of that mount", async () => {
  let refused = 0;
  for (let ms = 0; ms < 500; ms += 25) {
    const lines = await playHistory(removedWhile(ms), { seed: 1, mounts: 2 });
    const end = lines.findIndex((line) => line.endsWith("end: fair weather"));
    if (lines.slice(0, end).some((line) => line.endsWith("beta GET /v1/nodes: 404"))) refused += 1;
  }
  expect(refused).toBeGreaterThan(0);
});

test("the first look around of a new mount ignores a name that goes meanwhile, and no other failure", async () => {
  const model = createModel();
  for (const path of ["d", "e", "e/d"]) await model.mkdir(path);
  const listed: string[] = [];
  const calls = {
    ...model,
    list(path: string) {
      listed.push(path);
      return model.list(path);
    },
    async stat(path: string) {
      const status = await model.stat(path);
      if (path === "d") await model.rmdir("d");
      return status;
    },
  };
  await lookAround(calls);
  expect(listed).toEqual(["", "d", "e", "e/d"]);
  const failing = { ...model, stat: () => Promise.reject(new CallError("EIO", "e")) };
  await expect(lookAround(failing)).rejects.toThrow("EIO");
});

describe("an interrupted write: what the model allows", () => {
  /** `a` was "a;"; writing "b;" over it was interrupted, in weather that hides the outcome. */
  async function interrupted(isDone: boolean) {
    const mount = createModel();
    const weather = { isClear: true };
    let isDying = false;
    const dying: typeof mount = {
      ...mount,
      async write(...args) {
        if (isDone || !isDying) await mount.write(...args);
        if (isDying) await new Promise(() => {});
      },
    };
    const paired = createPaired(dying, createModel(), () => !weather.isClear);
    await runProgram(paired.calls, { do: "save", path: "a", size: 1 }, "a");
    Object.assign(weather, { isClear: false });
    isDying = true;
    const overwrite = (calls: typeof paired.calls, label: string) =>
      runProgram(calls, { do: "overwrite", path: "a", at: 0, size: 1 }, label);
    void overwrite(paired.calls, "b");
    await new Promise((resolve) => setImmediate(resolve));
    await paired.crashed(mount);
    await paired.compare(false);
    Object.assign(weather, { isClear: true });
    return {
      paired,
      read: async () => (await readFile(paired.calls, "a")).toString(),
      /** Nobody asked for that. */
      becomes: (label: string) => overwrite(mount, label),
    };
  }

  const OUTCOMES = [
    { isDone: true, content: "b;", other: "a" },
    { isDone: false, content: "a;", other: "b" },
  ];

  test.each(OUTCOMES)("its outcome (done: $isDone) is accepted", async ({ isDone }) => {
    const { paired } = await interrupted(isDone);
    await paired.compare(true);
  });

  test.each(OUTCOMES)(
    "its outcome (done: $isDone), once it was read, has to stay",
    async ({ isDone, content, other }) => {
      const { paired, read, becomes } = await interrupted(isDone);
      expect(await read()).toBe(content);
      await becomes(other);
      await expect(paired.compare(true)).rejects.toThrow("a: content is");
    },
  );

  test.each(OUTCOMES)("a third content (done: $isDone) is a fault", async ({ isDone }) => {
    const { paired, becomes } = await interrupted(isDone);
    await becomes("c");
    await expect(paired.compare(true)).rejects.toThrow(/a: content is .* -- or: a: content is/);
  });
});

describe("an engine broken on purpose", () => {
  const SEED = 1;

  /** Several times as many as the slowest of them takes. */
  const HISTORIES_MAX = 150;

  function withoutHeader(name: string, only: (request: HttpRequest) => boolean = () => true): Sabotage {
    return {
      request(request) {
        if (!only(request)) return request;
        const { [name]: _, ...headers } = request.headers;
        return { ...request, headers };
      },
    };
  }

  let keys = 0;

  /** Each sending of a request has a key of its own. */
  function withOtherKey(request: HttpRequest): HttpRequest {
    const { body, query } = request;
    keys += 1;
    const idempotencyKey = `other-${keys}`;
    if (body === undefined) {
      return "idempotencyKey" in query ? { ...request, query: { ...query, idempotencyKey } } : request;
    }
    if (body.kind === "upload") {
      return { ...request, body: { ...body, metadata: { ...(body.metadata as object), idempotencyKey } } };
    }
    const isKeyed = typeof body.value === "object" && body.value !== null && "idempotencyKey" in body.value;
    return isKeyed ? { ...request, body: { ...body, value: { ...body.value, idempotencyKey } } } : request;
  }

  /** The first half of the bytes, as if they were all. */
  function halved(request: HttpRequest): HttpRequest {
    const { body } = request;
    if (body?.kind !== "upload") return request;
    const { content } = body;
    const size = Math.ceil((content.size ?? 0) / 2);
    async function* read(): AsyncGenerator<Uint8Array> {
      let left = size;
      for await (const piece of content.read()) {
        if (left > 0) yield piece.subarray(0, left);
        left -= piece.length;
      }
    }
    const metadata = { ...(body.metadata as object), contentHash: null };
    return { ...request, body: { ...body, metadata, content: { ...content, size, read } } };
  }

  /**
   * That a file is dirty is said a moment after its bytes changed, if nobody dies before, and that somebody
   * has it open for writing not at all: either would do.
   */
  function markedLate({ context }: StartedEngine): void {
    const { inodes, writers } = context.metadata;
    const update = inodes.update.bind(inodes);
    Object.assign(writers, { begin() {} });
    Object.assign(inodes, {
      update(...args: Parameters<typeof update>) {
        const [id, { content = "dirty", hash }] = args;
        if (content !== "dirty" || hash !== null) return update(...args);
        context.runtime.setTimer(1, () => inodes.get(id) !== undefined && update(...args));
        return inodes.get(id);
      },
    });
  }

  const SABOTAGES: readonly { name: string; mounts: 1 | 2; sabotage: Sabotage }[] = [
    {
      name: "new versions go without If-Match",
      mounts: 2,
      sabotage: withoutHeader("if-match", ({ method }) => method === "PUT"),
    },
    { name: "uploads go without If-None-Match", mounts: 2, sabotage: withoutHeader("if-none-match") },
    { name: "a call is answered before its commit", mounts: 1, sabotage: { losesLastCall: true } },
    { name: "a file is marked dirty late", mounts: 1, sabotage: { started: markedLate } },
    { name: "content is sent before it is whole", mounts: 2, sabotage: { request: halved } },
    {
      name: "an open file goes with its name",
      mounts: 2,
      sabotage: ignoring("INSERT ON overtaken"),
    },
  ];

  test.each(SABOTAGES)("$name: noticed", { timeout: 600_000 }, async ({ name, mounts, sabotage }) => {
    const lag = mounts === 1 ? { lag: { path: 3_000, journal: 5_000, id: 0 } } : {};
    const failure = await playHistories({
      mounts,
      ...lag,
      sabotage,
      seed: SEED,
      count: HISTORIES_MAX,
      shrinkMs: 0,
    });
    console.log(`${name}: history ${failure?.runs}: ${failure?.error.message.split("\n")[0]?.slice(0, 150)}`);
    expect(failure).toBeDefined();
  });

  /** Both make the folder, so one of them lists it again; what it deleted is still in that late listing. */
  const LATE_LISTING: readonly Step[] = [
    { do: "lag", path: 8_000, journal: 5_000, id: 0 },
    {
      do: "race",
      programs: [
        { do: "mkdir", path: "d" },
        { do: "mkdir", path: "d" },
      ],
    },
    { do: "run", mount: 0, program: { do: "save", path: "d/a", size: 20 } },
    { do: "run", mount: 1, program: { do: "save", path: "d/b", size: 20 } },
    { do: "wait", ms: 6_000 },
    { do: "run", mount: 0, program: { do: "unlink", path: "d/a" } },
    { do: "run", mount: 1, program: { do: "unlink", path: "d/b" } },
    { do: "wait", ms: 3_500 },
    { do: "run", mount: 0, program: { do: "list", path: "d" } },
    { do: "run", mount: 1, program: { do: "list", path: "d" } },
  ];

  test("tombstones are forgotten: noticed in a history made for it", async () => {
    const sabotage = ignoring("INSERT ON tombstone");
    await playHistory(LATE_LISTING, { mounts: 2, seed: 1 });
    await expect(playHistory(LATE_LISTING, { mounts: 2, seed: 1, sabotage })).rejects.toThrow(
      "is back after it was deleted",
    );
  });

  const forgetAttempts = (rows: Connection) => void rows.exec("DELETE FROM attempt");

  /** A save is under way, its answer lost, when the file is saved again and the mount dies. */
  const SAVED_TWICE: readonly Step[] = [
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
    { do: "drain", mount: 0 },
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 30 } },
    { do: "wait", ms: 1_500 },
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 40 } },
    { do: "crash", mount: 0, program: { do: "read", path: "a" }, ticks: 0, ms: 0 },
  ];

  test.each([
    { name: "requests under way are forgotten in a crash", sabotage: { crash: forgetAttempts } },
    { name: "repeated requests have other keys", sabotage: { request: withOtherKey } },
  ])("$name: noticed in a history made for it", async ({ sabotage }) => {
    const lostAnswer = (): Sabotage => {
      let isLost = false;
      return {
        choose({ method }) {
          if (isLost || method !== "PUT") return "none";
          isLost = true;
          return "silent-after";
        },
      };
    };
    await playHistory(SAVED_TWICE, { mounts: 1, seed: 1, sabotage: lostAnswer() });
    const both = { ...lostAnswer(), ...sabotage };
    await expect(playHistory(SAVED_TWICE, { mounts: 1, seed: 1, sabotage: both })).rejects.toThrow(/conflict/);
  });

  /** Removed by one who has not heard yet that the other has just saved it. */
  const SAVED_UNHEARD: readonly Step[] = [
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
    { do: "wait", ms: 4_000 },
    { do: "run", mount: 1, program: { do: "read", path: "a" } },
    { do: "lag", path: 8_000, journal: 5_000, id: 0 },
    { do: "run", mount: 1, program: { do: "save", path: "a", size: 30 } },
    { do: "wait", ms: 1_500 },
    { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
  ];

  test("deletions go without If-Match: noticed in a history made for it", async () => {
    await playHistory(SAVED_UNHEARD, { mounts: 2, seed: 1 });
    const sabotage = withoutHeader("if-match", ({ method }) => method === "DELETE");
    await expect(playHistory(SAVED_UNHEARD, { mounts: 2, seed: 1, sabotage })).rejects.toThrow(
      /deleted a .*never showed/,
    );
  });

  /** One file of two names, saved by one who is not heard yet; the other removes `names` of it. */
  const linkedAndRemoved = (names: readonly string[]): readonly Step[] => [
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
    { do: "run", mount: 0, program: { do: "link", path: "a", to: "b" } },
    { do: "wait", ms: 4_000 },
    { do: "run", mount: 1, program: { do: "list", path: "" } },
    { do: "lag", path: 8_000, journal: 5_000, id: 0 },
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 30 } },
    { do: "wait", ms: 1_500 },
    ...names.map((path): Step => ({ do: "run", mount: 1, program: { do: "unlink", path } })),
  ];

  test("one name of a linked file may go with a version not shown there, the last one may not: noticed", async () => {
    const sabotage = withoutHeader("if-match", ({ method }) => method === "DELETE");
    const options = { mounts: 2, seed: 1 } as const;
    await playHistory(linkedAndRemoved(["b"]), options);
    await playHistory(linkedAndRemoved(["b"]), { ...options, sabotage });
    await playHistory(linkedAndRemoved(["a", "b"]), options);
    await expect(playHistory(linkedAndRemoved(["a", "b"]), { ...options, sabotage })).rejects.toThrow(/never showed/);
  });
});

describe("the past broken on purpose", () => {
  const HISTORIES_MAX = 60;

  function withMoment(change: (moment: number) => number): Sabotage {
    return {
      request(request: HttpRequest) {
        const { at } = request.query;
        if (at === undefined) return request;
        const moment = new Date(change(Date.parse(String(at)))).toISOString();
        return { ...request, query: { ...request.query, at: moment } };
      },
    };
  }

  /** A moment shows what was deleted before it too. */
  const withDeleted: Sabotage = {
    engine: (_files, _rows, { client }) => ({
      client: {
        ...client,
        async listNodes(query) {
          const page = await client.listNodes(query);
          if (query?.at === undefined) return page;
          const { at: _, ...now } = query;
          const names = new Set(page.items.map(({ name }) => name));
          const gone = (await client.listNodes({ ...now, deleted: true })).items.filter(({ name }) => !names.has(name));
          return { ...page, items: [...page.items, ...gone] };
        },
      },
    }),
  };

  /** To who plans an undo, what others did looks like what was done by the mount. */
  const withoutOthers: Sabotage = {
    connected(gateway, mount) {
      const { journal } = gateway;
      const list = (options: Parameters<typeof journal.list>[0] = {}): Paged<JournalEntry> => {
        const all = journal.list(options);
        if (options.mount !== undefined) return all;
        const entries = all.all().then((whole) => {
          const newest = whole.findLastIndex(({ by }) => by?.mount === mount);
          return whole.map((entry, index) => (index > newest ? entry : { ...entry, by: { account: null, mount } }));
        });
        entries.catch(() => {});
        return Object.assign(Object.create(all) as Paged<JournalEntry>, { all: () => entries });
      };
      return { ...gateway, journal: { ...journal, list } };
    },
  };

  const neverExact: Sabotage = {
    connected(gateway) {
      const { nodes } = gateway;
      const restoreTree: typeof nodes.restoreTree = (id, at, options) =>
        nodes.restoreTree(id, at, { ...options, exact: false });
      return { ...gateway, nodes: { ...nodes, restoreTree } };
    },
  };

  test.each([
    { name: "a moment ignores deletions", sabotage: withDeleted, noticed: /\/at\// },
    {
      name: "a moment lacks the changes of that very time",
      sabotage: withMoment((moment) => moment - 1),
      noticed: /\/at\//,
    },
    {
      name: "an undo changes what another changed since",
      sabotage: withoutOthers,
      noticed: /changed since by .* told of: undefined/,
    },
    { name: "an exact restoration leaves what is newer", sabotage: neverExact, noticed: /is newer and there/ },
  ])("$name: noticed", { timeout: 600_000 }, async ({ name, sabotage, noticed }) => {
    const failure = await playHistories({ ...PAST.options, sabotage, seed: 1, count: HISTORIES_MAX, shrinkMs: 0 });
    console.log(`${name}: history ${failure?.runs}: ${failure?.error.message.split("\n").slice(0, 2).join(" ")}`);
    expect(failure?.error.message).toMatch(noticed);
  });
});
