/** What a client must not be able to do: name what is no name, reach the disk, guess, fill, hold, or act in the gateway's origin. */
import { chmod, readdir, readFile, stat } from "node:fs/promises";
import { connect } from "node:net";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { problem } from "../../src/contract/resources.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { SILENT } from "../../src/lib/log.ts";
import { createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { sendRaw, serveCore } from "./support/gateway-http.ts";

const PATIENCE = { timeout: 50_000, interval: 20 };
/** Of tests that wait until the gateway has waited; all others never come near the real limits. */
const SHORT = { headersMs: 300, bodyMs: 300 };

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

const multipart = (content: string) =>
  `--B\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n${content}\r\n--B--\r\n`;

function requestText(method: string, path: string, token: string, body = "", headers: readonly string[] = []): string {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${token}`,
    "Connection: close",
    ...(body === "" ? [] : ["Content-Type: multipart/form-data; boundary=B", `Content-Length: ${body.length}`]),
    ...headers,
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

const kept = (text: string) => text.replace("Connection: close", "Connection: keep-alive");

function answerOf(text: string) {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  return { status: Number(head.slice(9, 12)), head, document: problem.parse(JSON.parse(body)) };
}

describe("names", () => {
  const BAD = [
    ...[
      "a//b",
      "a/",
      "a/./b",
      "a/../b",
      "..",
      ".",
      "%2e%2e",
      "a/%2E%2e/b",
      "..%2f..%2fetc%2fpasswd",
      "a%2F%2fb",
      "a%2F",
    ],
    ...["a%00b", "%00", "%", "%Z1", "%2", "%FF", "%C0%AF", "%C0%80", "%E0%80%AF", "%ED%A0%80", "%F4%90%80%80"],
    ...["x".repeat(256), `a/${"%C3%A4".repeat(128)}`],
  ];

  test.each(BAD)("%s is none in a path: not uploaded, not looked up", async (path) => {
    const { port } = await serveCore(core);
    for (const text of [
      requestText("POST", `/v1/files/${path}`, core.token(), multipart("x")),
      requestText("GET", `/v1/files/${path}`, core.token()),
      requestText("GET", `/v1/nodes?path=/${path}`, core.token()),
    ]) {
      const { status, document } = answerOf(await sendRaw(port, text));
      expect([text.slice(0, 60), status, document.field]).toEqual([text.slice(0, 60), 400, "path"]);
    }
    expect(await core.names("/")).toEqual([]);
  });

  test.each(["", ".", "..", "a/b", "a\0b", "\ud800", "ä".repeat(128)])("%j is none in a body", async (name) => {
    const file = await core.file("/f", "x");
    const root = core.workspace.root;
    for (const answer of [
      await core.call("POST", "/v1/nodes", { json: { parentId: root, name, kind: "folder" } }),
      await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { name } }),
      await core.call("GET", "/v1/nodes", { query: { parentId: root, name } }),
    ]) {
      expect([answer.status, answer.json.field]).toEqual([400, "name"]);
    }
    expect(await core.names("/")).toEqual(["f"]);
  });

  test("of Unicode are kept as they are: composed and decomposed are two", async () => {
    const names = [
      "\u00e4",
      "a\u0308",
      "\u212b",
      "\u00c5",
      "\ufb01",
      "fi",
      "e\u0301\u0327",
      " ",
      "a\u200db",
      "\u{1f600}",
      "-",
      "~",
      "a\nb",
      "\\",
      "con",
      "...",
    ];
    for (const name of names) {
      const node = await core.file(`/${encodeURIComponent(name)}`, name);
      expect(node.name).toBe(name);
      expect(node.path).toBe(`/${name}`);
    }
    expect((await core.names("/")).toSorted()).toEqual(names.toSorted());
    for (const name of names) {
      const found = await core.call("GET", `/v1/files/${encodeURIComponent(name)}`);
      expect([name, (await core.call("GET", `/v1/nodes/${found.json.id}/content`)).bytes.toString()]).toEqual([
        name,
        name,
      ]);
    }
    const longest = "ä".repeat(127);
    expect((await core.file(`/${encodeURIComponent(`${longest}x`)}`, "")).name).toBe(`${longest}x`);
  });
});

test("no name of a client is one on the disk", async () => {
  const dataDir = await temporaryFolder();
  const gateway = await startGateway({ dataDir });
  onTestFinished(() => gateway.close());
  const authorization = `Bearer ${await gateway.issueToken({ workspace: "workspace" })}`;
  for (const name of ["gateway.db", "signing-key", "unfinished", "00", "a~b", "-rf", "NAME-OF-A-CLIENT"]) {
    const body = new FormData();
    body.set("file", new Blob(["x".repeat(40_000)]), "../NAME-OF-A-CLIENT");
    body.set("metadata", JSON.stringify({ idempotencyKey: `../${name}` }));
    const answer = await fetch(`${gateway.baseUrl}/v1/files/${name}/${name}`, {
      method: "POST",
      body,
      headers: { authorization },
    });
    expect(answer.status).toBe(201);
  }
  const known =
    /^(gateway\.db|lock\.db|hold\.db|accounts\.db)(-wal|-shm|-journal)?$|^signing-key$|^executions(\/(work|logs))?$|^blobs(\/(unfinished|[0-9a-f]{2}))?(\/[0-9a-f-]{36})?$/;
  const found = await readdir(dataDir, { recursive: true });
  expect(found.filter((name) => !known.test(name))).toEqual([]);
  expect(found.filter((name) => /-\w+-\w+-\w+-/.test(name)).length).toBe(7);
});

test("ids are random: nobody can guess one from others", async () => {
  const gateway = await startGateway({ dataDir: await temporaryFolder() });
  onTestFinished(() => gateway.close());
  const authorization = `Bearer ${await gateway.issueToken({ workspace: "workspace" })}`;
  const ids: string[] = [];
  for (let index = 0; index < 100; index++) {
    const body = new FormData();
    body.set("file", new Blob(["x"]));
    const answer = await fetch(`${gateway.baseUrl}/v1/files/${index}`, {
      method: "POST",
      body,
      headers: { authorization },
    });
    const node = JSON.parse(await answer.text());
    ids.push(node.id, node.head);
  }
  expect(new Set(ids).size).toBe(200);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  // A random bit is the same in all of them once in 2^199 times; the clock's bits are not counted.
  const bits = ids.map((id) => BigInt(`0x${id.replaceAll("-", "")}`) & ((1n << 80n) - 1n));
  const changing = bits.reduce((seen, value) => seen | (value ^ (bits[0] ?? 0n)), 0n);
  expect([...changing.toString(2)].filter((bit) => bit === "1").length).toBeGreaterThanOrEqual(74);
});

test("content is shown by a browser without scripts, forms, or another type", async () => {
  const { baseUrl } = await serveCore(core);
  const headers = { authorization: `Bearer ${core.token()}` };
  for (const [name, type] of [
    ["page", "text/html"],
    ["picture", "image/svg+xml"],
    ["script", "text/javascript"],
  ] as const) {
    const node = await core.file(`/${name}`, "<script>fetch('/v1/nodes')</script>", { contentType: type });
    for (const range of [{}, { range: "bytes=0-4" }]) {
      const answer = await fetch(`${baseUrl}/v1/nodes/${node.id}/content`, { headers: { ...headers, ...range } });
      expect(answer.headers.get("content-type")).toBe(type);
      expect(answer.headers.get("content-security-policy")).toBe("sandbox");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      await answer.arrayBuffer();
    }
  }
});

test("it listens on 127.0.0.1 alone, unless told", async () => {
  const gateway = await startGateway({ dataDir: await temporaryFolder() });
  onTestFinished(() => gateway.close());
  const port = gateway.port.toString(16).toUpperCase().padStart(4, "0");
  const listening = async (table: string) =>
    (await readFile(table, "utf8"))
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local = "", , state]) => local.endsWith(`:${port}`) && state === "0A")
      .map(([, local]) => local);
  expect(await listening("/proc/net/tcp")).toEqual([`0100007F:${port}`]);
  expect(await listening("/proc/net/tcp6").catch(() => [])).toEqual([]);
  expect(gateway.baseUrl).toBe(`http://127.0.0.1:${gateway.port}`);
});

test("a signing key others could read is closed to them at the next start", async () => {
  const dataDir = await temporaryFolder();
  await (await startGateway({ dataDir })).close();
  await chmod(dataDir, 0o755);
  await chmod(`${dataDir}/signing-key`, 0o644);
  const gateway = await startGateway({ dataDir });
  onTestFinished(() => gateway.close());
  const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
  expect([await mode(dataDir), await mode(`${dataDir}/signing-key`)]).toEqual(["700", "600"]);
});

describe("sizes", () => {
  test("an upload that says it is too large is refused before it is received", async () => {
    core = createTestCore({ maxFileBytes: 50_000 });
    const { port } = await serveCore(core);
    const text = requestText("POST", "/v1/files/x", core.token(), "", [
      "Content-Type: multipart/form-data; boundary=B",
      "Content-Length: 1000000000000",
    ]);
    const { status, document } = answerOf(await sendRaw(port, text));
    expect([status, document.field]).toEqual([413, "file"]);
  });

  test("JSON that is nested too deeply, and text that is not UTF-8, are refused", async () => {
    const { baseUrl } = await serveCore(core);
    const file = await core.file("/f", "x");
    const send = async (body: string | Uint8Array<ArrayBuffer>) => {
      const answer = await fetch(`${baseUrl}/v1/nodes/${file.id}`, {
        method: "PATCH",
        body,
        headers: { authorization: `Bearer ${core.token()}`, "content-type": "application/json" },
      });
      return { status: answer.status, field: problem.safeParse(await answer.json()).data?.field };
    };
    const nested = (depth: number) => `{"attributes":{"x":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}}`;
    expect(await send(nested(50))).toMatchObject({ status: 200 });
    for (const depth of [99, 150_000]) expect(await send(nested(depth))).toEqual({ status: 400, field: "body" });
    // Brackets within text do not count.
    expect(await send(JSON.stringify({ attributes: { x: '[{"\\'.repeat(500) } }))).toMatchObject({ status: 200 });
    const latin1 = Buffer.from('{"name":"\xe4"}', "latin1");
    expect(await send(new Uint8Array(latin1))).toEqual({ status: 400, field: "body" });
    const body = uploadBody(
      part("file", "x"),
      part("metadata", `{"attributes":{"x":${"[".repeat(200)}${"]".repeat(200)}}}`),
    );
    expect((await core.call("POST", "/v1/files/g", { body })).json.field).toBe("metadata");
  });

  test("JSON that names a key of an object twice is refused, whatever its values look like", async () => {
    const metadata = async (text: string) => {
      const body = uploadBody(part("file", "x"), part("metadata", text));
      const { status, json } = await core.call("POST", "/v1/files/f", { body });
      return status < 300 ? status : json.field;
    };
    const twice = [
      '{"branch":"a","branch":"main"}',
      '{"branch":null,"br\\u0061nch":"main"}',
      '{"attributes":{"x":[{"a":1},{"b":{"c":1,"c":1}}]}}',
      '{"__proto__":1,"__proto__":1}',
    ];
    for (const text of twice) expect([text, await metadata(text)]).toEqual([text, "metadata"]);
    const once = [
      '{"attributes":{"x":[{"a":":"},{"a":"\\"a\\":1,\\"a\\":"},{"a":{"a":{}}}],"y:":{":":[]}}}',
      '{ "branch" : "main" }',
    ];
    for (const text of once) expect([text, (await metadata(text)) ?? ""]).toEqual([text, expect.any(Number)]);
  });

  test("a body cannot reach the prototypes of the gateway's objects", async () => {
    const file = await core.file("/f", "x");
    const json = JSON.parse('{"attributes":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}');
    await core.call("PATCH", `/v1/nodes/${file.id}`, { json });
    expect("polluted" in {}).toBe(false);
    expect(
      (await core.call("PATCH", `/v1/nodes/${file.id}`, { json: JSON.parse('{"__proto__":{"name":"g"}}') })).status,
    ).toBe(400);
  });

  test("what is no HTTP, and headers that never end, get a problem document", async () => {
    const { port } = await serveCore(core);
    const garbage = answerOf(await sendRaw(port, "GARBAGE\r\n\r\n"));
    expect([garbage.status, garbage.document.status]).toEqual([400, 400]);
    const long = answerOf(
      await sendRaw(port, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(100_000)}\r\n\r\n`),
    );
    expect([long.status, long.document.status]).toEqual([431, 431]);
  });

  test("what is no HTTP is not read without end, though an answer before it goes on for ever", async () => {
    const { port, baseUrl } = await serveCore(core);
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk;
    });
    socket.write(kept(requestText("GET", "/v1/journal/stream", core.token())));
    await vi.waitUntil(() => received.startsWith("HTTP/1.1 200"), PATIENCE);
    const garbage = Buffer.alloc(2 ** 20, "no request\r\n\r\n");
    let taken = 0;
    let isWriting = true;
    const write = () =>
      socket.write(garbage, () => {
        taken += 1;
        if (isWriting) write();
      });
    write();
    // The gateway looks at all its connections with each of these.
    for (let idle = 0; idle < 100 && taken < 50; idle += 1) {
      const before = taken;
      await (await fetch(`${baseUrl}/v1/none`)).arrayBuffer();
      if (taken > before) idle = 0;
    }
    isWriting = false;
    // What the sockets hold, and a little more.
    expect(taken).toBeLessThan(50);
    await core.file("/told", "x");
    await vi.waitUntil(() => received.includes("told"), PATIENCE);
    core.gateway.endStreams();
    await vi.waitUntil(() => socket.closed, PATIENCE);
  });
});

describe("silence", () => {
  test("within the headers ends the connection with 408", async () => {
    const { port } = await serveCore(core, { silence: { ...SHORT, bodyMs: 60_000 } });
    const answer = answerOf(await sendRaw(port, "GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nAutho"));
    expect([answer.status, answer.document.status]).toEqual([408, 408]);
  });

  test("within a body ends the connection, and nothing of it is left", async () => {
    const { port } = await serveCore(core, { silence: SHORT });
    const whole = requestText("POST", "/v1/files/a/x", core.token(), multipart("x".repeat(100_000)));
    await sendRaw(port, whole.slice(0, -50_000));
    await vi.waitUntil(() => core.blobs.contents.size === 0, PATIENCE);
    expect(await core.names("/")).toEqual([]);
    const json = requestText("POST", "/v1/nodes", core.token(), "", [
      "Content-Type: application/json",
      "Content-Length: 9",
    ]);
    await sendRaw(port, `${json}{"a`);
  });

  /** More than the limit has gone by when one that began then was broken. */
  async function pass(port: number, { token }: TestCore) {
    for (let round = 0; round < 2; round += 1) {
      const whole = requestText("POST", "/v1/files/never", token(), multipart("x"));
      await sendRaw(port, whole.slice(0, -5));
    }
  }

  test("of the gateway itself is no reason to end a connection", async () => {
    const isNone = async (begin: (its: TestCore) => string) => {
      const its = createTestCore();
      // Longer than a busy machine may stop both ends, which are one process here.
      const { port } = await serveCore(its, { silence: { headersMs: 1500, bodyMs: 1500 } });
      its.gateway.setOptions({ latencyMs: 3600_000 });
      const answer = sendRaw(port, begin(its));
      // Half of it is before the effect, half after it.
      for (let half = 0; half < 2; half += 1) {
        await vi.waitUntil(() => its.clock.nextTimer() !== undefined, PATIENCE);
        its.gateway.setOptions({ latencyMs: 0 });
        await pass(port, its);
        await its.clock.advance(1800_000);
      }
      expect((await answer).slice(9, 11)).toBe("20");
    };
    // Each with a gateway of its own, as both wait for the limits.
    await Promise.all([
      isNone((its) => requestText("GET", "/v1/nodes", its.token())),
      // More than the sockets and streams on its way hold: the rest waits at the client.
      isNone((its) => requestText("POST", "/v1/files/f", its.token(), multipart("x".repeat(20_000_000)))),
    ]);
  });

  test("behind a request that waits for the gateway does not end the connection: that one is answered, and first", async () => {
    const { port } = await serveCore(core, { silence: { headersMs: 1500, bodyMs: 1500 } });
    const rests: readonly (readonly [text: string, ...after: string[]])[] = [
      [requestText("POST", "/v1/files/f", core.token(), multipart("x")).slice(0, -5)],
      ["GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nAutho", "408"],
      ["nonsense\r\n\r\nmore nonsense\r\n\r\n", "400"],
    ];
    core.gateway.setOptions({ latencyMs: 3600_000 });
    const asked = vi.spyOn(core.gateway, "handle");
    const first = kept(requestText("GET", "/v1/nodes", core.token()));
    const answers = rests.map(([rest]) => sendRaw(port, first, rest));
    // The half body's request has begun, too.
    await vi.waitUntil(() => asked.mock.calls.length === 4, PATIENCE);
    core.gateway.setOptions({ latencyMs: 0 });
    for (let half = 0; half < 2; half += 1) {
      await vi.waitUntil(() => core.clock.nextTimer() !== undefined, PATIENCE);
      await pass(port, core);
      await core.clock.advance(1800_000);
    }
    const statuses = (await Promise.all(answers)).map((text) => text.match(/(?<=HTTP\/1.1 )\d+/g));
    expect(statuses).toEqual(rests.map(([, ...after]) => ["200", ...after]));
  });

  test("between requests ends the connection", async () => {
    const { port } = await serveCore(core, { silence: { ...SHORT, keepAliveMs: 300 } });
    expect((await sendRaw(port, kept(requestText("GET", "/v1/nodes", core.token())))).slice(9, 12)).toBe("200");
  });

  test("of one who does not read ends the answer", async () => {
    const node = await core.file("/large", Buffer.alloc(64 * 2 ** 20));
    const done: object[] = [];
    const log = { ...SILENT, info: (fields: object) => void done.push(fields) };
    const { port } = await serveCore(core, { silence: SHORT, log });
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    socket.pause();
    socket.write(requestText("GET", `/v1/nodes/${node.id}/content`, core.token()));
    await vi.waitUntil(() => done.length === 1, PATIENCE);
    expect(done).toMatchObject([{ status: 200, broken: true, bytes: expect.any(Number) }]);
    // What the sockets hold, not all of it.
    expect(Object(done[0]).bytes).toBeLessThan(64 * 2 ** 20);
  });
});
