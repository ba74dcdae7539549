/** Content that the disk has lost: said where it can still be said, else the answer breaks off; never a whole answer of less. */
import { readdir, rm, truncate } from "node:fs/promises";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { writtenNode } from "../../src/contract/resources.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { SILENT } from "../../src/lib/log.ts";
import { createTestCore } from "../support/gateway-core.ts";
import { patiently } from "../support/patiently.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { sendRaw, serveCore } from "./support/gateway-http.ts";

const SIZE = 2_000_000;
const LEFT = 1_000_000;

test("a blob that is shorter or gone is a 500 with one cause in the log; the connection and all else go on", async () => {
  const dataDir = await temporaryFolder();
  const causes: string[] = [];
  const log = { ...SILENT, error: (fields: { err?: unknown }) => void causes.push(String(fields.err)) };
  const gateway = await startGateway({ dataDir, log });
  onTestFinished(() => gateway.close());
  const headers = { authorization: `Bearer ${await gateway.issueToken({ workspace: "workspace" })}` };
  const body = new FormData();
  body.set("file", new Blob([Buffer.alloc(SIZE, "x")]));
  const upload = await fetch(`${gateway.baseUrl}/v1/files/f`, { method: "POST", headers, body });
  const { id } = writtenNode.parse(await upload.json());
  const read = async (range: Record<string, string> = {}) => {
    const answer = await fetch(`${gateway.baseUrl}/v1/nodes/${id}/content`, { headers: { ...headers, ...range } });
    return [answer.status, answer.headers.get("content-type"), (await answer.arrayBuffer()).byteLength];
  };
  const folder = path.join(dataDir, "blobs");
  const blob = (await readdir(folder, { recursive: true })).find((name) => path.basename(name).length > 30);
  const file = path.join(folder, blob ?? "none");
  const problem = [500, "application/problem+json", expect.any(Number)];

  await truncate(file, LEFT);
  expect(await read()).toEqual(problem);
  expect(await read({ range: `bytes=${LEFT - 10}-${LEFT}` })).toEqual(problem);
  // What is asked for is there.
  expect(await read({ range: `bytes=0-${LEFT - 1}` })).toEqual([206, "text/plain", LEFT]);
  expect(causes).toEqual([expect.stringContaining(`has ${LEFT} bytes`), expect.stringContaining("expected at least")]);
  await rm(file);
  expect(await read()).toEqual(problem);
  expect(causes.slice(2)).toEqual([expect.stringContaining("ENOENT")]);
  expect((await fetch(`${gateway.baseUrl}/v1/nodes/${id}`, { headers })).status).toBe(200);
});

test("content that breaks while it is sent breaks the answer off, and the log has the cause once", async () => {
  const core = createTestCore();
  const { id } = await core.file("/f", Buffer.alloc(SIZE));
  vi.spyOn(core.blobs, "read").mockImplementation(async function* () {
    yield Buffer.alloc(LEFT);
    throw new Error("the disk is gone");
  });
  const causes: string[] = [];
  const done: object[] = [];
  const log = {
    ...SILENT,
    info: (fields: object) => void done.push(fields),
    error: (fields: { err?: unknown }) => void causes.push(String(fields.err)),
  };
  const { port } = await serveCore(core, { log });
  const head = `GET /v1/nodes/${id}/content HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${core.token()}\r\n\r\n`;
  const received = await sendRaw(port, head);
  expect(received.length).toBeLessThan(SIZE);
  expect(received === "" || received.includes(`content-length: ${SIZE}`)).toBe(true);
  await vi.waitUntil(() => done.length === 1, patiently);
  expect(causes).toEqual(["Error: the disk is gone"]);
  expect(done).toMatchObject([{ status: 200, broken: true }]);
});
