/** Requests that ask for another name than the gateway's own (DNS rebinding) have no effect and hear nothing. */
import { once } from "node:events";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { DEFAULT_OPTIONS } from "../../src/gateway/context.ts";
import { createGateway } from "../../src/gateway/core.ts";
import { isAskedHere, ownNames } from "../../src/gateway/own-names.ts";
import { SILENT } from "../../src/lib/log.ts";
import { createTestCore } from "../support/gateway-core.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { sendRaw, sendRawTo, serveCore } from "./support/gateway-http.ts";

const OTHERS = [
  ...["pages.example", "pages.example:80", "localhost.pages.example", "127.0.0.1.pages.example", "gw.example.com"],
  ...["10.1.2.3", "0.0.0.0", "[::2]", "127.0.0.2", "localhost:80:80", "x@localhost", "localhost/x", "", "[localhost]"],
];
const OWN = ["localhost", "LocalHost:1", "127.0.0.1", "127.0.0.1:65535", "[::1]:80", "gw.example", "GW.example:443"];

test.each([
  ["127.0.0.1:80", "127.0.0.1", true],
  ["localhost", "::ffff:127.0.0.1", true],
  ["[::1]:80", "::1", true],
  // From afar; through a proxy of this machine that others reach; by nobody's name; by a Unix socket.
  ["127.0.0.1:80", "10.1.2.3", false],
  ["localhost", "::ffff:10.1.2.3", false],
  ["gw.example", "127.0.0.1", false],
  [undefined, "127.0.0.1", false],
  ["localhost", undefined, false],
])("%s, asked from %s: asked here is %s", (host, remoteAddress, isHere) => {
  expect(isAskedHere({ headers: { host }, socket: { remoteAddress } })).toBe(isHere);
});

const status = (answer: string) => Number(answer.slice(9, 12));

test.each([...OTHERS, ...OWN])('"%s"', async (host) => {
  const core = createTestCore();
  // As with --faults: whoever reaches the control endpoint needs no token.
  const { clock, database, blobs } = core;
  const controlled = { clock, database, blobs, signingKey: Buffer.alloc(32, 7), log: SILENT, control: true };
  const gateway = createGateway(controlled);
  const { port } = await serveCore({ ...core, gateway }, { names: ["gw.example"] });
  const ask = (line: string, body = "") =>
    sendRaw(
      port,
      [
        ...[`${line} HTTP/1.1`, `Host: ${host}`, "Connection: close", `Authorization: Bearer ${core.token()}`],
        ...["Content-Type: application/json", `Content-Length: ${body.length}`, "", body],
      ].join("\r\n"),
    );
  const isOwn = OWN.includes(host);
  const folder = JSON.stringify({ parentId: core.workspace.root, name: "made", kind: "folder" });
  const answers = [
    await ask("GET /v1/nodes"),
    await ask("POST /v1/nodes", folder),
    await ask("PATCH /faults", '{"idLagMs":1}'),
    await ask("GET /openapi.json"),
    await ask("GET /docs/json"),
    await ask("GET /nowhere"),
  ];
  expect(answers.map(status)).toEqual(isOwn ? [200, 201, 200, 200, 200, 404] : Array(6).fill(421));
  expect(await core.names("/")).toEqual(isOwn ? ["made"] : []);
  const shown = await gateway.handle({ method: "GET", path: "/faults", query: {}, headers: {} });
  const { idLagMs } = JSON.parse(shown.body?.kind === "json" ? shown.body.text : "");
  expect(idLagMs).toBe(isOwn ? 1 : DEFAULT_OPTIONS.idLagMs);
});

test("the address a connection came in on is its own, and HTTP/1.0 need name none", async () => {
  const core = createTestCore();
  const { port } = await serveCore(core, { host: "0.0.0.0" });
  for (const address of ["127.0.0.3", "127.0.0.4"]) {
    const ask = (host: string) =>
      sendRawTo(address, port, `GET /openapi.json HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect([status(await ask(address)), status(await ask("0.0.0.0")), status(await ask("127.0.0.5"))]).toEqual([
      ...[200, 200, 421],
    ]);
  }
  expect(status(await sendRaw(port, "GET /openapi.json HTTP/1.0\r\n\r\n"))).toBe(200);
});

test("a Unix socket is nobody's but its owner's: any name is good", async () => {
  const path = join(await temporaryFolder(), "socket");
  const isOwn = ownNames([]);
  const server = createServer((incoming, response) => response.end(String(isOwn(incoming))));
  server.listen(path);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const asked = request({ socketPath: path, headers: { host: "pages.example" } });
  asked.end();
  const [answer] = await once(asked, "response");
  expect(await text(answer)).toBe("true");
});
