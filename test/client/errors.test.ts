import { createServer } from "node:net";
import { expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { wallTime } from "../../src/lib/clocks.ts";
import { exampleNode, examplePage, textSource } from "./support/examples.ts";
import { answerJson, clientFor, clientOf, deferred, failureOf, serve } from "./support/server.ts";

test.each([
  [400, { title: "Bad", field: "name" }, {}, "invalid", { status: 400, field: "name" }],
  [401, { title: "No" }, {}, "unauthorized", { status: 401 }],
  [403, { title: "No", scope: "node.node.update" }, {}, "forbidden", { status: 403, scope: "node.node.update" }],
  [404, { title: "Gone" }, {}, "notFound", { status: 404 }],
  [410, { title: "Thinned" }, {}, "notFound", { status: 410 }],
  [409, { title: "Taken", node: exampleNode() }, {}, "conflict", { status: 409, node: exampleNode() }],
  [412, { title: "Changed", node: exampleNode() }, {}, "changed", { status: 412, node: exampleNode() }],
  [413, { title: "Big" }, {}, "tooLarge", { status: 413 }],
  [429, { title: "Slow" }, { "retry-after": "7" }, "throttled", { status: 429, retryAfterMs: 7000 }],
  [429, { title: "Slow" }, {}, "throttled", { status: 429 }],
  [500, { title: "Oops" }, {}, "server", { status: 500 }],
  [503, { title: "Later" }, { "retry-after": "2" }, "server", { status: 503, retryAfterMs: 2000 }],
  [302, {}, { location: "http://elsewhere.invalid/" }, "malformed", { status: 302 }],
  [418, { title: "Tea" }, {}, "malformed", { status: 418 }],
])("status %i (%j) becomes the error it stands for", async (status, problem, headers, code, details) => {
  const client = await clientFor((_, response) =>
    answerJson(response, status, problem, headers as Record<string, string>),
  );
  const error = await failureOf(client.patchNode("n1", { name: "b" }));
  expect(error.code).toBe(code);
  expect(error.details).toEqual({ operation: "patchNode", ...details });
  const { field, scope, node, retryAfterMs } = error;
  expect({ status: error.status, field, scope, node, retryAfterMs }).toEqual(details);
  expect(error.message).toContain(`patchNode: ${status}`);
});

test("a write that is done and may not be told of is no success: with a better token it is asked for again", async () => {
  const client = await clientFor((_, response) => answerJson(response, 200, { id: "n1", revision: 2, position: 9 }));
  const error = await failureOf(client.patchNode("n1", { name: "b" }));
  expect([error.code, error.isTransient, error.isAmbiguous]).toEqual(["malformed", true, true]);
  expect(error.message).toBe(
    "patchNode: the write is done, but the token lacks the scope node.file.read to see the result",
  );
});

test("Retry-After may be a date", async () => {
  const at = Date.parse("2026-05-06T07:08:09Z");
  const client = await clientFor(
    (_, response) => {
      // A gateway that does not tell its clock: ours stands for it.
      response.sendDate = false;
      answerJson(response, 429, {}, { "retry-after": "Wed, 06 May 2026 07:08:39 GMT" });
    },
    { now: () => wallTime(at) },
  );
  expect((await failureOf(client.getNode("n1"))).details.retryAfterMs).toBe(30_000);
});

test("of a gateway whose clock differs, a date in Retry-After is read by that clock", async () => {
  const at = Date.parse("2026-05-06T07:08:09Z");
  const headers = { "retry-after": "Wed, 06 May 2026 10:00:30 GMT", date: "Wed, 06 May 2026 10:00:00 GMT" };
  const client = await clientFor((_, response) => answerJson(response, 503, {}, headers), { now: () => wallTime(at) });
  expect((await failureOf(client.getNode("n1"))).details.retryAfterMs).toBe(30_000);
});

test.each([["-5"], ["soon"], ["Wed, 06 May 2020 07:08:39 GMT"]])(
  "Retry-After %j never becomes a negative or unknown time",
  async (value) => {
    const client = await clientFor((_, response) => answerJson(response, 429, {}, { "retry-after": value }));
    const { retryAfterMs = 0 } = (await failureOf(client.getNode("n1"))).details;
    expect(retryAfterMs).toBe(0);
  },
);

test.each([
  ["no JSON", "<html>Bad gateway</html>"],
  ["another type", "[1]"],
  ["wrong fields", JSON.stringify({ title: 1, field: {}, scope: [], node: { id: 1 } })],
])("a problem document that is %s still becomes an error by its status", async (_, body) => {
  const client = await clientFor((_request, response) => response.writeHead(403).end(body));
  const error = await failureOf(client.getNode("n1"));
  expect(error.code).toBe("forbidden");
  expect(error.details).toEqual({ status: 403, operation: "getNode" });
});

test.each([
  ["no JSON", "<html>", "not JSON"],
  ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22]), "not JSON"],
  ["another shape", JSON.stringify({ ...exampleNode(), size: "5" }), "size: "],
  ["a missing field", JSON.stringify({ id: "n1" }), "kind: "],
  ["nothing", "", "not JSON"],
])("an answer that is %s is malformed and says where", async (_, body, where) => {
  const client = await clientFor((_request, response) => response.writeHead(200).end(body));
  const error = await failureOf(client.getNode("n1"));
  expect(error.code).toBe("malformed");
  expect(error.message).toContain(where);
});

test("what is wrong inside a page is named by its place", async () => {
  const page = examplePage([exampleNode(), { ...exampleNode(), head: 5 }]);
  const client = await clientFor((_, response) => answerJson(response, 200, page));
  const error = await failureOf(client.listFolder("root"));
  expect(error.message).toContain("items.1.head: ");
});

/** An answer with an id, of the given status and body. */
type Told = readonly [status: number, body: string | undefined, headers?: Record<string, string>];

test.each<[name: string, told: Told, call: (client: Client) => Promise<unknown>]>([
  ["a refusal", [404, "{}"], (client) => client.getNode("n1")],
  ["a token that is refused", [401, "{}"], (client) => client.getNode("n1")],
  ["what is no JSON", [200, "<html>"], (client) => client.getNode("n1")],
  ["another node", [200, JSON.stringify(exampleNode({ id: "n2" }))], (client) => client.getNode("n1")],
  ["another folder", [200, JSON.stringify(examplePage([exampleNode()]))], (client) => client.listFolder("n9")],
  ["JSON that breaks off", [200, undefined, { "content-length": "99" }], (client) => client.getNode("n1")],
  ["content without a version", [200, "abc"], (client) => client.getContent("n1")],
  [
    "content that breaks off",
    [200, undefined, { "content-length": "99", etag: '"v1"' }],
    async (client) => {
      for await (const _ of (await client.getContent("n1")).bytes);
    },
  ],
  ["a stream that is none", [200, "{}"], (client) => client.streamJournal(0).next()],
])("an error says what the gateway calls the request: of %s", async (_, [status, body, headers], call) => {
  const client = await clientFor((_request, response) => {
    response.writeHead(status, { "x-request-id": "r-17", ...headers });
    if (body !== undefined) response.end(body);
    else response.write("{", () => response.socket?.resetAndDestroy());
  });
  expect(await failureOf(call(client))).toMatchObject({ requestId: "r-17" });
});

test("an id of a request that holds the token is shown without it", async () => {
  const client = await clientFor((_, response) => {
    response.writeHead(500, { "request-id": "r secret-token" }).end();
  });
  expect(await failureOf(client.getNode("n1"))).toMatchObject({ requestId: "r [token]" });
});

test("nobody listening is offline", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  const error = await failureOf(clientOf(`http://127.0.0.1:${address.port}`).getNode("n1"));
  // Nothing was sent: it is worth another try, and certainly had no effect.
  expect(error).toMatchObject({ code: "offline", isTransient: true, isAmbiguous: false });
  expect(error.message).toContain("ECONNREFUSED");
});

test("a connection that ends before the answer is offline", async () => {
  const client = await clientFor((request) => request.socket.resetAndDestroy());
  const error = await failureOf(client.deleteNode("n1"));
  expect(error).toMatchObject({ code: "offline", isTransient: true, isAmbiguous: true });
});

test("a lost answer to an upload is offline", async () => {
  const client = await clientFor((request) => {
    request.resume();
    request.on("end", () => request.socket.destroy());
  });
  expect(await failureOf(client.upload("root", "a", textSource("hello")))).toMatchObject({ code: "offline" });
});

test("a connection that ends inside a JSON answer is offline", async () => {
  const client = await clientFor((_, response) => {
    response.writeHead(200, { "content-length": 1000 });
    response.write('{"id":');
    setImmediate(() => response.socket?.resetAndDestroy());
  });
  expect(await failureOf(client.getNode("n1"))).toMatchObject({ code: "offline" });
});

test("an answer that is not HTTP is malformed", async () => {
  const client = await clientFor((request) => request.socket.end("hello\r\n\r\n"));
  expect(await failureOf(client.getNode("n1"))).toMatchObject({ code: "malformed" });
});

test("a call aborted before it begins sends nothing", async () => {
  const client = await clientFor(() => expect.unreachable("a request was sent"));
  const error = await failureOf(client.getNode("n1", { signal: AbortSignal.abort() }));
  expect(error).toMatchObject({ code: "aborted", isTransient: false, isAmbiguous: false });
});

test("a call aborted while it waits ends at once", async () => {
  const controller = new AbortController();
  const client = await clientFor(() => controller.abort());
  const error = await failureOf(client.getNode("n1", { signal: controller.signal }));
  expect(error).toMatchObject({ code: "aborted", isTransient: false, isAmbiguous: true });
});

test("closing the client aborts what is under way and refuses what comes after", async () => {
  const arrived = deferred();
  const client = await clientFor(() => arrived.resolve());
  const failure = failureOf(client.getNode("n1"));
  await arrived.promise;
  await client.close();
  expect(await failure).toMatchObject({ code: "aborted" });
  expect(await failureOf(client.getNode("n1"))).toMatchObject({ code: "aborted" });
});

test("aborted calls that wait for a connection leave the connection to the others", async () => {
  const arrived = deferred();
  const mayAnswer = deferred();
  const server = await serve(async (_, response) => {
    arrived.resolve();
    await mayAnswer.promise;
    answerJson(response, 200, exampleNode());
  });
  const client = clientOf(server.baseUrl, { connections: 1 });
  const first = client.getNode("n1");
  await arrived.promise;
  const controller = new AbortController();
  const waiting = Array.from({ length: 5 }, () => failureOf(client.getNode("n1", { signal: controller.signal })));
  const last = client.getNode("n1");
  // By now they have their token and stand in the queue.
  await new Promise(setImmediate);
  controller.abort();
  for (const error of await Promise.all(waiting)) expect(error.code).toBe("aborted");
  mayAnswer.resolve();
  await first;
  expect((await last).id).toBe("n1");
  expect(server.connections()).toBe(1);
});

test("a base URL that is none is refused in words, without its password", () => {
  expect(() => clientOf("gateway:80")).toThrow('expected http(s)://host[:port][/prefix], got "gateway:80"');
  expect(() => clientOf("https://me:hunter2@host/")).toThrow(/^(?!.*hunter2).*without user/);
});
