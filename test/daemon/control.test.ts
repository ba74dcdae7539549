import {
  chmodSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { getQueue, getStatus, postDrain, postRetry, postUnmount } from "../../src/daemon/control-client.ts";
import type { MountStatus, QueueItem, QueueSums } from "../../src/daemon/control-messages.ts";
import { type ControlHandlers, type ControlServer, startControlServer } from "../../src/daemon/control-server.ts";
import { SILENT } from "../../src/lib/log.ts";
import { patiently } from "../support/patiently.ts";
import { becomeStranger, STRANGER } from "../support/stranger.ts";

const STATUS: MountStatus = {
  workspace: { id: "i", name: "n" },
  online: false,
  live: false,
  staleMs: 1_500,
  paused: "login needed",
  dirty: 2,
  uploading: 1,
  parked: 0,
  bytesPending: 10,
  settled: false,
  conflicts: 0,
  cacheBytes: 1,
  cacheLimit: 2,
  oldestPendingMs: 5,
  mountpoint: "/m",
  pid: 1,
  supervisorPid: 2,
  connection: 3,
  stateDir: "/s",
  baseUrl: "http://h",
  version: "1.0.0",
  passthrough: true,
  uptime: 1.5,
  operations: { LOOKUP: 4 },
};
const PROGRESS = { dirty: 2, parked: 1, stuck: "no", bytesPending: 10, bytesSent: 1, settled: false };

const SUMS: QueueSums = { dirty: 3, uploading: 1, parked: 1, bytesPending: 9, oldestPendingMs: 7, paused: "no" };

let base: string;
let folder: string;
let socket: string;
let server: ControlServer | undefined;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "wsfs-test-"));
  folder = base;
  socket = join(folder, "7.sock");
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(base, { recursive: true });
});

async function serve(handlers: Partial<ControlHandlers>): Promise<void> {
  const all: ControlHandlers = {
    status: async () => STATUS,
    sums: async () => SUMS,
    async *queue() {},
    retry: async () => ({ retried: 0, unknown: [] }),
    drain: async () => ({ drained: true, left: [] }),
    unmount: async () => ({ busy: "busy" }),
    reload: async () => () => {},
    ...handlers,
  };
  server = await startControlServer({ path: socket, handlers: all, log: SILENT });
}

const at = (path: string, owner = process.getuid?.() ?? 0) => ({ path, owner });

/** Status code and body of a request no client of ours would make. */
function raw(method: string, path: string, body = ""): Promise<[number | undefined, string]> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: socket, method, path, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => {
        text += part;
      });
      response.on("end", () => resolve([response.statusCode, text]));
    });
    call.on("error", reject);
    call.end(body);
  });
}

it("answers the status, whole, on a socket only its owner may use", async () => {
  writeFileSync(socket, "left by a killed daemon");
  await serve({});
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  expect(await getStatus(at(socket))).toEqual(STATUS);
});

it("is reached by a path longer than a socket's address", async () => {
  folder = join(folder, "f".repeat(100), "g".repeat(100));
  mkdirSync(folder, { recursive: true });
  socket = join(folder, "7.sock");
  await expect(getStatus(at(socket))).rejects.toThrow("the daemon does not listen");
  await expect(getStatus(at(join(folder, "gone", "7.sock")))).rejects.toThrow("the daemon does not listen");
  const descriptors = () => readdirSync("/proc/self/fd").length;
  await serve({});
  const before = descriptors();
  for (let time = 0; time < 5; time += 1) expect(await getStatus(at(socket))).toEqual(STATUS);
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["7.sock"]);
  await vi.waitFor(() => expect(descriptors()).toBeLessThanOrEqual(before), patiently);
  await server?.close();
  server = undefined;
  expect(readdirSync(folder)).toEqual([]);
});

it.each([
  ["a link to a socket", () => symlinkSync(`${socket}.real`, socket), /is a symbolic link of user/],
  ["a file", () => writeFileSync(socket, ""), /is no socket of user/],
] as const)("is not looked for behind %s in its place", async (_, put, said) => {
  const asked: string[] = [];
  const other = createServer((connection) => connection.on("data", (bytes) => asked.push(String(bytes))));
  await new Promise<void>((resolve) => other.listen(`${socket}.real`, resolve));
  onTestFinished(() => void other.close());
  put();
  await expect(postUnmount(at(socket), 10_000)).rejects.toThrow(said);
  expect(asked).toEqual([]);
});

it.skipIf(process.getuid?.() !== 0)(
  "is that of the user it has to be, and so is who listens there (needs root)",
  async () => {
    chmodSync(base, 0o777);
    const stranger = becomeStranger(socket);
    onTestFinished(() => stranger.end());
    await stranger.listens();
    await expect(getStatus(at(socket))).rejects.toThrow(`is a socket of user ${STRANGER}, expected a socket of user 0`);
    // As one that was handed on would be.
    lchownSync(socket, 0, 0);
    await expect(getStatus(at(socket))).rejects.toThrow(`a process of user ${STRANGER} listens at ${socket}`);
    expect(stranger.heard()).toBe("");
  },
);

it.each(["//", "//:x", "http://"])("refuses to be asked for %s with 400", async (path) => {
  await serve({});
  expect(await raw("GET", path)).toEqual([400, expect.stringContaining("expected a path")]);
});

it.each([
  { what: "a line", ask: () => getQueue(at(socket), 9, { sums() {}, item() {} }), said: /broke the list off/ },
  { what: "an answer", ask: () => getStatus(at(socket)), said: /longer than 64 MiB/ },
])("reads $what that does not end no further than to a limit", async ({ ask, said }) => {
  const endless = createServer((connection) => {
    connection.on("error", () => {});
    connection.once("data", () => {
      connection.write("HTTP/1.1 200 OK\r\n\r\n");
      const block = Buffer.alloc(1024 ** 2, "x");
      const send = () => {
        while (!connection.destroyed && connection.write(block));
      };
      connection.on("drain", send);
      send();
    });
  });
  await new Promise<void>((resolve) => endless.listen(socket, resolve));
  onTestFinished(() => void endless.close());
  await expect(ask()).rejects.toThrow(said);
});

const ITEM: QueueItem = {
  path: "/a",
  what: "version",
  state: "parked",
  why: "refused: no",
  bytes: 1,
  bytesSent: 0,
  tries: 3,
  ageMs: 9,
  error: "no",
};

async function listed(limit: number): Promise<{ sums: QueueSums[]; items: QueueItem[] }> {
  const sums: QueueSums[] = [];
  const items: QueueItem[] = [];
  await getQueue(at(socket), limit, { sums: (line) => sums.push(line), item: (line) => items.push(line) });
  return { sums, items };
}

it("streams the queue: its sums, then as many items as were asked for", async () => {
  await serve({
    async *queue(limit) {
      yield [];
      for (let left = limit; left > 0; left -= 1) yield [ITEM];
    },
  });
  expect(await listed(2)).toEqual({ sums: [SUMS], items: [ITEM, ITEM] });
});

it("a queue that breaks off is no whole one", async () => {
  await serve({
    async *queue() {
      yield [ITEM];
      throw new Error("on purpose");
    },
  });
  await expect(listed(9)).rejects.toThrow("the daemon");
});

it("a long queue is read from the engine only as fast as the other side reads", async () => {
  const MANY = 200_000;
  let given = 0;
  let stopped: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  await serve({
    async *queue() {
      try {
        for (; given < MANY; given += 100) yield Array.from({ length: 100 }, () => ITEM);
      } finally {
        stopped();
      }
    },
  });
  // Somebody who reads the first line and goes away.
  await new Promise<void>((resolve) => {
    const call = request({ socketPath: socket, path: "/queue?limit=1000000", agent: false }, (response) => {
      response.once("readable", () => {
        response.read(1);
        call.destroy();
        resolve();
      });
    });
    call.on("error", () => {});
    call.end();
  });
  await ended;
  expect(given).toBeLessThan(MANY);
});

it("retries what is named, or everything", async () => {
  const asked: unknown[] = [];
  await serve({
    async retry(paths) {
      asked.push(paths);
      return { retried: 4, unknown: [...(paths ?? [])] };
    },
  });
  expect(await postRetry(at(socket))).toEqual({ retried: 4, unknown: [] });
  expect(await postRetry(at(socket), ["/a"])).toEqual({ retried: 4, unknown: ["/a"] });
  expect(asked).toEqual([undefined, ["/a"]]);
  expect(await raw("POST", "/queue/retry", '{"paths":["a"]}')).toEqual([400, expect.stringContaining("paths")]);
});

it("streams a drain's progress and ends with its result", async () => {
  await serve({
    async drain(settle, _signal, onProgress) {
      onProgress(PROGRESS);
      return { drained: false, left: [`settle ${settle}`] };
    },
  });
  const seen: unknown[] = [];
  const result = await postDrain(at(socket), { settle: false }, (progress) => seen.push(progress));
  expect(seen).toEqual([PROGRESS]);
  expect(result).toEqual({ drained: false, left: ["settle false"] });
});

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

it("ends a drain when its time is up, with what is left", async () => {
  await serve({
    async drain(_settle, signal) {
      await untilAborted(signal);
      return { drained: false, left: ["/a"] };
    },
  });
  expect(await postDrain(at(socket), { settle: true, timeoutMs: 20 }, () => {})).toEqual({
    drained: false,
    left: ["/a"],
  });
});

it("a drain may have more time than a timer takes", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await serve({
    async drain(_settle, signal) {
      // One for longer than timers take goes off at once.
      vi.advanceTimersByTime(1_000);
      return { drained: !signal.aborted, left: [] };
    },
  });
  // What --timeout takes at most.
  expect(await postDrain(at(socket), { settle: true, timeoutMs: 1e12 }, () => {})).toEqual({ drained: true, left: [] });
});

it("a daemon that hangs within its answer is not waited for, neither beyond a drain's time nor in a list", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const never = new Promise<never>(() => {});
  await serve({
    drain: (_settle, _signal, onProgress) => {
      onProgress(PROGRESS);
      return never;
    },
    async *queue() {
      yield [ITEM];
      await never;
    },
  });
  const begun: (() => void)[] = [];
  const seen = () => new Promise<void>((resolve) => begun.push(resolve));
  const outcomes: string[] = [];
  const told = (error: Error) => void outcomes.push(error.message);
  // The clock of the test stands still meanwhile.
  const outcome = async (count: number) => {
    while (outcomes.length < count) await setImmediate();
  };
  const bothBegun = Promise.all([seen(), seen()]);
  postDrain(at(socket), { settle: true, timeoutMs: 60_000 }, () => begun[0]?.()).catch(told);
  getQueue(at(socket), 9, { sums() {}, item: () => begun[1]?.() }).catch(told);
  await bothBegun;
  await vi.advanceTimersByTimeAsync(10_000);
  await outcome(1);
  expect(outcomes).toEqual(["the daemon does not answer (for 10 s)"]);
  await vi.advanceTimersByTimeAsync(55_000);
  expect(outcomes).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(5_000);
  await outcome(2);
});

it("stops a drain nobody waits for any more", async () => {
  let stopped: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  const giveUp = new AbortController();
  await serve({
    async drain(_settle, signal, onProgress) {
      onProgress(PROGRESS);
      await untilAborted(signal);
      stopped();
      return { drained: false, left: [] };
    },
  });
  await expect(postDrain(at(socket), { settle: true }, () => giveUp.abort(), giveUp.signal)).rejects.toThrow();
  await ended;
});

it("says that a drain broke off when the daemon cannot finish it", async () => {
  await serve({
    drain: async () => {
      throw new Error("a bug");
    },
  });
  await expect(postDrain(at(socket), { settle: true }, () => {})).rejects.toThrow(/daemon/);
});

it("lets the answer to an unmount go out before it closes, and breaks off the rest", async () => {
  let finish: () => void = () => {};
  await serve({
    unmount: () =>
      new Promise((resolve) => {
        finish = () => resolve({ unmounted: { dirty: 1, parked: 0, bytesPending: 3 } });
      }),
    drain: (_settle, signal) => untilAborted(signal).then(() => ({ drained: false, left: [] })),
  });
  const hanging = postDrain(at(socket), { settle: true }, () => {}).catch((error: unknown) => error);
  const idle = connect(socket);
  idle.on("error", () => {});
  const reply = postUnmount(at(socket), 5000);
  await getStatus(at(socket));
  const closed = server?.close();
  server = undefined;
  finish();
  expect(await reply).toEqual({ unmounted: { dirty: 1, parked: 0, bytesPending: 3 } });
  await closed;
  expect(await hanging).toBeInstanceOf(Error);
  idle.destroy();
});

it("tries again as many paths as a command line can name", async () => {
  let asked = 0;
  await serve({
    async retry(paths = []) {
      asked = paths.length;
      return { retried: asked, unknown: [] };
    },
  });
  const paths = Array.from({ length: 20_000 }, (_, index) => `/a folder/with a long name/and many files/${index}`);
  expect(await postRetry(at(socket), paths)).toEqual({ retried: paths.length, unknown: [] });
  expect(asked).toBe(paths.length);
});

it("refuses what it does not know with a reason", async () => {
  await serve({});
  expect(await raw("GET", "/nothing")).toEqual([404, expect.stringContaining("GET /nothing")]);
  expect(await raw("GET", "/queue?limit=0")).toEqual([400, expect.stringContaining("limit")]);
  expect(await raw("POST", "/drain", "{")).toEqual([400, expect.stringContaining("JSON")]);
  expect(await raw("POST", "/drain", '{"settle":1}')).toEqual([400, expect.stringContaining("settle")]);
  expect(await raw("POST", "/drain", "x".repeat(100_000))).toEqual([413, expect.stringContaining("at most")]);
});

it("says why when no daemon listens, when it is silent, and when it answers something else", async () => {
  await expect(getStatus(at(socket))).rejects.toThrow("does not listen");
  const other = createServer((connection) => connection.on("error", () => {}).resume());
  await new Promise<void>((resolve) => other.listen(socket, resolve));
  await expect(postUnmount(at(socket), 50)).rejects.toThrow("does not answer");
  other.close();
  await serve({ status: async () => ({ nonsense: true }) as unknown as MountStatus });
  await expect(getStatus(at(socket))).rejects.toThrow("unexpected form");
});

it("takes a body as it was sent, in whichever pieces it comes", async () => {
  const asked: unknown[] = [];
  await serve({
    retry: async (paths) => {
      asked.push(paths);
      return { retried: 0, unknown: [] };
    },
  });
  const paths = ["/grün/木"];
  const body = Buffer.from(JSON.stringify({ paths }));
  const call = request({ socketPath: socket, method: "POST", path: "/queue/retry", agent: false });
  const answered = new Promise((resolve, reject) => {
    call.on("response", (response) => response.resume().on("end", resolve)).on("error", reject);
  });
  for (const byte of body) {
    call.write(Buffer.of(byte));
    // Or they would come as one.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  call.end();
  await answered;
  expect(asked).toEqual([paths]);
});
