import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { getPending, getStatus, postDrain, postUnmount } from "../../src/daemon/control-client.ts";
import type { MountStatus } from "../../src/daemon/control-messages.ts";
import { type ControlHandlers, type ControlServer, startControlServer } from "../../src/daemon/control-server.ts";
import { SILENT } from "../../src/lib/log.ts";

const STATUS: MountStatus = {
  workspace: { id: "i", name: "n" },
  online: false,
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
  uptime: 1.5,
  operations: { LOOKUP: 4 },
};
const PROGRESS = { dirty: 2, bytesPending: 10, bytesSent: 1, settled: false };

let folder: string;
let socket: string;
let server: ControlServer | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
  socket = join(folder, "7.sock");
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(folder, { recursive: true });
});

async function serve(handlers: Partial<ControlHandlers>): Promise<void> {
  const all: ControlHandlers = {
    status: () => STATUS,
    pending: () => [],
    drain: async () => ({ drained: true, left: [] }),
    unmount: async () => ({ busy: "busy" }),
    ...handlers,
  };
  server = await startControlServer({ path: socket, handlers: all, log: SILENT });
}

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
  expect(await getStatus(socket)).toEqual(STATUS);
});

it("answers the pending items up to the limit that was asked for", async () => {
  const item = {
    path: "/a",
    what: "content",
    state: "parked",
    bytes: 1,
    bytesSent: 0,
    tries: 3,
    ageMs: 9,
    error: "no",
  } as const;
  await serve({ pending: (limit) => Array.from({ length: limit }, () => item) });
  expect(await getPending(socket, 2)).toEqual([item, item]);
});

it("streams a drain's progress and ends with its result", async () => {
  await serve({
    async drain(settle, _signal, onProgress) {
      onProgress(PROGRESS);
      return { drained: false, left: [`settle ${settle}`] };
    },
  });
  const seen: unknown[] = [];
  const result = await postDrain(socket, { settle: false }, (progress) => seen.push(progress));
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
  expect(await postDrain(socket, { settle: true, timeoutMs: 20 }, () => {})).toEqual({ drained: false, left: ["/a"] });
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
  await expect(postDrain(socket, { settle: true }, () => giveUp.abort(), giveUp.signal)).rejects.toThrow();
  await ended;
});

it("says that a drain broke off when the daemon cannot finish it", async () => {
  await serve({
    drain: async () => {
      throw new Error("a bug");
    },
  });
  await expect(postDrain(socket, { settle: true }, () => {})).rejects.toThrow(/daemon/);
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
  const hanging = postDrain(socket, { settle: true }, () => {}).catch((error: unknown) => error);
  const idle = connect(socket);
  idle.on("error", () => {});
  const reply = postUnmount(socket, 5000);
  await getStatus(socket);
  const closed = server?.close();
  server = undefined;
  finish();
  expect(await reply).toEqual({ unmounted: { dirty: 1, parked: 0, bytesPending: 3 } });
  await closed;
  expect(await hanging).toBeInstanceOf(Error);
  idle.destroy();
});

it("refuses what it does not know with a reason", async () => {
  await serve({});
  expect(await raw("GET", "/nothing")).toEqual([404, expect.stringContaining("GET /nothing")]);
  expect(await raw("GET", "/pending?limit=0")).toEqual([400, expect.stringContaining("limit")]);
  expect(await raw("POST", "/drain", "{")).toEqual([400, expect.stringContaining("JSON")]);
  expect(await raw("POST", "/drain", '{"settle":1}')).toEqual([400, expect.stringContaining("settle")]);
  expect(await raw("POST", "/drain", "x".repeat(100_000))).toEqual([413, expect.stringContaining("at most")]);
});

it("says why when no daemon listens, when it is silent, and when it answers something else", async () => {
  await expect(getStatus(socket)).rejects.toThrow("does not listen");
  const other = createServer((connection) => connection.on("error", () => {}).resume());
  await new Promise<void>((resolve) => other.listen(socket, resolve));
  await expect(postUnmount(socket, 50)).rejects.toThrow("does not answer");
  other.close();
  await serve({ status: () => ({ nonsense: true }) as unknown as MountStatus });
  await expect(getStatus(socket)).rejects.toThrow("unexpected form");
});
