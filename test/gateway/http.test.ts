import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import net from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { issueToken, type RunningGateway, type StartGatewayOptions, startGateway } from "../../src/gateway/start.ts";
import { SILENT } from "../../src/lib/log.ts";
import type { AnswerJson } from "../support/answer-json.ts";
import { patiently } from "../support/patiently.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const json = async (answer: Response): Promise<AnswerJson> => JSON.parse(await answer.text());

async function start(options: Partial<StartGatewayOptions> = {}) {
  const dataDir = options.dataDir ?? (await temporaryFolder());
  const gateway = await startGateway({ dataDir, ...options });
  onTestFinished(() => gateway.close());
  const token = await gateway.issueToken({ workspace: "workspace" });
  const authorization = `Bearer ${token}`;
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${gateway.baseUrl}${path}`, { ...init, headers: { authorization, ...init.headers } });
  const form = (content: string | Uint8Array<ArrayBuffer>, metadata?: unknown, metadataFirst = true) => {
    const body = new FormData();
    if (metadata !== undefined && metadataFirst) body.set("metadata", JSON.stringify(metadata));
    body.set("file", new Blob([content]), "x");
    if (metadata !== undefined && !metadataFirst) body.set("metadata", JSON.stringify(metadata));
    return body;
  };
  return { dataDir, gateway, authorization, call, form };
}

/** Sends text as it is and answers all that comes back until the connection ends. */
function raw(gateway: RunningGateway, ...texts: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(gateway.port, "127.0.0.1");
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString();
    });
    socket.on("end", () => resolve(received));
    socket.on("close", () => resolve(received));
    socket.on("error", reject);
    for (const text of texts) socket.write(text);
  });
}

test("multipart in either order goes in, and comes out whole and in ranges", async () => {
  const { call, form } = await start();
  const content = new Uint8Array(1_000_000).map((_, index) => index * 7);
  for (const metadataFirst of [true, false]) {
    const body = form(content, { attributes: { mode: 0o644 } }, metadataFirst);
    const answer = await call(`/v1/files/d/${metadataFirst}`, { method: "POST", body });
    expect(answer.status).toBe(201);
    const node = await json(answer);
    const url = `/v1/nodes/${node.id}/content`;
    const head = await call(url, { method: "HEAD", headers: { range: "bytes=0-0" } });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(content.length)]);
    const whole = await call(url);
    expect(Buffer.compare(Buffer.from(await whole.arrayBuffer()), content)).toBe(0);
    const cases: [string, number, number, number][] = [
      ["bytes=0-0", 206, 0, 1],
      ["bytes=999990-", 206, 999_990, 1_000_000],
      ["bytes=-5", 206, 999_995, 1_000_000],
      ["bytes=524280-1600000", 206, 524_280, 1_000_000],
      ["bytes=0-1,5-6", 200, 0, 1_000_000],
      ["lines=1-2", 200, 0, 1_000_000],
    ];
    for (const [range, status, from, to] of cases) {
      const part = await call(url, { headers: { range } });
      expect([range, part.status]).toEqual([range, status]);
      expect(part.headers.get("content-range")).toBe(status === 206 ? `bytes ${from}-${to - 1}/1000000` : null);
      expect(part.headers.get("etag")).toBe(`"${node.head}"`);
      expect(Buffer.compare(Buffer.from(await part.arrayBuffer()), content.subarray(from, to))).toBe(0);
    }
    const outside = await call(url, { headers: { range: "bytes=1000000-" } });
    expect([outside.status, outside.headers.get("content-range")]).toEqual([416, "bytes */1000000"]);
    expect((await call(url, { headers: { "if-none-match": `"${node.head}"` } })).status).toBe(304);
    const changed = await call(url, { headers: { range: "bytes=0-0", "if-range": '"other"' } });
    expect(changed.status).toBe(200);
    await changed.arrayBuffer();
  }
});

test("a raw body is refused by field, without all of it being read", async () => {
  const { gateway, call, authorization } = await start();
  const small = await call("/v1/files/x", { method: "POST", body: "bytes" });
  expect([small.status, (await json(small)).field]).toEqual([400, "file"]);
  const head = `POST /v1/files/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Length: 900000000000\r\n\r\n`;
  const answer = await raw(gateway, head, "some bytes");
  expect(answer).toMatch(/^HTTP\/1.1 400 /);
  expect(answer).toContain('"field":"file"');
});

test("a body that breaks off leaves nothing", async () => {
  const { gateway, call, authorization, dataDir } = await start();
  const blobs = async () =>
    (await readdir(`${dataDir}/blobs`, { recursive: true })).filter((name) => name.includes("-"));
  const beginning = `--B\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n${"x".repeat(200_000)}`;
  const head = (length: number) =>
    `POST /v1/files/new/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`;
  // The connection ends in the middle.
  await new Promise<void>((resolve) => {
    const socket = net.connect(gateway.port, "127.0.0.1", () => {
      socket.write(head(1_000_000));
      socket.write(beginning);
    });
    socket.on("close", () => resolve());
    // Only once its first bytes have arrived on the disk.
    void vi.waitUntil(async () => (await blobs()).length > 0, patiently).then(() => socket.destroy());
  });
  // The body is whole as HTTP, but has no closing boundary.
  const answer = await raw(gateway, head(beginning.length), beginning);
  expect(answer).toMatch(/^HTTP\/1.1 400 /);
  expect(answer).toContain('"field":"file"');
  const listing = await json(await call("/v1/nodes?path=/"));
  expect(listing.items).toEqual([]);
  await vi.waitUntil(async () => (await blobs()).length === 0, patiently);
});

test("everything is there after a restart", async () => {
  const first = await start();
  const body = () => first.form(new Uint8Array(50_000), { idempotencyKey: "k" });
  const node = await json(await first.call("/v1/files/a/b", { method: "POST", body: body() }));
  await first.gateway.close();
  const second = await start({ dataDir: first.dataDir });
  const listing = await json(await second.call("/v1/nodes?path=/a"));
  expect(listing.items.map((item: { id: string }) => item.id)).toEqual([node.id]);
  const again = await second.call("/v1/files/a/b", { method: "POST", body: body() });
  expect([again.status, await json(again)]).toEqual([201, node]);
  const content = await second.call(`/v1/nodes/${node.id}/content`);
  expect((await content.arrayBuffer()).byteLength).toBe(50_000);
});

test("a second gateway on the folder is refused, tokens can be issued beside the first", async () => {
  const { dataDir, gateway } = await start({ workspaces: ["one", "workspace"] });
  await expect(startGateway({ dataDir })).rejects.toThrow(`Another gateway is serving the data folder ${dataDir}.`);
  const token = await issueToken(dataDir, { workspace: "one", scopes: ["account.workspace.read"] });
  const headers = { authorization: `Bearer ${token}` };
  const answer = await json(await fetch(`${gateway.baseUrl}/v1/workspaces`, { headers }));
  expect(answer.items.map((item: { name: string }) => item.name)).toEqual(["one"]);
  await expect(issueToken(dataDir, { workspace: "none" })).rejects.toThrow('There is no workspace "none"');
  await gateway.close();
  expect((await issueToken(dataDir, { workspace: "one" })).split(".").length).toBe(3);
  await expect(issueToken(await temporaryFolder())).rejects.toThrow("There is no gateway's data in");
});

test("JSON over its limit, broken JSON and another type of body are refused", async () => {
  const { call } = await start();
  const post = (body: string, type = "application/json") =>
    call("/v1/nodes", { method: "POST", body, headers: { "content-type": type } });
  expect((await post(`"${"x".repeat(1024 * 1024)}"`)).status).toBe(413);
  expect((await json(await post("{"))).field).toBe("body");
  expect((await json(await post("{}", "text/plain"))).field).toBe("body");
  expect((await json(await post("{}"))).field).toBe("parentId");
  expect((await call("/v1/nodes?path=/&path=/")).status).toBe(400);
});

test("the data folder is its owner's alone, and the first start makes the workspaces named", async () => {
  const { dataDir, call } = await start({ workspaces: ["workspace", "second"] });
  const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
  expect(await mode(dataDir)).toBe("700");
  expect(await mode(`${dataDir}/signing-key`)).toBe("600");
  expect((await json(await call("/v1/workspaces"))).items.map(({ name }) => name)).toEqual(["workspace"]);
});

test("close ends a connection that is in the middle of an upload", async () => {
  const { gateway, authorization } = await start();
  const socket = net.connect(gateway.port, "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  socket.resume();
  socket.on("error", () => {});
  const head = `POST /v1/files/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n`;
  socket.write(head);
  // The server is waiting for the body.
  await once(socket, "data");
  await gateway.close();
  await closed;
});

test("each request is one log line, without its token", async () => {
  const lines: { fields: object; message: string }[] = [];
  const info = (fields: object, message: string) => void lines.push({ fields, message });
  const { call } = await start({ log: { ...SILENT, info } });
  const answer = await call("/v1/nodes?path=/none");
  await answer.arrayBuffer();
  await vi.waitUntil(() => lines.length === 1, patiently);
  // The answer says which line is its own.
  const requestId = answer.headers.get("x-request-id");
  expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
  const fields = { method: "GET", path: "/v1/nodes", status: 404, bytes: expect.any(Number), requestId };
  expect(lines).toMatchObject([{ message: "request", fields }]);
  expect(JSON.stringify(lines)).not.toMatch(/Bearer|eyJ/);
});

test("a connection is kept after uploads and refusals, and reset by a fault", async () => {
  const { gateway, authorization } = await start();
  const part = '--B\r\nContent-Disposition: form-data; name="file"\r\n\r\nhello\r\n--B--\r\n';
  const request = (body: string, extra: string) =>
    `POST /v1/files/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\n${extra}Content-Length: ${body.length}\r\n\r\n${body}`;
  const multipart = "Content-Type: multipart/form-data; boundary=B\r\n";
  const all = await raw(
    gateway,
    request(part, multipart),
    request(part.replace("hello", "hello".repeat(50_000)), multipart),
    request("raw", ""),
    request(part, multipart),
    request(part, `${multipart}Connection: close\r\n`),
  );
  expect([...all.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    "201",
    "200",
    "400",
    "200",
    "200",
  ]);
  gateway.setOptions({ failRate: 1 });
  const outcomes = new Set<string>();
  for (let index = 0; index < 100 && outcomes.size < 2; index++) {
    const answer = await raw(gateway, request(part, `${multipart}Connection: close\r\n`)).catch(() => "");
    outcomes.add(answer === "" ? "reset" : answer.slice(9, 12));
  }
  expect([...outcomes].toSorted()).toEqual(["503", "reset"]);
});
