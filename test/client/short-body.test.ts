/** A short upload is one piece for the connection, wherever its bytes come from. */
import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import { exchange } from "../../src/client/exchange.ts";

const LIMITS = { connect: 1_000, send: 1_000, answer: 1_000, receive: 1_000 };

function recordingPool() {
  const bodies: unknown[] = [];
  const pool: Pick<Dispatcher, "dispatch"> = {
    dispatch: ({ body }) => {
      bodies.push(body);
      return true;
    },
  };
  return { bodies, pool };
}

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

function start(body: AsyncGenerator<Uint8Array, void, undefined>, size: number | undefined, signal?: AbortSignal) {
  const { bodies, pool } = recordingPool();
  const request = { method: "POST", path: "/", headers: {}, body, size, ...(signal === undefined ? {} : { signal }) };
  const answer = exchange(pool, { last: 0, underWay: 0, most: 1 }, request, LIMITS);
  return { bodies, answer };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("up to 64 KiB it is gathered, beyond that or of unknown size it is streamed", async () => {
  for (const [size, isGathered] of [
    [64 * 1024, true],
    [64 * 1024 + 1, false],
    [undefined, false],
  ] as const) {
    const stopped = new AbortController();
    const { bodies, answer } = start(chunks("head ", "content", " tail"), size, stopped.signal);
    await settled();
    if (isGathered) expect(bodies).toEqual([Buffer.from("head content tail")]);
    else expect(bodies.map((body) => body instanceof Uint8Array)).toEqual([false]);
    stopped.abort();
    await expect(answer).rejects.toMatchObject({ code: "aborted" });
  }
});

test("given up while its content is read, it is not sent, and who gave up does not wait for the disk", async () => {
  const stopped = new AbortController();
  let read: () => void = () => {};
  async function* slow() {
    yield Buffer.from("head");
    await new Promise<void>((resolve) => {
      read = resolve;
    });
    yield Buffer.from("tail");
  }
  const { bodies, answer } = start(slow(), 8, stopped.signal);
  await settled();
  stopped.abort();
  await expect(answer).rejects.toMatchObject({ code: "aborted", details: { isUnsent: true } });
  read();
  await settled();
  expect(bodies).toEqual([]);
});

test("content that cannot be read fails it, unsent", async () => {
  async function* broken(): AsyncGenerator<Uint8Array, void, undefined> {
    yield Buffer.from("head");
    throw new Error("no such file");
  }
  const { bodies, answer } = start(broken(), 8);
  await expect(answer).rejects.toMatchObject({ message: "no such file", details: { isUnsent: true } });
  expect(bodies).toEqual([]);
});

test("a connection that takes nothing at all fails it, unsent, whatever its length", async () => {
  const pool: Pick<Dispatcher, "dispatch"> = {
    dispatch() {
      throw new TypeError("invalid header");
    },
  };
  for (const size of [8, undefined]) {
    const request = { method: "POST", path: "/", headers: {}, body: chunks("content"), size };
    const answer = exchange(pool, { last: 0, underWay: 0, most: 1 }, request, LIMITS);
    await expect(answer).rejects.toMatchObject({ name: "RemoteError", details: { isUnsent: true } });
  }
});
