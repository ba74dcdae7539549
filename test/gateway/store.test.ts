/** Changes of one turn share a commit: all of them are answered after it, or none of them happened. */
import { beforeEach, expect, test } from "vitest";
import { SCOPES } from "../../src/contract/scopes.ts";
import type { GatewayOptions } from "../../src/gateway/context.ts";
import { createGateway, type Gateway } from "../../src/gateway/core.ts";
import { type GatewayAnswer, jsonBody } from "../../src/gateway/exchange.ts";
import { createStore, type Store } from "../../src/gateway/store.ts";
import { SILENT } from "../../src/lib/log.ts";
import { type Connection, openSqlite } from "../../src/lib/sqlite/index.ts";
import { part, uploadBody } from "../support/gateway-core.ts";
import { createMemoryBlobs, type MemoryBlobs } from "../support/memory-blobs.ts";
import { createVirtualClock, type VirtualClock } from "../support/virtual-clock.ts";

let turns: (() => void)[];
let database: Connection;

const turn = (callback: () => void) => void turns.push(callback);
const endTurn = () => {
  for (const callback of turns.splice(0)) callback();
};
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

beforeEach(() => {
  turns = [];
  database = openSqlite(":memory:");
});

function makeStore(): { store: Store; add(n: number): void; all(): number[] } {
  const store = createStore(database, turn);
  database.exec("CREATE TABLE number (n INTEGER CHECK (n < 100))");
  const insert = database.prepare("INSERT INTO number VALUES (?)");
  return {
    store,
    add: (n) => void insert.run(n),
    all: () => database.prepare<[], number>("SELECT n FROM number ORDER BY n").pluck().all(),
  };
}

test("one that fails leaves the others of its turn alone", async () => {
  const { store, add, all } = makeStore();
  store.transaction(() => add(1));
  expect(() =>
    store.transaction(() => {
      add(2);
      add(200);
    }),
  ).toThrow(/CHECK/);
  store.transaction(() => add(3));
  const committed = store.committed();
  endTurn();
  await committed;
  expect(all()).toEqual([1, 3]);
  expect([database.inTransaction, store.committed()]).toEqual([false, undefined]);
});

test("a failed commit undoes the whole turn, tells everybody, and the next turn goes on", async () => {
  const { store, add, all } = makeStore();
  let fails = true;
  let undone = 0;
  store.beforeCommit(() => {
    if (fails) throw new Error("disk full");
  });
  store.afterRollback(() => {
    undone += 1;
  });
  store.transaction(() => add(1));
  const first = store.committed();
  store.transaction(() => add(2));
  const second = store.committed();
  endTurn();
  await expect(first).rejects.toThrow("disk full");
  await expect(second).rejects.toThrow("disk full");
  expect([all(), database.inTransaction, undone]).toEqual([[], false, 1]);
  fails = false;
  store.transaction(() => add(3));
  store.flush();
  expect(all()).toEqual([3]);
  // The end of that turn comes when there is nothing left to do.
  endTurn();
  expect(all()).toEqual([3]);
});

test("a turn that SQLite itself undid is told of to all of it, and only to it", async () => {
  const { store, add, all } = makeStore();
  store.transaction(() => add(1));
  const first = store.committed();
  expect(() =>
    store.transaction(() => {
      add(2);
      // As SQLite does when the disk is full.
      database.exec("ROLLBACK");
      throw new Error("disk full");
    }),
  ).toThrow("disk full");
  await expect(first).rejects.toThrow("disk full");
  store.transaction(() => add(3));
  const second = store.committed();
  endTurn();
  await second;
  expect(all()).toEqual([3]);
});

test("what fails after a commit, or after an undoing, is logged and stops nobody else", async () => {
  const failed: object[] = [];
  const log = { ...SILENT, error: (fields: object) => void failed.push(fields) };
  const store = createStore(database, turn, log);
  database.exec("CREATE TABLE number (n INTEGER)");
  const told: string[] = [];
  let fails = false;
  store.beforeCommit(() => {
    if (fails) throw new Error("disk full");
  });
  for (const hook of [store.afterCommit, store.afterRollback]) {
    hook(() => {
      throw new Error("a bad hook");
    });
  }
  store.afterCommit(() => void told.push("committed"));
  store.afterRollback(() => void told.push("undone"));
  for (const expected of ["committed", "undone"]) {
    store.transaction(() => database.exec("INSERT INTO number VALUES (1)"));
    const answer = store.committed()?.then(
      () => "committed",
      () => "undone",
    );
    endTurn();
    expect([await answer, told.pop(), failed.length]).toEqual([expected, expected, fails ? 2 : 1]);
    fails = true;
  }
});

test("what is queued happens at the end of the turn, each once, and is told after the commit", async () => {
  const { store, add, all } = makeStore();
  const told: unknown[] = [];
  const tell = (work: Promise<unknown>) =>
    work.then((value) => told.push(value)).catch((error) => told.push(String(error)));
  const refused = store.queued(() => {
    throw new Error("refused");
  });
  const work = [store.queued(() => add(1)), refused, store.queued(() => add(2))].map(tell);
  await settle();
  expect([all(), told]).toEqual([[], []]);
  endTurn();
  await Promise.all(work);
  expect([all(), told.sort()]).toEqual([
    [1, 2],
    ["Error: refused", undefined, undefined],
  ]);
});

test("one queued that fails after a change is undone, and the others of its turn happen once all the same", async () => {
  const { store, add, all } = makeStore();
  let calls = 0;
  const failing = (first: number) =>
    store.queued(() => {
      calls += 1;
      add(first);
      add(200);
    });
  store.transaction(() => add(1));
  const work = [store.queued(() => add(2)), failing(3), store.queued(() => add(4)), failing(5)];
  store.transaction(() => add(6));
  endTurn();
  const settled = await Promise.allSettled(work);
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
  expect(all()).toEqual([1, 2, 4, 6]);
  // The second never came to it the first time.
  expect([calls, database.inTransaction]).toEqual([3, false]);
});

test("what is queued in a turn that SQLite undid is told of, and never happens", async () => {
  const { store, add, all } = makeStore();
  const undo = () => {
    database.exec("ROLLBACK");
    throw new Error("disk full");
  };
  // Before the end of the turn, and at it.
  const early = store.queued(() => add(1));
  expect(() => store.transaction(undo)).toThrow("disk full");
  const late = [store.queued(() => add(2)), store.queued(undo), store.queued(() => add(3))];
  endTurn();
  const settled = await Promise.allSettled([early, ...late]);
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected", "rejected"]);
  const next = store.queued(() => add(4));
  endTurn();
  await next;
  expect(all()).toEqual([4]);
});

test("transactions do not nest", () => {
  const { store } = makeStore();
  expect(() => store.transaction(() => store.transaction(() => undefined))).toThrow("do not nest");
});

interface World {
  readonly gateway: Gateway;
  readonly clock: VirtualClock;
  readonly blobs: MemoryBlobs;
  ask(method: string, path: string, content?: string, key?: string): Promise<GatewayAnswer>;
  send(method: string, path: string, json?: unknown): Promise<GatewayAnswer>;
}

/** `removable`: until then blobs that are to be removed stay. */
function makeGateway(removable: Promise<void> = Promise.resolve(), options: Partial<GatewayOptions> = {}): World {
  const clock = createVirtualClock();
  const blobs = createMemoryBlobs();
  const gateway = createGateway({
    clock,
    database,
    blobs: {
      ...blobs,
      async remove(blob) {
        await removable;
        return blobs.remove(blob);
      },
    },
    signingKey: Buffer.alloc(32, 7),
    log: SILENT,
    options,
    turn,
  });
  const { id } = gateway.ensureWorkspace("workspace");
  const token = gateway.issueToken({ scopes: SCOPES, ttlSeconds: 3600, workspace: id });
  const headers = { authorization: `Bearer ${token}` };
  return {
    gateway,
    clock,
    blobs,
    ask: (method, path, content, key) =>
      gateway.handle({
        method,
        path,
        query: {},
        headers,
        body:
          content === undefined
            ? undefined
            : uploadBody(
                part("metadata", JSON.stringify(key === undefined ? {} : { idempotencyKey: key })),
                part("file", content),
              ),
      }),
    send(method, path, json) {
      const [, route = "", search = ""] = /^([^?]*)\??(.*)$/.exec(path) ?? [];
      const query = Object.fromEntries(new URLSearchParams(search));
      return gateway.handle({
        method,
        path: route,
        query,
        headers,
        body: json === undefined ? undefined : jsonBody(json),
      });
    },
  };
}

/** What was answered by now. */
function watch(work: readonly Promise<GatewayAnswer>[]): (number | undefined)[] {
  const found: (number | undefined)[] = work.map(() => undefined);
  work.forEach((one, index) => {
    void one.then(({ status }) => {
      found[index] = status;
    });
  });
  return found;
}

test("no answer goes out before the commit, reads and refusals included", async () => {
  const { ask, send, gateway } = makeGateway();
  const parentId = gateway.ensureWorkspace("workspace").root;
  const work = [send("POST", "/v1/nodes", { parentId, name: "a", kind: "folder" }), ask("POST", "/v1/files/b", "x")];
  const found = watch(work);
  await settle();
  // What is not committed is seen within the turn, and so must wait as well.
  const later = [ask("GET", "/v1/files/a"), ask("POST", "/v1/files/a", "x")];
  const foundLater = watch(later);
  await settle();
  expect([...found, ...foundLater]).toEqual([undefined, undefined, undefined, undefined]);
  endTurn();
  await Promise.all([...work, ...later]);
  expect([...found, ...foundLater]).toEqual([201, 201, 200, 409]);
});

test("what was committed is told, though the commit of the turn after it fails", async () => {
  const { ask, send, gateway } = makeGateway();
  const parentId = gateway.ensureWorkspace("workspace").root;
  const large = "x".repeat(40_000);
  const work = [
    ask("POST", "/v1/files/a", "x"),
    ask("POST", "/v1/files/b", large),
    ask("POST", "/v1/files/a/b", large),
  ];
  await settle();
  endTurn();
  // Begins before any of these has been told of its commit.
  const next = send("POST", "/v1/nodes", { parentId, name: "c", kind: "folder" });
  await settle();
  expect(database.inTransaction).toBe(true);
  database.exec("ROLLBACK");
  endTurn();
  expect(await Promise.all([...work, next].map(async (one) => (await one).status))).toEqual([201, 201, 409, 500]);
});

test("a read whose turn is undone tells of what is there then, also when nothing can be kept", async () => {
  const { ask, clock } = makeGateway(undefined, { pathLagMs: 1000, journalLagMs: 1000 });
  const upload = ask("POST", "/v1/files/a", "x");
  await settle();
  endTurn();
  expect((await upload).status).toBe(201);
  const readAll = async () => {
    const work = [ask("GET", "/v1/nodes"), ask("GET", "/v1/journal"), ask("GET", "/v1/files/a")];
    const found = watch(work);
    for (let round = 0; found.includes(undefined) && round < 10; round += 1) {
      await settle();
      if (database.inTransaction) database.exec("ROLLBACK");
      endTurn();
    }
    const [nodes, journal, file] = await Promise.all(work);
    if (nodes === undefined || journal === undefined) throw new Error("expected three answers");
    return [nodes.status, bodyOf(nodes).totalCount, journal.status, bodyOf(journal).totalCount, file?.status];
  };
  expect(await readAll()).toEqual([200, 0, 200, 0, 404]);
  // Due to be shown, which cannot be written down.
  await clock.advance(1500);
  expect(await readAll()).toEqual([200, 0, 200, 0, 404]);
  await clock.advance(1500);
  const list = ask("GET", "/v1/nodes");
  await settle();
  endTurn();
  expect(bodyOf(await list).totalCount).toBe(1);
});

test("when the commit fails all that changed something get 500, and a repetition with the key does it all", async () => {
  const { ask } = makeGateway();
  const names = ["a", "b", "c"];
  const uploads = () => names.map((name) => ask("POST", `/v1/files/${name}`, "x", `key-${name}`));
  const work = uploads();
  await settle();
  const read = ask("GET", "/v1/files/a");
  await settle();
  database.exec("ROLLBACK");
  endTurn();
  const statuses = await Promise.all([...work, read].map(async (one) => (await one).status));
  expect(statuses).toEqual([500, 500, 500, 404]);
  expect(database.prepare("SELECT count(*) FROM node WHERE parent IS NOT NULL").pluck().get()).toBe(0);
  const again = uploads();
  await settle();
  endTurn();
  expect(await Promise.all(again.map(async (one) => (await one).status))).toEqual([201, 201, 201]);
  const list = await ask("GET", "/v1/nodes");
  expect(list.body?.kind === "json" ? JSON.parse(list.body.text).totalCount : undefined).toBe(3);
});

test("what a failed commit undid is told by nobody, and its content is not kept", async () => {
  let allow = () => {};
  const { ask, blobs } = makeGateway(
    new Promise((resolve) => {
      allow = resolve;
    }),
  );
  const large = "x".repeat(40_000);
  const first = ask("POST", "/v1/files/a", large, "key");
  await settle();
  // Both tell of the first one, and then have content to remove.
  const repeated = ask("POST", "/v1/files/a", large, "key");
  const refused = ask("POST", "/v1/files/a/b", large);
  await settle();
  expect(blobs.contents.size).toBe(3);
  database.exec("ROLLBACK");
  endTurn();
  await settle();
  allow();
  const statuses = await Promise.all([first, repeated, refused].map(async (one) => (await one).status));
  expect(statuses).toEqual([500, 500, 500]);
  expect(blobs.contents.size).toBe(0);
});

/** The JSON of an answer, as far as the tests below look at it. */
function bodyOf(answer: GatewayAnswer): { readonly id: string; readonly totalCount: number } {
  return JSON.parse(answer.body?.kind === "json" ? answer.body.text : "{}");
}

test("what takes several turns to read does not tell or copy what was undone meanwhile", {
  timeout: 60_000,
}, async () => {
  const { ask, send, gateway } = makeGateway();
  const count = 5000;
  const work = Array.from({ length: count }, (_, index) => ask("POST", `/v1/files/folder/${index}`, "x"));
  await settle();
  endTurn();
  expect((await Promise.all(work)).every(({ status }) => status === 201)).toBe(true);
  const folder = bodyOf(await send("GET", "/v1/files/folder")).id;
  const parentId = gateway.ensureWorkspace("workspace").root;

  // Its name is among those that are read first.
  const undone = send("POST", "/v1/nodes", { parentId: folder, name: "0undone", kind: "folder" });
  await settle();
  const copy = send("POST", "/v1/nodes", { parentId, name: "copy", copyOf: folder });
  const list = send("GET", "/v1/nodes?path=/folder&orderBy=size");
  // Both have begun, and go on in other turns.
  for (let step = 0; step < 100; step += 1) await Promise.resolve();
  database.exec("ROLLBACK");
  endTurn();
  expect((await undone).status).toBe(500);
  const found = watch([list, copy]);
  for (; found.includes(undefined); endTurn()) await settle();
  expect([found, bodyOf(await list).totalCount]).toEqual([[200, 201], count]);
  const copied = send("GET", "/v1/nodes?path=/copy&pageSize=1");
  await settle();
  endTurn();
  expect(bodyOf(await copied).totalCount).toBe(count);

  // Undone in each of its turns, until it gives up.
  const never = send("GET", "/v1/nodes?path=/folder&orderBy=size");
  const told = watch([never]);
  for (let name = 0; told.includes(undefined); name += 1) {
    const change = send("POST", "/v1/nodes", { parentId: folder, name: `${name}undone`, kind: "folder" });
    for (let step = 0; step < 100; step += 1) await Promise.resolve();
    if (database.inTransaction) database.exec("ROLLBACK");
    endTurn();
    expect((await change).status).toBe(500);
    await settle();
  }
  expect([(await never).status, (await never).headers["retry-after"]]).toEqual([503, "1"]);
  expect(bodyOf(await send("GET", "/v1/nodes?path=/folder&orderBy=size")).totalCount).toBe(count);
});
