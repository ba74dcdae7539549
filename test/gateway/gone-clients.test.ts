/** Clients that go away while the gateway is at work for them: it notices, whatever it was waiting for. */
import { connect } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { SILENT } from "../../src/lib/log.ts";
import { createTestCore } from "../support/gateway-core.ts";
import { serveCore } from "./support/gateway-http.ts";

const PATIENCE = { timeout: 60_000, interval: 20 };

/** A served core, what its requests came to, and a connection of a client. */
async function begin() {
  const core = createTestCore();
  const done: { readonly path: string }[] = [];
  const log = { ...SILENT, info: (fields: object) => void done.push(Object(fields)) };
  const { baseUrl, port } = await serveCore(core, { log });
  const head = (line: string, ...more: string[]) =>
    [`${line} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${core.token()}`, ...more, "", ""].join("\r\n");
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  return { core, done, socket, head, baseUrl };
}

describe("before their body is looked at", () => {
  const part = '--B\r\nContent-Disposition: form-data; name="file"\r\n\r\n';
  const multipart = "Content-Type: multipart/form-data; boundary=B";
  const length = "Content-Length: 1000";
  const bodies: Record<string, [line: string, headers: string[], begun: string]> = {
    "an upload that says how long it is": ["POST /v1/files/x", [multipart, length], part],
    "an upload in chunks": ["POST /v1/files/x", [multipart, "Transfer-Encoding: chunked"], `3E8\r\n${part}`],
    JSON: ["POST /v1/nodes", ["Content-Type: application/json", length], '{"name":'],
  };

  test.each(Object.entries(bodies))("%s", async (_, [line, headers, begun]) => {
    const { core, done, socket, head, baseUrl } = await begin();
    core.gateway.setOptions({ latencyMs: 1000 });
    socket.write(head(line, ...headers) + begun);
    await vi.waitUntil(() => core.clock.nextTimer() !== undefined, PATIENCE);
    core.gateway.setOptions({ latencyMs: 0 });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.resetAndDestroy();
    await closed;
    // Whoever comes after it is answered once the server has seen it go.
    for (let round = 0; round < 3; round += 1) await fetch(`${baseUrl}/v1/none`);
    await core.clock.advance(1000);
    await vi.waitUntil(() => done.some(({ path }) => line.endsWith(path)), PATIENCE);
    expect(await core.names("/")).toEqual([]);
  });
});

test("while answers wait for the one before them", async () => {
  const { core, done, socket, head } = await begin();
  const { id } = await core.file("/large", Buffer.alloc(64 * 2 ** 20));
  const warned = vi.fn();
  process.on("warning", warned);
  onTestFinished(() => void process.off("warning", warned));
  socket.pause();
  const count = 20;
  socket.write(head(`GET /v1/nodes/${id}/content`).repeat(count) + head("GET /docs") + head("GET /docs/none"));
  const reads = vi.spyOn(core.blobs, "read");
  await vi.waitUntil(() => reads.mock.calls.length === count, PATIENCE);
  socket.resetAndDestroy();
  await vi.waitUntil(() => done.length === count + 2, PATIENCE);
  expect(done.filter(({ path }) => path.startsWith("/v1/"))).toEqual(
    Array.from({ length: count }, () => expect.objectContaining({ broken: true })),
  );
  expect(warned).not.toHaveBeenCalled();
});
