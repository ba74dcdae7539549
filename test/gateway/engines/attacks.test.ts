/** Callers who mean to hold the gateway up with executions. What their tokens may do: tokens.test.ts. */
import { once } from "node:events";
import { connect } from "node:net";
import { beforeEach, expect, test } from "vitest";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { sendRaw, serveCore } from "../support/gateway-http.ts";
import { addEngine, begin, finish, install } from "./support.ts";

let core: TestCore;
beforeEach(async () => {
  core = createTestCore();
  addEngine(core, "scan");
  await install(core, "scan");
});

const rows = () => core.database.prepare("SELECT count(*) FROM execution").pluck().get();

test("10,000 executions that many ask for: a thousand of each workspace wait, four run, and all is answered", async () => {
  const token = core.token(undefined, null);
  const workspaces = ["a", "b", "c", "d"];
  for (const name of workspaces) {
    core.gateway.ensureWorkspace(name);
    await install(core, "scan", { token, query: { workspace: name } });
  }
  await begin(core);
  const statuses = new Map<number, number>();
  for (let round = 0; round < 100; round += 1) {
    const asked = Array.from({ length: 100 }, (_, index) =>
      core.call("POST", "/v1/executions", {
        ...{ token, query: { workspace: workspaces[index % 4] ?? "" } },
        json: { engine: "scan", input: "x".repeat(100) },
      }),
    );
    for (const { status } of await Promise.all(asked)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    // Others are served meanwhile.
    expect((await core.call("GET", "/v1/nodes")).status).toBe(200);
  }
  expect([...statuses]).toEqual([
    [201, 4004],
    [429, 5996],
  ]);
  expect([rows(), core.engines.running().length]).toEqual([4004, 4]);
  for (let count = 0; count < 40; count += 1) await finish(core, core.engines.running()[0] ?? "");
  expect([core.engines.running().length, core.engines.started.length]).toEqual([4, 44]);
}, 60_000);

test("what is no JSON, or not in UTF-8, is refused", async () => {
  const { port } = await serveCore(core);
  for (const body of [
    "",
    "{",
    '{"engine":"scan","input":NaN}',
    '{"engine":"scan","engine":"scan"}',
    '{"engine":"\xff"}',
  ]) {
    const bytes = Buffer.from(body, "latin1");
    const head = ["POST /v1/executions HTTP/1.1", "Host: localhost", `Authorization: Bearer ${core.token()}`];
    const lines = [...head, "Content-Type: application/json", `Content-Length: ${bytes.length}`, "Connection: close"];
    const answer = await sendRaw(port, `${lines.join("\r\n")}\r\n\r\n${bytes.toString("latin1")}`);
    expect([body, answer.slice(9, 12)]).toEqual([body, "400"]);
  }
  expect(rows()).toBe(0);
});

test.each([
  ["that says so", "Content-Length: 104857600"],
  ["that does not", "Transfer-Encoding: chunked"],
])("100 MB %s are not taken in", async (_, length) => {
  const { port } = await serveCore(core);
  const socket = connect(port, "127.0.0.1");
  const head = ["POST /v1/executions HTTP/1.1", "Host: localhost", `Authorization: Bearer ${core.token()}`];
  socket.write(`${[...head, "Content-Type: application/json", length].join("\r\n")}\r\n\r\n`);
  const isChunked = length.startsWith("Transfer");
  const piece = Buffer.alloc(64 * 1024, '"');
  let answer = "";
  let sent = 0;
  socket.on("data", (chunk) => {
    answer += chunk.toString();
  });
  socket.on("error", () => {});
  const closed = once(socket, "close");
  while (!socket.destroyed && sent < 100 * 2 ** 20 && !answer.startsWith("HTTP/1.1 413")) {
    const chunk = isChunked ? Buffer.concat([Buffer.from("10000\r\n"), piece, Buffer.from("\r\n")]) : piece;
    await new Promise((resolve) => socket.write(chunk, resolve));
    sent += piece.length;
  }
  socket.end();
  await closed;
  expect(answer.slice(9, 12)).toBe("413");
  expect(sent).toBeLessThan(20 * 2 ** 20);
  expect(rows()).toBe(0);
});
