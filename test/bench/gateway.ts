/**
 * What the local gateway does over HTTP: small uploads, nodes and contents from 16 connections,
 * pages of a large folder, one large content in and out. The gateway is a process of its own; it
 * shares the machine with this one.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { Pool } from "undici";
import { z } from "zod";
import { startGatewayChild } from "../support/gateway-child.ts";

const CONNECTIONS = 16;
const COUNT = 10_000;
const PAGE = 1000;
const LARGE = 1024 ** 3;

const written = z.looseObject({ id: z.string(), parentId: z.string() });
const page = z.looseObject({ next: z.string().nullable() });

const folder = await mkdtemp(path.join(tmpdir(), "wsfs-bench-"));
const gateway = await startGatewayChild(folder);
const pool = new Pool(gateway.baseUrl, { connections: CONNECTIONS, pipelining: 1 });
const authorization = `Bearer ${gateway.token}`;

function framed(metadata: object, contentType: string): [Buffer, Buffer] {
  const head = [
    '--B\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n',
    JSON.stringify(metadata),
    `\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\nContent-Type: ${contentType}\r\n\r\n`,
  ].join("");
  return [Buffer.from(head), Buffer.from("\r\n--B--\r\n")];
}

async function get(url: string): Promise<string> {
  const { statusCode, body } = await pool.request({ method: "GET", path: url, headers: { authorization } });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${url}: ${statusCode} ${text}`);
  return text;
}

async function upload(name: string, body: Buffer | Readable): Promise<z.output<typeof written>> {
  const headers = { authorization, "content-type": "multipart/form-data; boundary=B" };
  const answer = await pool.request({ method: "POST", path: `/v1/files/${name}`, headers, body });
  const text = await answer.body.text();
  if (answer.statusCode !== 201) throw new Error(`${name}: ${answer.statusCode} ${text}`);
  return written.parse(JSON.parse(text));
}

function report(what: string, figure: string): void {
  process.stdout.write(`${what.padEnd(44)} ${figure}\n`);
}

/** Processor time the gateway has had, milliseconds. */
async function processorTime(): Promise<number> {
  const fields = (await readFile(`/proc/${gateway.pid}/stat`, "utf8")).replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function rate(what: string, one: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const before = await processorTime();
  const start = performance.now();
  const worker = async () => {
    while (next < COUNT) await one(next++);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  const each = Math.round((COUNT / (performance.now() - start)) * 1000);
  const used = Math.round((((await processorTime()) - before) / COUNT) * 1000);
  report(what, `${each}/s, ${used} µs of the gateway's processor time each`);
}

async function timed<T>(body: () => Promise<T>): Promise<[T, number]> {
  const start = performance.now();
  return [await body(), performance.now() - start];
}

try {
  const content = Buffer.alloc(4096, "content ");
  const nodes: z.output<typeof written>[] = [];
  for (const contentType of ["text/plain", "application/octet-stream"]) {
    await rate(`uploads of 4 KiB, ${contentType}`, async (index) => {
      const name = `${contentType}/${index}`;
      const metadata = { idempotencyKey: name, attributes: { mode: 0o644, mtime: "1700000000.123456789" } };
      const [head, tail] = framed(metadata, contentType);
      nodes.push(await upload(name, Buffer.concat([head, content, tail])));
    });
  }
  const nodeAt = (index: number) => nodes[(index * 7919) % nodes.length]?.id;
  await rate("nodes by id", (index) => get(`/v1/nodes/${nodeAt(index)}`));
  await rate("contents of 4 KiB", (index) => get(`/v1/nodes/${nodeAt(index)}/content`));

  const times: number[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const url: string = `/v1/nodes?parentId=${nodes[0]?.parentId}&pageSize=${PAGE}&after=${after}`;
    const [text, time] = await timed(() => get(url));
    times.push(time);
    after = page.parse(JSON.parse(text)).next;
  }
  const middle = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
  report(`a page of ${PAGE} nodes (median of ${times.length})`, `${middle.toFixed(1)} ms`);

  const chunk = Buffer.alloc(1024 ** 2, "content ");
  const large = async function* () {
    const [head, tail] = framed({}, "text/plain");
    yield head;
    for (let sent = 0; sent < LARGE; sent += chunk.length) yield chunk;
    yield tail;
  };
  const [node, inTime] = await timed(() => upload("large", Readable.from(large())));
  report("1 GiB in", `${(LARGE / inTime / 1e6).toFixed(2)} GB/s`);
  const [, outTime] = await timed(async () => {
    const { body } = await pool.request({
      method: "GET",
      path: `/v1/nodes/${node.id}/content`,
      headers: { authorization },
    });
    let received = 0;
    for await (const bytes of body) received += bytes.length;
    if (received !== LARGE) throw new Error(`expected ${LARGE} bytes, got ${received}`);
  });
  report("1 GiB out", `${(LARGE / outTime / 1e6).toFixed(2)} GB/s`);
} finally {
  await pool.close();
  await gateway.end("SIGTERM");
  await rm(folder, { recursive: true, force: true });
}
