/** How transfers move and stall: limits on silence, backpressure, memory. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ContentSource } from "../../src/contract/http.ts";
import { exampleNode, exampleWritten, textSource } from "./support/examples.ts";
import { readMultipart } from "./support/multipart-reader.ts";
import { answerJson, clientFor, collect, deferred, failureOf, readBody } from "./support/server.ts";

const MIB = 1024 * 1024;
const block = randomBytes(MIB);

function blocks(count: number): ContentSource {
  return {
    size: count * MIB,
    async *read() {
      for (let index = 0; index < count; index += 1) yield block;
    },
  };
}

const SHORT = 150;
/** Longer than a busy machine keeps a process waiting. */
const STEADY = 1000;
/** Only what a test waits for is short. */
const LONG = 60_000;

test("a gateway that accepts and says nothing is silent", async () => {
  const client = await clientFor(() => {}, { limits: { metadata: SHORT, content: LONG } });
  const error = await failureOf(client.getNode("n1"));
  expect(error).toMatchObject({ code: "silent", isAmbiguous: true });
  expect(error.message).toContain("no answer within 0.15 s");
});

test("interim answers without end are silence, and the connection is free for the next call", async () => {
  let isWell = false;
  let interims = 0;
  const client = await clientFor(
    (request, response) => {
      request.resume();
      if (isWell) {
        answerJson(response, 200, request.method === "GET" ? exampleNode() : exampleWritten());
        return;
      }
      const drip = setInterval(() => {
        interims += 1;
        response.writeProcessing();
      }, STEADY / 10);
      response.on("close", () => clearInterval(drip));
    },
    { connections: 1, limits: { metadata: STEADY, content: STEADY, uploadAnswer: STEADY } },
  );
  for (const call of [() => client.getNode("n1"), () => client.upload("root", "a", textSource("content"))]) {
    isWell = false;
    interims = 0;
    const first = failureOf(call());
    // Waits for the one connection there is.
    const second = failureOf(call());
    expect(await first).toMatchObject({ code: "silent" });
    expect(interims).toBeGreaterThan(2);
    expect(await second).toMatchObject({ code: "silent" });
    isWell = true;
    expect((await call()).id).toBe("n1");
  }
});

test("a stream of a tree that is not read on takes no connection from others", async () => {
  const begin = (folder: string) => `${JSON.stringify({ folder, asOf: 1, after: folder })}\n`;
  const client = await clientFor(
    (request, response) => {
      if (request.url?.startsWith("/v1/tree") !== true) {
        response.writeHead(200, { etag: '"v1"', "content-length": "1" }).end("x");
        return;
      }
      response.writeHead(200, { "content-type": "application/x-ndjson" }).write(begin("a") + begin("b"));
    },
    { connections: 1 },
  );
  const parts = client.streamNodes({ parentId: "a" });
  expect((await parts.next()).value).toMatchObject({ folder: "a", items: [] });
  const others = client.streamNodes({ parentId: "a" });
  expect((await others.next()).value).toMatchObject({ folder: "a", items: [] });
  expect(await collect((await client.getContent("n1")).bytes)).toEqual(Buffer.from("x"));
  await Promise.all([parts.return(), others.return()]);
});

test("lines that drip are silent, as a JSON answer is: a program may wait for them", async () => {
  const client = await clientFor(
    (_, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      const drip = setInterval(() => response.write(" "), SHORT / 10);
      response.on("close", () => clearInterval(drip));
    },
    { limits: { metadata: SHORT, stream: LONG } },
  );
  expect(await failureOf(client.streamNodes({ parentId: "a" }).next())).toMatchObject({ code: "silent" });
});

test("an interim answer before the answer is passed over", async () => {
  const client = await clientFor((_, response) => {
    response.writeProcessing();
    answerJson(response, 200, exampleNode());
  });
  expect((await client.getNode("n1")).id).toBe("n1");
});

test("a gateway that stops inside a JSON answer is silent", async () => {
  const client = await clientFor(
    (_, response) => {
      response.writeHead(200, { "content-length": 1000 });
      response.write('{"id":');
    },
    { limits: { metadata: SHORT, content: LONG } },
  );
  expect(await failureOf(client.getNode("n1"))).toMatchObject({ code: "silent" });
});

test("a JSON answer that drips is silent, one that comes slowly is read to its end", async () => {
  const dripping = async (bytes: number) => {
    const client = await clientFor(
      (_, response) => {
        response.writeHead(200, { "content-length": 20_000 });
        const drip = setInterval(() => response.write("x".repeat(bytes)), SHORT / 10);
        response.on("close", () => clearInterval(drip));
      },
      { limits: { metadata: SHORT, content: LONG } },
    );
    return failureOf(client.getNode("n1"));
  };
  expect(await dripping(1)).toMatchObject({ code: "silent" });
  expect(await dripping(1_000)).toMatchObject({ code: "malformed" });
});

test("content that does not begin is silent", async () => {
  const client = await clientFor(() => {}, { limits: { metadata: LONG, content: SHORT } });
  expect(await failureOf(client.getContent("n1"))).toMatchObject({ code: "silent" });
});

test("content that stops is silent", async () => {
  const client = await clientFor(
    (_, response) => {
      response.writeHead(200, { etag: '"v1"', "content-length": 1000 });
      response.write("x");
    },
    { limits: { metadata: LONG, content: SHORT } },
  );
  const { bytes } = await client.getContent("n1");
  const error = await failureOf(collect(bytes));
  expect(error.code).toBe("silent");
  expect(error.message).toContain("after 1 of 1000 bytes");
});

test("an upload nobody takes is silent, and its content is closed", async () => {
  const closed = deferred();
  const client = await clientFor((request) => request.pause(), { limits: { content: SHORT, uploadAnswer: LONG } });
  const content: ContentSource = {
    size: 1000 * MIB,
    async *read() {
      try {
        for (;;) yield block;
      } finally {
        closed.resolve();
      }
    },
  };
  const error = await failureOf(client.upload("root", "a", content));
  expect(error.code).toBe("silent");
  expect(error.message).toContain("no progress in sending");
  await closed.promise;
});

test("an upload that is not answered is silent", async () => {
  const client = await clientFor((request) => request.resume(), { limits: { content: LONG, uploadAnswer: SHORT } });
  const error = await failureOf(client.upload("root", "a", textSource("hello")));
  expect(error.code).toBe("silent");
  expect(error.message).toContain("no answer to what was sent");
});

test("a slow but steady download is not cut", { timeout: 30_000 }, async () => {
  const client = await clientFor(
    async (_, response) => {
      response.writeHead(200, { etag: '"v1"', "content-length": 60 });
      for (let count = 0; count < 60; count += 1) {
        response.write("x");
        await delay(25);
      }
      response.end();
    },
    { limits: { content: STEADY } },
  );
  const start = performance.now();
  const { bytes } = await client.getContent("n1");
  expect((await collect(bytes)).length).toBe(60);
  expect(performance.now() - start).toBeGreaterThan(STEADY);
});

test("a slow but steady upload is not cut", { timeout: 60_000 }, async () => {
  let received = 0;
  const client = await clientFor(
    async (request, response) => {
      const begun = performance.now();
      for await (const chunk of request) {
        received += (chunk as Buffer).length;
        // By the clock: pauses of a machine that is busy would add up to a silence.
        const ahead = begun + (received / (64 * MIB)) * 2 * STEADY - performance.now();
        if (ahead > 0) await delay(ahead);
      }
      answerJson(response, 201, exampleWritten());
    },
    { limits: { content: STEADY, metadata: STEADY } },
  );
  const start = performance.now();
  // One chunk: to the connection it would be a single, long write.
  const chunk = Buffer.alloc(64 * MIB);
  await client.upload("root", "a", { size: chunk.length, read: () => Readable.from([chunk]) });
  expect(received).toBeGreaterThan(64 * MIB);
  expect(performance.now() - start).toBeGreaterThan(STEADY);
});

test("a reader that takes its time is no silence of the gateway, and holds it back", async () => {
  let sent = 0;
  const client = await clientFor(
    async (_, response) => {
      response.writeHead(200, { etag: '"v1"', "content-length": 64 * MIB });
      for (let index = 0; index < 64; index += 1) {
        if (!response.write(block)) await once(response, "drain");
        sent += MIB;
      }
      response.end();
    },
    { limits: { content: STEADY } },
  );
  const { bytes } = await client.getContent("n1");
  let read = 0;
  let pauses = 0;
  for await (const chunk of bytes) {
    read += chunk.length;
    if (pauses < 2 && read > pauses * 4 * MIB) {
      pauses += 1;
      await delay(STEADY * 4);
      // What the sockets hold on the way, and a little more.
      expect(sent - read).toBeLessThan(32 * MIB);
    }
  }
  expect(read).toBe(64 * MIB);
});

test("a local disk that takes its time is no silence of the gateway", async () => {
  const client = await clientFor(
    async (request, response) => {
      await readBody(request);
      answerJson(response, 201, exampleWritten());
    },
    { limits: { content: SHORT, uploadAnswer: LONG } },
  );
  const content: ContentSource = {
    size: 2,
    async *read() {
      yield Buffer.from("a");
      await delay(SHORT * 4);
      yield Buffer.from("b");
    },
  };
  expect((await client.upload("root", "a", content)).position).toBe(7);
});

test("a busy process does not take what has already arrived for silence", async () => {
  const client = await clientFor(
    (_, response) => {
      // The answer is in the socket; this thread, the client's too, looks at it only after the limit.
      response.on("finish", () => {
        const until = performance.now() + SHORT * 2;
        while (performance.now() < until);
      });
      answerJson(response, 200, exampleNode());
    },
    { limits: { metadata: SHORT } },
  );
  expect((await client.getNode("n1")).id).toBe("n1");
});

test("calls that wait for their turn on a busy connection are not offline", async () => {
  const client = await clientFor(
    async (_, response) => {
      await delay(20);
      answerJson(response, 200, exampleNode());
    },
    { connections: 1, limits: { connect: 300, metadata: LONG } },
  );
  const nodes = await Promise.all(Array.from({ length: 40 }, () => client.getNode("n1")));
  expect(nodes.length).toBe(40);
});

test("calls that wait for connections on which nothing moves are not offline: those have limits of their own", async () => {
  const client = await clientFor(
    (_, response) => void setTimeout(() => answerJson(response, 200, exampleNode({ id: "n1" })), 4 * SHORT),
    {
      connections: 2,
      limits: { connect: SHORT, metadata: LONG },
    },
  );
  const calls = Array.from({ length: 5 }, () => client.getNode("n1"));
  for (const node of await Promise.all(calls)) expect(node.id).toBe("n1");
});

test("an abort while sending ends the call and closes the content", async () => {
  const closed = deferred();
  const controller = new AbortController();
  const client = await clientFor((request) => request.resume());
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  let isAborted = false;
  const content: ContentSource = {
    size: 1000 * MIB,
    async *read() {
      try {
        for (let index = 0; ; index += 1) {
          if (index === 5) {
            isAborted = true;
            controller.abort();
          }
          yield block;
        }
      } finally {
        closed.resolve();
      }
    },
  };
  const error = await failureOf(client.upload("root", "a", content, { signal: controller.signal }));
  expect(isAborted).toBe(true);
  expect(error.code).toBe("aborted");
  await closed.promise;
  // The block that was on its way when it was given up is waited for by nobody.
  await setImmediate();
  expect(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout")).toHaveLength(timers);
});

test("content that fails while it is sent never arrives whole", async () => {
  const ends: (string | number)[] = [];
  const arrived = deferred();
  const client = await clientFor((request: IncomingMessage) => {
    request.on("end", () => ends.push("end"));
    request.on("error", () => {});
    request.on("close", () => arrived.resolve());
    request.resume();
  });
  const content: ContentSource = {
    size: 2 * MIB,
    async *read() {
      yield block;
      throw new Error("EIO: the disk");
    },
  };
  const error = await failureOf(client.upload("root", "a", content));
  expect(error).toMatchObject({ code: "aborted" });
  expect(error.message).toContain("EIO: the disk");
  await arrived.promise;
  expect(ends).toEqual([]);
});

test("an answer before the end of the upload is taken, and the content is closed", async () => {
  const closed = deferred();
  const client = await clientFor((_, response) => answerJson(response, 412, { title: "Exists", node: exampleNode() }));
  const content: ContentSource = {
    size: 1000 * MIB,
    async *read() {
      try {
        for (;;) yield block;
      } finally {
        closed.resolve();
      }
    },
  };
  expect(await failureOf(client.upload("root", "a", content))).toMatchObject({ code: "changed" });
  await closed.promise;
});

test("an upload carries metadata and content, and tells its progress", async () => {
  const progress: number[] = [];
  let parts: Awaited<ReturnType<typeof readMultipart>> = [];
  let length = "";
  const client = await clientFor(async (request, response) => {
    length = request.headers["content-length"] ?? "";
    parts = await readMultipart(request);
    answerJson(response, 201, exampleWritten());
  });
  await client.upload("root", "a", blocks(3), {
    idempotencyKey: "key",
    contentHash: "a".repeat(64),
    contentType: "image/png",
    attributes: { mtime: "1.000000000" },
    onProgress: (sent) => progress.push(sent),
  });
  expect(parts.map(({ name, type, bytes }) => [name, type, bytes.length])).toEqual([
    ["metadata", "application/json", expect.any(Number)],
    ["file", "image/png", 3 * MIB],
  ]);
  expect(JSON.parse(String(parts[0]?.bytes))).toEqual({
    idempotencyKey: "key",
    contentHash: "a".repeat(64),
    attributes: { mtime: "1.000000000" },
  });
  expect(parts[1]?.bytes.equals(Buffer.concat([block, block, block]))).toBe(true);
  expect(Number(length)).toBeGreaterThan(3 * MIB);
  expect(progress).toEqual([MIB, 2 * MIB, 3 * MIB]);
});

test("an empty file is uploaded and read", async () => {
  let file: Buffer | undefined;
  const client = await clientFor(async (request, response) => {
    if (request.method === "GET") response.writeHead(200, { etag: '"v1"', "content-length": 0 }).end();
    else {
      file = (await readMultipart(request))[1]?.bytes;
      answerJson(response, 201, exampleWritten());
    }
  });
  await client.upload("root", "a", textSource(""));
  expect(file?.length).toBe(0);
  const got = await client.getContent("n1");
  expect(got.size).toBe(0);
  expect((await collect(got.bytes)).length).toBe(0);
});

const BIG = 300;
/** How far memory may grow while `work` runs; garbage not yet collected counts. */
async function growthOf(work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 5);
  await work();
  clearInterval(timer);
  return (most - before) / MIB;
}

test("300 MiB go up and down whole and with flat memory", { timeout: 120_000 }, async () => {
  const expected = createHash("sha256");
  for (let index = 0; index < BIG; index += 1) expected.update(block);
  const digest = expected.digest("hex");
  let received = 0;
  const client = await clientFor(async (request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { etag: '"v1"', "content-length": BIG * MIB });
      for (let index = 0; index < BIG; index += 1) if (!response.write(block)) await once(response, "drain");
      response.end();
      return;
    }
    for await (const chunk of request) received += (chunk as Buffer).length;
    answerJson(response, 201, exampleWritten());
  });
  const up = await growthOf(async () => {
    await client.upload("root", "a", blocks(BIG));
  });
  expect(received).toBeGreaterThan(BIG * MIB);
  expect(up).toBeLessThan(150);
  const hash = createHash("sha256");
  const down = await growthOf(async () => {
    for await (const chunk of (await client.getContent("n1")).bytes) hash.update(chunk);
  });
  expect(hash.digest("hex")).toBe(digest);
  expect(down).toBeLessThan(150);
});

test("headers that come in many pieces are whole", async () => {
  const headers = [
    'etag: "version-one"',
    "content-type: application/octet-stream",
    "x-a: 1",
    "x-b: 2",
    "content-length: 5",
  ];
  const client = await clientFor(async ({ socket }) => {
    socket.setNoDelay();
    for (const piece of ["HTTP/1.1 200 OK", ...headers, "", "hello"]) {
      socket.write(piece === "hello" ? piece : `${piece}\r\n`);
      await delay(5);
    }
  });
  const { version, bytes } = await client.getContent("n1", { takesLoans: true });
  expect([version, (await collect(bytes)).toString()]).toEqual(["version-one", "hello"]);
});

test.each(["with", "without"])(
  "content comes whole over buffers that are used again, %s the reader's leave",
  async (leave) => {
    const content = randomBytes(8 * MIB);
    const client = await clientFor((_, response) => {
      response.writeHead(200, {
        "content-length": content.length,
        "content-type": "application/octet-stream",
        etag: '"v1"',
      });
      response.end(content);
    });
    const takesLoans = leave === "with";
    const chunks: Uint8Array[] = [];
    for (let round = 0; round < 2; round += 1) {
      const { bytes } = await client.getContent("n1", { version: "v1", takesLoans });
      for await (const chunk of bytes) {
        chunks.push(takesLoans ? Buffer.from(chunk) : chunk);
        // Some of the chunks come while nobody waits for them.
        if (chunks.length % 3 === 0) await delay(1);
      }
    }
    expect(Buffer.compare(Buffer.concat(chunks), Buffer.concat([content, content]))).toBe(0);
  },
);
