/** What is of the thread itself; that it carries what the transport without one does, on-a-thread.test.ts asks. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { createOutbox } from "../../src/client/outbox.ts";
import { createThreadTransport } from "../../src/client/thread-transport.ts";
import type { HttpRequest, Transport } from "../../src/contract/http.ts";
import { collect, deferred, failureOf, readBody, serve, startHttpThread, type TestServer } from "./support/server.ts";

const MIB = 1024 * 1024;

interface OnThread {
  readonly transport: Transport;
  readonly threads: readonly Worker[];
}

function onThread({ baseUrl }: TestServer): OnThread {
  const threads: Worker[] = [];
  const startThread: typeof startHttpThread = (data) => {
    const worker = startHttpThread(data);
    threads.push(worker);
    return worker;
  };
  const transport = createThreadTransport({ baseUrl, startThread });
  onTestFinished(() => transport.close());
  return { transport, threads };
}

const read: HttpRequest = { method: "GET", path: "/v1/something", query: {}, headers: { accept: "application/json" } };
const asked: HttpRequest = { ...read, method: "POST" };

function upload(read: () => AsyncIterable<Uint8Array>, size: number | undefined): HttpRequest {
  const content = { size, read };
  return { ...asked, method: "POST", body: { kind: "upload", metadata: {}, contentType: undefined, content } };
}

test("no thread is started before the first small change, and one for all", async () => {
  const server = await serve((request, response) => void request.resume().on("end", () => response.end("{}")));
  const { transport, threads } = onThread(server);
  await collect((await transport.send(read)).body);
  const bulk = upload(async function* () {
    for (let index = 0; index < 4; index += 1) yield new Uint8Array(MIB);
  }, 4 * MIB);
  await collect((await transport.send(bulk)).body);
  expect(threads).toHaveLength(0);
  const answers = await Promise.all(Array.from({ length: 20 }, () => transport.send(asked)));
  for (const { status, body } of answers) expect([status, String(await collect(body))]).toEqual([200, "{}"]);
  expect(threads).toHaveLength(1);
});

test("without a thread that can be started all is sent from this one", async () => {
  const server = await serve((request, response) => void request.resume().on("end", () => response.end("{}")));
  let tries = 0;
  const startThread = () => {
    tries += 1;
    throw new Error("no threads left");
  };
  const transport = createThreadTransport({ baseUrl: server.baseUrl, startThread });
  onTestFinished(() => transport.close());
  let reads = 0;
  const small = upload(async function* () {
    reads += 1;
    yield new Uint8Array(10);
  }, 10);
  for (const request of [small, asked]) expect((await transport.send(request)).status).toBe(200);
  expect([tries, reads]).toEqual([1, 1]);
});

test("a thread that ends by itself: what it had may have had an effect, and what comes later is sent without it", async () => {
  const arrived = deferred();
  let isOpen = false;
  const server = await serve((_, response) => {
    if (isOpen) response.end("{}");
    else arrived.resolve();
  });
  const { transport, threads } = onThread(server);
  const failure = failureOf(transport.send(asked));
  await arrived.promise;
  await threads[0]?.terminate();
  expect(await failure).toMatchObject({ code: "offline", isAmbiguous: true });
  expect((await failure).message).toContain("the thread of the small changes has ended");
  isOpen = true;
  expect((await transport.send(asked)).status).toBe(200);
  expect(threads).toHaveLength(1);
});

test("a thread of another build is none", async () => {
  const server = await serve((_, response) => response.end("{}"));
  const startThread: typeof startHttpThread = (data) => startHttpThread({ ...data, format: data.format + 1 });
  const transport = createThreadTransport({ baseUrl: server.baseUrl, startThread });
  onTestFinished(() => transport.close());
  expect((await failureOf(transport.send(asked))).message).toContain("another build");
  expect((await transport.send(asked)).status).toBe(200);
});

test("why a call was given up, and why its content could not be read, are told as the caller's own", async () => {
  const arrived = deferred();
  const server = await serve((request) => {
    request.on("error", () => {});
    arrived.resolve();
  });
  const { transport } = onThread(server);
  const reason = new Error("a program was interrupted");
  const controller = new AbortController();
  const given = failureOf(transport.send({ ...asked, signal: controller.signal }));
  await arrived.promise;
  controller.abort(reason);
  expect((await given).cause).toBe(reason);
  expect(await given).toMatchObject({ code: "aborted", isAmbiguous: true });

  const failure = Object.assign(new Error("EIO: the disk"), { code: "EIO" });
  const broken = upload(async function* () {
    yield new Uint8Array(10);
    throw failure;
  }, 20);
  const error = await failureOf(transport.send(broken));
  expect(error).toMatchObject({ code: "aborted", details: { isUnsent: true } });
  expect(error.cause).toBe(failure);
});

test("closing breaks off what is under way, and ends the thread", async () => {
  const arrived = deferred();
  const server = await serve((request, response) => {
    if (request.url === "/v1/begun") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("x");
    } else arrived.resolve();
  });
  const { transport, threads } = onThread(server);
  const begun = await transport.send({ ...read, path: "/v1/begun", headers: { accept: "text/event-stream" } });
  const reading = failureOf(collect(begun.body));
  const waiting = failureOf(transport.send(asked));
  await arrived.promise;
  const ended = new Promise((resolve) => threads[0]?.once("exit", resolve));
  await transport.close();
  await ended;
  expect(await waiting).toMatchObject({ code: "aborted", isAmbiguous: true });
  expect(await reading).toMatchObject({ code: "aborted" });
  expect(await failureOf(transport.send(asked))).toMatchObject({ code: "aborted", details: { isUnsent: true } });
});

test("small content arrives whole, however it is cut, and none that is not as long as it said", async () => {
  const arrived: string[] = [];
  const server = await serve(async (request, response) => {
    const body = await readBody(request).catch(() => undefined);
    if (body !== undefined) arrived.push(String(body));
    response.end("{}");
  });
  const { transport, threads } = onThread(server);
  const parts = upload(async function* () {
    const bytes = Buffer.from("..one two..");
    yield bytes.subarray(2, 5);
    yield bytes.subarray(5, 9);
  }, 7);
  await collect((await transport.send(parts)).body);
  expect(arrived).toHaveLength(1);
  expect(arrived[0]).toContain("\r\n\r\none two\r\n--");
  for (const length of [6, 8]) {
    const source = () => [new Uint8Array(length)] as unknown as AsyncIterable<Uint8Array>;
    expect(await failureOf(transport.send(upload(source, 7)))).toMatchObject({ code: "aborted" });
  }
  expect(arrived).toHaveLength(1);
  expect(threads).toHaveLength(1);
});

test("a local disk that does not answer keeps no call that is given up", async () => {
  const server = await serve(() => {});
  const { transport } = onThread(server);
  const controller = new AbortController();
  const stuck = upload(async function* () {
    await new Promise(() => {});
    yield new Uint8Array(1);
  }, 1);
  const failure = failureOf(transport.send({ ...stuck, signal: controller.signal }));
  controller.abort();
  expect(await failure).toMatchObject({ code: "aborted", details: { isUnsent: true } });
});

test("an answer says what became of the change, also where the rest of it does not come", async () => {
  const server = await serve((_, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.write("begun");
  });
  const transport = createThreadTransport({
    baseUrl: server.baseUrl,
    limits: { metadata: 2_000 },
    startThread: startHttpThread,
  });
  onTestFinished(() => transport.close());
  const { status, body } = await transport.send(asked);
  expect(status).toBe(200);
  const reader = body[Symbol.asyncIterator]();
  expect(String(Buffer.from((await reader.next()).value))).toBe("begun");
  expect(await failureOf(reader.next())).toMatchObject({ code: "silent" });
});

test("what cannot be handed over fails nothing that comes after it", () => {
  const handedOver: unknown[][] = [];
  const post = createOutbox<unknown>({ postMessage: (batch: unknown[]) => handedOver.push(structuredClone(batch)) });
  for (let index = 0; index < 15; index += 1) post(index);
  expect(() => post(() => {})).toThrow("could not be cloned");
  for (let index = 0; index < 16; index += 1) post(index);
  expect(handedOver).toEqual([Array.from({ length: 16 }, (_, index) => index)]);
});

test("an idle thread keeps no program from ending", async () => {
  const server = await serve((_, response) => response.end("{}"));
  const program = `
    import { Worker } from "node:worker_threads";
    import { createThreadTransport } from "./src/client/thread-transport.ts";
    const execArgv = ["--import", "./scripts/typescript.mjs"];
    const startThread = (workerData) => new Worker("./src/client/http-thread.ts", { workerData, execArgv });
    const transport = createThreadTransport({ baseUrl: ${JSON.stringify(server.baseUrl)}, startThread });
    const { status } = await transport.send(${JSON.stringify(asked)});
    console.log(status);
  `;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "./scripts/typescript.mjs", "--input-type=module", "--eval", program],
    { cwd: fileURLToPath(new URL("../..", import.meta.url)), timeout: 30_000 },
  );
  expect(stdout).toBe("200\n");
});
