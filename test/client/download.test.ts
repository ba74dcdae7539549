import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { ContentOptions } from "../../src/client/client.ts";
import { createClient } from "../../src/client/create-client.ts";
import { staticToken } from "../../src/client/credentials.ts";
import { exampleNode } from "./support/examples.ts";
import { answerJson, clientFor, clientOf, collect, deferred, failureOf, serve } from "./support/server.ts";

const content = randomBytes(3_000_000);

/** A gateway that knows ranges. */
function ranged(request: IncomingMessage, response: ServerResponse): void {
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  const etag = '"v1"';
  if (match === null) {
    response.writeHead(200, { etag, "content-length": content.length }).end(content);
    return;
  }
  const start = Number(match[1]);
  const end = Math.min(Number(match[2]) + 1, content.length);
  if (start >= content.length) {
    response.writeHead(416, { etag, "content-range": `bytes */${content.length}` }).end();
    return;
  }
  const range = `bytes ${start}-${end - 1}/${content.length}`;
  response.writeHead(206, { etag, "content-range": range, "content-length": end - start });
  response.end(content.subarray(start, end));
}

test.each<[string, ContentOptions, number, number]>([
  ["whole", {}, 0, content.length],
  ["from the start", { range: { start: 0, end: 1 } }, 0, 1],
  ["from the middle", { range: { start: 1_000_000, end: 2_500_000 } }, 1_000_000, 2_500_000],
  ["beyond the end", { range: { start: 2_999_999, end: 9_000_000 } }, 2_999_999, 3_000_000],
])("content comes %s", async (_, options, start, end) => {
  const client = await clientFor(ranged);
  const got = await client.getContent("n1", options);
  expect(got).toMatchObject({ version: "v1", start, size: content.length });
  expect((await collect(got.bytes)).equals(content.subarray(start, end))).toBe(true);
});

test("a range behind the end has no bytes", async () => {
  const client = await clientFor(ranged);
  const got = await client.getContent("n1", { range: { start: 3_000_000, end: 3_000_001 } });
  expect(got).toMatchObject({ version: "v1", size: content.length });
  expect((await collect(got.bytes)).length).toBe(0);
});

test("a gateway that ignores the range says so by its start", async () => {
  const client = await clientFor((_, response) => response.writeHead(200, { etag: '"v1"' }).end("hello"));
  const failing = await failureOf(client.getContent("n1", { range: { start: 2, end: 3 } }));
  expect(failing.message).toContain("Content-Length");
  const whole = await clientFor((_, response) => {
    response.writeHead(200, { etag: '"v1"', "content-length": 5 }).end("hello");
  });
  const got = await whole.getContent("n1", { range: { start: 2, end: 3 } });
  expect(got).toMatchObject({ start: 0, size: 5 });
  expect(String(await collect(got.bytes))).toBe("hello");
});

test("what is asked for names version, range and no encoding", async () => {
  let seen: object = {};
  const client = await clientFor((request, response) => {
    seen = { url: request.url, ...request.headers };
    response.writeHead(206, { "content-range": "bytes 5-9/10" }).end("56789");
  });
  const got = await client.getContent("n/1", { version: "v 2", range: { start: 5, end: 10 } });
  expect(got.version).toBe("v 2");
  expect(String(await collect(got.bytes))).toBe("56789");
  expect(seen).toMatchObject({
    url: "/v1/nodes/n%2F1/content?version=v+2",
    range: "bytes=5-9",
    accept: "*/*",
    "accept-encoding": "identity",
  });
});

const asked = { start: 5, end: 10 };
test.each<[string, ContentOptions, number, Record<string, string>]>([
  ["no version", {}, 200, { "content-length": "5" }],
  ["an unquoted version", {}, 200, { "content-length": "5", etag: "v1" }],
  ["another version", { version: "v2" }, 200, { "content-length": "5", etag: '"v1"' }],
  ["no length", {}, 200, { etag: '"v1"' }],
  ["another encoding", {}, 200, { "content-length": "5", etag: '"v1"', "content-encoding": "gzip" }],
  ["a part nobody asked for", {}, 206, { "content-range": "bytes 0-4/5", etag: '"v1"' }],
  ["no Content-Range", { range: asked }, 206, { etag: '"v1"' }],
  ["an unreadable Content-Range", { range: asked }, 206, { "content-range": "bytes 5-9/*", etag: '"v1"' }],
  ["another start", { range: asked }, 206, { "content-range": "bytes 4-9/20", etag: '"v1"' }],
  ["a part of the part", { range: asked }, 206, { "content-range": "bytes 5-8/20", etag: '"v1"' }],
  ["more than the part", { range: asked }, 206, { "content-range": "bytes 5-10/20", etag: '"v1"' }],
  [
    "a length unlike its range",
    { range: asked },
    206,
    { "content-range": "bytes 5-9/20", "content-length": "4", etag: '"v1"' },
  ],
  ["a range not satisfied that is inside", { range: asked }, 416, { "content-range": "bytes */20", etag: '"v1"' }],
  ["no content", {}, 204, { etag: '"v1"' }],
])("an answer with %s is malformed", async (_, options, status, headers) => {
  const client = await clientFor((_request, response) => {
    response.writeHead(status, headers);
    response.end(status === 200 || status === 206 ? "x".repeat(Number(headers["content-length"] ?? 5)) : "");
  });
  expect(await failureOf(client.getContent("n1", options))).toMatchObject({ code: "malformed", details: { status } });
});

test("an error instead of content is the error it stands for", async () => {
  const client = await clientFor((_, response) => answerJson(response, 404, { title: "Gone" }));
  expect(await failureOf(client.getContent("n1"))).toMatchObject({ code: "notFound" });
});

test.each([
  [3, 3],
  [4, 3],
  [-1, 3],
  [0, 1.5],
])("range %d to %d is refused before anything is sent", async (start, end) => {
  const client = await clientFor(() => expect.unreachable("a request was sent"));
  const error = await failureOf(client.getContent("n1", { range: { start, end } }));
  expect(error).toMatchObject({ code: "invalid", details: { field: "range" } });
});

test.each<[string, (response: ServerResponse) => void]>([
  ["reset", (response) => response.socket?.resetAndDestroy()],
  ["closed", (response) => response.socket?.end()],
])("a connection %s inside the content fails the reader after the bytes that came", async (_, end) => {
  const mayEnd = deferred();
  const client = await clientFor(async (_request, response) => {
    response.writeHead(200, { etag: '"v1"', "content-length": 1_000_000 });
    response.write(content.subarray(0, 500_000));
    await mayEnd.promise;
    end(response);
  });
  const { bytes } = await client.getContent("n1");
  let read = 0;
  const error = await failureOf(
    (async () => {
      for await (const chunk of bytes) {
        read += chunk.length;
        if (read === 500_000) mayEnd.resolve();
      }
    })(),
  );
  expect(error.code).toBe("offline");
  expect(error.message).toContain("after 500000 of 1000000 bytes");
  expect(read).toBe(500_000);
});

test.each([
  ["read a little", 1],
  ["not read at all", 0],
])("content given up when %s closes its connection", async (_, chunks) => {
  const closed = deferred();
  const client = await clientFor((request, response) => {
    request.socket.once("close", () => closed.resolve());
    response.writeHead(200, { etag: '"v1"', "content-length": 100_000_000 });
    response.write(content);
  });
  const { bytes } = await client.getContent("n1");
  const iterator = bytes[Symbol.asyncIterator]();
  for (let count = 0; count < chunks; count += 1) await iterator.next();
  await iterator.return?.();
  await closed.promise;
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
});

test("an abort while content comes fails the reader", async () => {
  const controller = new AbortController();
  const client = await clientFor((_, response) => {
    response.writeHead(200, { etag: '"v1"', "content-length": 100_000_000 });
    response.write(content.subarray(0, 10));
  });
  const { bytes } = await client.getContent("n1", { signal: controller.signal });
  const reading = failureOf(collect(bytes));
  controller.abort();
  expect(await reading).toMatchObject({ code: "aborted" });
});

test("content of another transport that is short or long never passes for whole", async () => {
  for (const text of ["hell", "hello!"]) {
    const client = createClient({
      credentials: staticToken("t"),
      transport: {
        send: async () => ({
          status: 200,
          headers: { etag: '"v1"', "content-length": "5" },
          body: (async function* () {
            yield Buffer.from(text);
          })(),
        }),
        close: async () => {},
      },
    });
    const { bytes } = await client.getContent("n1");
    expect(await failureOf(collect(bytes))).toMatchObject({ code: "malformed" });
  }
});

test("connections are used again after content was read to its end", async () => {
  const server = await serve(ranged);
  const client = clientOf(server.baseUrl);
  for (let count = 0; count < 5; count += 1) await collect((await client.getContent("n1")).bytes);
  // A second one is opened when a call comes in the very turn in which the one before has ended.
  expect(server.connections()).toBeLessThanOrEqual(2);
});

test("calls do not wait behind content that is under way", async () => {
  const server = await serve((request, response) => {
    if (request.method === "POST") return; // Uploads never end.
    if (request.url?.endsWith("/content")) {
      response.writeHead(200, { etag: '"v1"', "content-length": 100_000_000 });
      response.write("x");
    } else answerJson(response, 200, exampleNode());
  });
  const client = clientOf(server.baseUrl, { connections: 2 });
  const endless = {
    size: 1_000_000_000,
    async *read() {
      for (;;) yield content;
    },
  };
  const controller = new AbortController();
  const { signal } = controller;
  const uploads = [1, 2, 3].map(() => failureOf(client.upload("root", "a", endless, { signal })));
  const downloads = await Promise.all([1, 2].map(() => client.getContent("n1", { signal })));
  expect((await client.getNode("n1")).id).toBe("n1");
  controller.abort();
  for (const upload of uploads) expect((await upload).code).toBe("aborted");
  for (const { bytes } of downloads) expect(await failureOf(collect(bytes))).toMatchObject({ code: "aborted" });
});
