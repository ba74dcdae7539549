/** Clients that mean to hold the gateway up, and what others notice of it: hundreds at a time that hardly send, bodies without end. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { serveCore } from "./support/gateway-http.ts";

const PATIENCE = { timeout: 50_000, interval: 20 };
const MANY = 300;

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

function head(method: string, path: string, ...more: readonly string[]): string {
  return [`${method} ${path} HTTP/1.1`, "Host: localhost", ...more, ""].join("\r\n");
}

const authorization = () => `Authorization: Bearer ${core.token()}`;
const MULTIPART = "Content-Type: multipart/form-data; boundary=B";
const FILE = '--B\r\nContent-Disposition: form-data; name="file"\r\n\r\n';

/** One of the others, in the middle of it. */
async function isServed(baseUrl: string): Promise<void> {
  const headers = { authorization: `Bearer ${core.token()}` };
  const answer = await fetch(`${baseUrl}/v1/nodes`, { headers });
  expect([answer.status, typeof (await answer.json())]).toEqual([200, "object"]);
}

interface Slow {
  readonly sockets: readonly Socket[];
  /** What each was answered. */
  readonly answers: readonly string[];
  ended(): number;
}

/** So many connections that begin with `first` and then send `piece` again and again, each a little later than the one before. */
function slow(port: number, first: string, piece: string): Slow {
  const answers: string[] = [];
  let ended = 0;
  const sockets = Array.from({ length: MANY }, (_, index) => {
    answers.push("");
    const socket = connect(port, "127.0.0.1");
    // At once, so that it goes before any piece, however late this process hears of the connection.
    socket.write(first);
    socket.on("data", (chunk) => {
      answers[index] += chunk.toString();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      ended += 1;
    });
    return socket;
  });
  let timer: NodeJS.Timeout;
  // What has come is read before more is sent: to write to who has answered and closed loses the answer. And the next round
  // waits for this one to end, however long a busy machine takes for it.
  const goOn = () => {
    timer = setTimeout(() => setImmediate(sendMore), 100);
  };
  const sendMore = () => {
    for (const socket of sockets) if (socket.writable) socket.write(piece);
    if (ended < MANY) goOn();
  };
  goOn();
  onTestFinished(() => {
    clearTimeout(timer);
    for (const socket of sockets) socket.destroy();
  });
  return { sockets, answers, ended: () => ended };
}

describe("hundreds that hardly send", () => {
  test("a head that never ends is 408, however lively it goes on; others are served meanwhile", async () => {
    const { baseUrl, port } = await serveCore(core, { silence: { headersMs: 1500, bodyMs: 60_000 } });
    // On its own connection from here on, whose head does not wait for that of hundreds.
    await isServed(baseUrl);
    const { answers, ended } = slow(port, head("GET", "/v1/nodes"), "X-More: y\r\n");
    for (let asked = 0; asked < 20; asked += 1) await isServed(baseUrl);
    await vi.waitUntil(() => ended() === MANY, PATIENCE);
    expect(new Set(answers.map((text) => text.slice(0, 12)))).toEqual(new Set(["HTTP/1.1 408"]));
  });

  test("a body for which there is no token is not waited for", async () => {
    const { baseUrl, port } = await serveCore(core);
    const first = head("POST", "/v1/files/x", "Authorization: Bearer none", MULTIPART, "Content-Length: 1000000");
    const { answers, ended } = slow(port, `${first}\r\n${FILE}`, "x");
    await isServed(baseUrl);
    await vi.waitUntil(() => ended() === MANY, PATIENCE);
    expect(new Set(answers.map((text) => text.slice(0, 12)))).toEqual(new Set(["HTTP/1.1 401"]));
  });

  test("uploads that go on a byte at a time are let go on; of those that break off nothing is left", async () => {
    const { baseUrl, port } = await serveCore(core);
    const first = head("POST", "/v1/files/x", authorization(), MULTIPART, "Content-Length: 1000000");
    const { sockets, ended } = slow(port, `${first}\r\n${FILE}`, "x");
    for (let asked = 0; asked < 20; asked += 1) await isServed(baseUrl);
    expect(ended()).toBe(0);
    for (const socket of sockets) socket.destroy();
    await vi.waitUntil(() => core.blobs.contents.size === 0, PATIENCE);
    expect(await core.names("/")).toEqual([]);
    await isServed(baseUrl);
  });
});

describe("a body that is made to cost much", () => {
  const part = (name: string, body: string) =>
    `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${body}\r\n`;
  const times = (text: string, count = 1000) => text.repeat(count);
  /** What it begins with, what it goes on with, up to 64 MiB, and what is said against it. */
  const BOMBS: Readonly<Record<string, readonly [first: string, piece: string, problem: string]>> = {
    "parts of no meaning without end": ["", times(part("other", "x")), "other"],
    "files without end": ["", times(part("file", "x")), "file: came twice"],
    "metadata without end": ["", times(part("metadata", "{}")), "metadata: came twice"],
    "metadata that does not end": [
      '--B\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n{"a":"',
      times("a"),
      "metadata",
    ],
    "metadata that is deep": [
      part("metadata", `${times('{"a":', 20_000)}1${times("}", 20_000)}`),
      times(FILE),
      "nested more than",
    ],
    "a header that does not end": [
      '--B\r\nContent-Disposition: form-data; name="file"; filename="',
      times("a"),
      "bytes of headers",
    ],
    "headers without end": ["--B\r\n", times("X: y\r\n"), "bytes of headers"],
    "nothing before the first part": ["", times("a"), "before the first"],
  };

  test.each(Object.entries(BOMBS))("%s is refused as it comes in", async (_, [first, piece, problem]) => {
    const { baseUrl, port } = await serveCore(core);
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString();
    });
    socket.on("error", () => {});
    await once(socket, "connect");
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    socket.write(`${head("POST", "/v1/files/x", authorization(), MULTIPART, "Transfer-Encoding: chunked")}\r\n`);
    if (first !== "") socket.write(chunk(first));
    const bytes = chunk(piece);
    for (let sent = 0; answer === "" && socket.writable && sent < 64 * 2 ** 20; sent += bytes.length) {
      if (!socket.write(bytes)) await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => {});
      else await new Promise(setImmediate);
    }
    await vi.waitUntil(() => answer.includes("}"), PATIENCE);
    expect(answer).toMatch(/^HTTP\/1\.1 4(00|13) /);
    expect(answer).toContain(problem);
    await isServed(baseUrl);
    socket.destroy();
    await vi.waitUntil(() => core.blobs.contents.size === 0, PATIENCE);
    expect(await core.names("/")).toEqual([]);
  });
});
