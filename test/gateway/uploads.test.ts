import { createHash } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";

const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

test("an upload answers the node, makes its parents and journals each", async () => {
  const answer = await core.upload("/v1/files/a/b/c.txt", "hello", { contentType: "text/x-own; charset=latin1" });
  expect(answer.status).toBe(201);
  expect(answer.json).toMatchObject({
    kind: "file",
    path: "/a/b/c.txt",
    name: "c.txt",
    size: 5,
    mimeType: "text/x-own; charset=latin1",
    contentHash: sha256("hello"),
    lastKey: null,
    revision: 1,
    attributes: {},
  });
  expect(await core.names("/a")).toEqual(["b"]);
  const journal = await core.call("GET", "/v1/journal");
  expect(journal.json.items.map((entry: { kind: string; name: string }) => [entry.kind, entry.name])).toEqual([
    ["created", ""],
    ["created", "a"],
    ["created", "b"],
    ["created", "c.txt"],
  ]);
  expect(journal.json.asOf).toBe(answer.json.position);
});

test("the parts come in either order, and small and large contents come back", async () => {
  for (const size of [0, 1, 32 * 1024, 32 * 1024 + 1, 3_000_000]) {
    const content = Buffer.alloc(size, "0123456789abcdef\n");
    for (const metadataLast of [false, true]) {
      const node = await core.file(`/${size}-${metadataLast}`, content, {
        metadata: { contentHash: sha256(content), attributes: { mode: 0o600 } },
        metadataLast,
      });
      expect(node.attributes).toEqual({ mode: 0o600 });
      const read = await core.call("GET", `/v1/nodes/${node.id}/content`);
      expect(read.headers["content-length"]).toBe(String(size));
      expect(read.headers.etag).toBe(`"${node.head}"`);
      expect(read.bytes.equals(content)).toBe(true);
    }
  }
});

test("a type that says nothing is sniffed", async () => {
  const png = Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489", "hex");
  expect((await core.file("/png", png)).mimeType).toBe("image/png");
  expect((await core.file("/png2", png, { contentType: "application/octet-stream" })).mimeType).toBe("image/png");
  for (const none of ["", "png", "a/b/c", "text/plain\u00e4", "text/plain; x=\r\ny: z"]) {
    expect([none, (await core.file("/none", png, { contentType: none })).mimeType]).toEqual([none, "image/png"]);
  }
  expect((await core.file("/text", "plain words")).mimeType).toBe("text/plain");
  expect((await core.file("/cut", "x".repeat(4095) + "ä".repeat(20))).mimeType).toBe("text/plain");
  expect((await core.file("/bytes", Buffer.from([1, 0x80, 2, 0]))).mimeType).toBe("application/octet-stream");
});

test("content that has another hash than said is refused and not kept", async () => {
  for (const content of ["small", Buffer.alloc(100_000)]) {
    const answer = await core.upload("/v1/files/a/x", content, { metadata: { contentHash: sha256("else") } });
    expect([answer.status, answer.json.field]).toEqual([400, "contentHash"]);
  }
  expect(core.blobs.contents.size).toBe(0);
  expect(await core.names("/")).toEqual([]);
});

test("bad bodies are refused by field and leave nothing", async () => {
  const large = Buffer.alloc(100_000);
  const cases: [string, ReturnType<typeof uploadBody> | { kind: "other"; contentType: string } | undefined][] = [
    ["file", { kind: "other", contentType: "application/octet-stream" }],
    ["file", undefined],
    ["file", uploadBody(part("metadata", "{}"))],
    ["file", uploadBody(part("file", large), part("file", large))],
    ["extra", uploadBody(part("file", large), part("extra", "1"))],
    ["metadata", uploadBody(part("file", large), part("metadata", "{nope"))],
    ["metadata", uploadBody(part("file", large), part("metadata", "[]"))],
    ["metadata", uploadBody(part("metadata", "{}"), part("metadata", "{}"), part("file", large))],
    ["contenthash", uploadBody(part("file", large), part("metadata", '{"contenthash":null}'))],
    ["contentHash", uploadBody(part("file", large), part("metadata", '{"contentHash":"ABC"}'))],
    ["idempotencyKey", uploadBody(part("file", large), part("metadata", '{"idempotencyKey":7}'))],
    ["branch", uploadBody(part("file", large), part("metadata", '{"branch":1}'))],
    ["attributes.mode", uploadBody(part("file", large), part("metadata", '{"attributes":{"mode":"rw"}}'))],
  ];
  for (const [field, body] of cases) {
    const answer = await core.call("POST", "/v1/files/new/x", body === undefined ? {} : { body });
    expect([answer.status, answer.json.field]).toEqual([400, field]);
    expect(answer.headers["content-type"]).toBe("application/problem+json");
  }
  expect(core.blobs.contents.size).toBe(0);
  expect(await core.names("/")).toEqual([]);
});

test("names that are no names are refused", async () => {
  for (const path of ["a//b", "a/../b", ".", "a/%2F", "%00", "a/%FF", "x".repeat(256), ""]) {
    const answer = await core.upload(`/v1/files/${path}`, "x");
    expect([path, answer.status, answer.json.field]).toEqual([path, 400, "path"]);
  }
  expect((await core.file(`/${"x".repeat(255)}`, "x")).name.length).toBe(255);
  expect((await core.file(`/${encodeURIComponent("ä %?")}`, "x")).name).toBe("ä %?");
});

test('"%2F" separates the names of a path as "/" does, for those who encode a path whole', async () => {
  const made = await core.upload("/v1/files/gen%2Fsub%2fb%20%252F.txt", "x");
  expect([made.status, made.json.path]).toEqual([201, "/gen/sub/b %2F.txt"]);
  for (const path of ["gen%2Fsub/b%20%252F.txt", "%2fgen%2Fsub%2Fb%20%252F.txt"]) {
    const found = await core.call("GET", `/v1/files/${path}`);
    expect([path, found.status, found.json.id]).toEqual([path, 200, made.json.id]);
  }
  expect((await core.call("GET", "/v1/files/%2F")).json.path).toBe("/");
  expect((await core.upload("/v1/files/%2F", "x")).json.field).toBe("path");
});

test("content over the limit is refused with 413", async () => {
  core = createTestCore({ maxFileBytes: 50_000 });
  expect((await core.upload("/v1/files/x", Buffer.alloc(50_001))).status).toBe(413);
  expect(core.blobs.contents.size).toBe(0);
  expect((await core.upload("/v1/files/x", Buffer.alloc(50_000))).status).toBe(201);
});

test("an upload over a file is a new version; If-None-Match forbids it and shows the node", async () => {
  const first = await core.file("/f", "one", { metadata: { attributes: { mode: 0o640, mtime: "5.000000001" } } });
  await core.clock.advance(10);
  const second = await core.upload("/v1/files/f", "two");
  expect(second.status).toBe(200);
  expect(second.json).toMatchObject({ id: first.id, revision: 2, size: 3, attributes: { mode: 0o640 } });
  // The mtime belonged to the first version.
  expect(second.json.attributes.mtime).toBeUndefined();
  expect(Date.parse(second.json.modifiedAt) - Date.parse(first.modifiedAt)).toBe(10);

  const refused = await core.upload("/v1/files/f", "three", { headers: { "if-none-match": "*" } });
  expect(refused.status).toBe(412);
  expect(refused.json.node).toMatchObject({ id: first.id, revision: 2 });
  const old = await core.call("GET", `/v1/nodes/${first.id}/content`, { query: { version: String(first.head) } });
  expect(old.bytes.toString()).toBe("one");
});

test("below a known folder a path begins there", async () => {
  const folder = await core.folder(core.workspace.root, "docs");
  const node = await core.file("/x/y", "z", { query: { parentId: folder.id } });
  expect(node.path).toBe("/docs/x/y");
  const file = await core.file("/f", "");
  expect((await core.upload("/v1/files/g", "", { query: { parentId: file.id } })).json.field).toBe("parentId");
  expect((await core.upload("/v1/files/f/g", "")).status).toBe(409);
  expect((await core.upload("/v1/files/docs", "")).status).toBe(409);
  expect((await core.upload("/v1/files/g", "", { query: { parentId: "unknown" } })).status).toBe(404);
});

test("a key repeated gets the first answer, also at once, after a restart, and after other changes", async () => {
  const metadata = { idempotencyKey: "k1" };
  const options = { metadata, headers: { "if-none-match": "*" } };
  const [first, second] = await Promise.all([
    core.upload("/v1/files/f", "one", options),
    core.upload("/v1/files/f", "one", options),
  ]);
  expect(first.status).toBe(201);
  expect(first.json.lastKey).toBe("k1");
  expect([second.status, second.json]).toEqual([201, first.json]);
  await core.call("PATCH", `/v1/nodes/${first.json.id}`, { json: { name: "g" } });
  expect((await core.node(first.json.id)).lastKey).toBe(null);
  const update = await core.upload(`/v1/nodes/${first.json.id}/content`, "v2", {
    method: "PUT",
    metadata: { idempotencyKey: "k2" },
  });
  await core.call("DELETE", `/v1/nodes/${first.json.id}`);
  core = core.restart();
  const repeated = await core.upload(`/v1/nodes/${first.json.id}/content`, "v2", {
    method: "PUT",
    metadata: { idempotencyKey: "k2" },
  });
  expect([repeated.status, repeated.json]).toEqual([200, update.json]);
  await core.call("POST", `/v1/nodes/${first.json.id}/restore`);
  // Later keys make room only of those that have expired.
  await core.clock.advance(23.9 * 3600 * 1000);
  await core.file("/later", "x", { metadata: { idempotencyKey: "k3" } });
  const third = await core.upload("/v1/files/f", "one", options);
  expect([third.status, third.json]).toEqual([201, first.json]);
  expect(await core.names("/")).toEqual(["g", "later"]);
  for (const [path, content] of [
    ["f", "two"],
    ["h", "one"],
  ] as const) {
    const other = await core.upload(`/v1/files/${path}`, content, { metadata });
    expect([other.status, other.json.field]).toEqual([400, "idempotencyKey"]);
  }
});

test("keys are forgotten after their time", async () => {
  const keys = () => core.database.prepare("SELECT key FROM idempotency ORDER BY key").pluck().all();
  for (const key of ["a", "b", "c"]) await core.file(`/${key}`, "x", { metadata: { idempotencyKey: key } });
  await core.clock.advance(49 * 3600 * 1000);
  await core.file("/d", "x", { metadata: { idempotencyKey: "d" } });
  await core.gateway.forget();
  expect(keys()).toEqual(["d"]);
});

test("keys from a future the clock came back from are in nobody's way, and age from then on", async () => {
  const keys = () => core.database.prepare<[], string>("SELECT key FROM idempotency ORDER BY id").pluck().all();
  core.clock.jump(20 * 86_400_000);
  await core.file("/future", "x", { metadata: { idempotencyKey: "future" } });
  core.clock.jump(-20 * 86_400_000);
  const copy = core.database.prepare(
    `INSERT INTO idempotency (key, workspace, request, time, status, answer)
     SELECT 'past-' || ?, workspace, request, ?, status, '{}' FROM idempotency WHERE key = 'future'`,
  );
  /** Goes on after each pause. */
  const forget = async () => {
    let isOver = false;
    const work = core.gateway.forget().finally(() => {
      isOver = true;
    });
    while (!isOver) await core.clock.advance(1);
    await work;
  };
  for (let index = 0; index < 1500; index += 1) copy.run(index, core.clock.wallClock());
  await core.clock.advance(49 * 3600 * 1000);
  await core.file("/now", "x", { metadata: { idempotencyKey: "now" } });
  await forget();
  expect(keys()).toEqual(["future", "now"]);
  await core.clock.advance(47 * 3600 * 1000);
  await forget();
  expect(keys()).toEqual(["future", "now"]);
  await core.clock.advance(2 * 3600 * 1000);
  await forget();
  expect(keys()).toEqual([]);
});

test("keys belong to one workspace", async () => {
  const other = core.gateway.ensureWorkspace("other");
  const metadata = { idempotencyKey: "k1" };
  const here = await core.file("/f", "one", { metadata });
  const there = await core.upload("/v1/files/f", "two", { metadata, token: core.token(undefined, other.id) });
  expect(there.status).toBe(201);
  expect(there.json.id).not.toBe(here.id);
});

test("large contents of repeated requests are not kept twice", async () => {
  const content = Buffer.alloc(100_000, 1);
  const metadata = { idempotencyKey: "k" };
  await Promise.all([core.file("/f", content, { metadata }), core.file("/f", content, { metadata })]);
  expect(core.blobs.contents.size).toBe(1);
});

test("a new version by bytes or by reference, if the head is the one expected", async () => {
  const node = await core.file("/f", "one");
  const url = `/v1/nodes/${node.id}/content`;
  const second = await core.upload(url, "two", { method: "PUT", headers: { "if-match": `"${node.head}"` } });
  expect([second.status, second.json.revision]).toEqual([200, 2]);
  const stale = await core.upload(url, "three", { method: "PUT", headers: { "if-match": `"${node.head}"` } });
  expect([stale.status, stale.json.node.head]).toEqual([412, second.json.head]);
  expect((await core.upload(url, "x", { method: "PUT", headers: { "if-match": "bare" } })).json.field).toBe("If-Match");

  const reference = { copyOf: node.id, version: node.head, idempotencyKey: "r", attributes: { mtime: "1.000000000" } };
  const headers = { "if-match": `"${second.json.head}"` };
  const third = await core.call("PUT", url, { json: reference, headers });
  expect(third.json).toMatchObject({
    revision: 3,
    contentHash: node.contentHash,
    attributes: { mtime: "1.000000000" },
  });
  expect((await core.call("PUT", url, { json: reference, headers })).json).toEqual(third.json);
  expect((await core.call("GET", url)).bytes.toString()).toBe("one");
  const versions = await core.call("GET", `/v1/nodes/${node.id}/versions`, { query: { orderBy: "-number" } });
  expect(versions.json.items.map((version: { number: number; size: number }) => version.number)).toEqual([3, 2, 1]);
});
