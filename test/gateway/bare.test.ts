/** The bare gateway without a mount: its own words in every answer, and misbehaviour as on any other. */
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createBareGateway } from "../../src/gateway/bare.ts";
import { type GatewayRequest, jsonBody } from "../../src/gateway/exchange.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { createTestCore, part, readAnswer, type TestCore, uploadBody } from "../support/gateway-core.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let core: TestCore;
let ask: (method: string, path: string, body?: GatewayRequest["body"]) => ReturnType<typeof readAnswer>;
beforeEach(() => {
  core = createTestCore();
  const bare = createBareGateway(core.gateway);
  const headers = { authorization: `Bearer ${core.token()}` };
  ask = async (method, path, body) => readAnswer(await bare.handle({ method, path, query: {}, headers, body }));
});

test("an answer that crawls or breaks off is in its words too", async () => {
  const plain = (await ask("GET", "/v1/workspaces")).bytes.toString();
  expect(JSON.parse(plain)).toEqual({
    data: [{ id: core.workspace.id, name: "workspace", top: core.workspace.root }],
    paging: { total: 1, number: 1, size: 50 },
  });
  core.gateway.setOptions({ downloadBytesPerSecond: 1e9 });
  const slow = ask("GET", "/v1/workspaces");
  await core.clock.advance(1000);
  expect((await slow).bytes.toString()).toBe(plain);
});

test("a token that is missing is told how to come, one thing HTTP asks of every 401", async () => {
  const bare = createBareGateway(core.gateway);
  const answer = await bare.handle({ method: "GET", path: "/v1/workspaces", query: {}, headers: {} });
  expect([answer.status, answer.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
});

test("who may write but not read hears the id alone", async () => {
  const { id } = await core.file("/secret", "x");
  const bare = createBareGateway(core.gateway);
  const headers = { authorization: `Bearer ${core.token(["node.node.update"])}` };
  const body = jsonBody({ in: core.workspace.root, title: "other" });
  const moved = await readAnswer(
    await bare.handle({ method: "POST", path: `/v1/entries/${id}/move`, query: {}, headers, body }),
  );
  expect([moved.status, JSON.parse(moved.bytes.toString())]).toEqual([200, { id }]);
  expect(await core.names("/")).toEqual(["other"]);
});

test("an id that is not percent-encoded is refused by name", async () => {
  for (const [method, path] of [
    ["GET", "/v1/folders/%ff/entries"],
    ["GET", "/v1/entries/%ff"],
    ["DELETE", "/v1/entries/%"],
  ] as const) {
    const { status, bytes } = await ask(method, path);
    expect([path, status, Object.keys(JSON.parse(bytes.toString()))]).toEqual([path, 400, ["error"]]);
  }
});

test("metadata is JSON in UTF-8, of a limited size and depth", async () => {
  const upload = async (metadata: string | Uint8Array) => {
    const answer = await ask("POST", "/v1/files/f", uploadBody(part("metadata", metadata), part("file", "x")));
    return answer.status;
  };
  expect(await upload(Buffer.from('{"branch":"\xff"}', "latin1"))).toBe(400);
  expect(await upload(`${"[".repeat(10_000)}${"]".repeat(10_000)}`)).toBe(400);
  expect(await upload(" ".repeat(65 * 1024))).toBe(413);
  expect(await upload('{"branch":"main"}')).toBe(201);
});

test("its clock shows in all answers, refusals included", async () => {
  core.gateway.setOptions({ clockSkewMs: 3600_000 });
  for (const path of ["/v1/workspaces", "/v1/entries/none"]) {
    const { headers } = await ask("GET", path);
    expect(Date.parse(String(headers.date)) - core.clock.wallClock()).toBe(3600_000);
  }
});

test("the control endpoint is there when asked for, the contract's page and document are not", async () => {
  const gateway = await startGateway({ dataDir: await temporaryFolder(), bare: true, control: true });
  onTestFinished(() => gateway.close());
  const get = async (path: string) => {
    const response = await fetch(`${gateway.baseUrl}${path}`);
    return [response.status, await response.text()] as const;
  };
  expect((await get("/faults"))[0]).toBe(200);
  for (const path of ["/docs", "/docs/json", "/openapi.json"]) {
    const [status, text] = await get(path);
    expect([path, status, Object.keys(JSON.parse(text))]).toEqual([path, 404, ["error"]]);
  }
  const changed = await fetch(`${gateway.baseUrl}/faults`, {
    method: "PATCH",
    body: '{"faults":{"listWorkspaces":{"error":1}}}',
    headers: { "content-type": "application/json" },
  });
  expect([changed.status, JSON.parse(await changed.text()).faults]).toEqual([200, { listWorkspaces: { error: 1 } }]);
  const quota = await fetch(`${gateway.baseUrl}/faults`, {
    method: "PATCH",
    body: '{"quota":{"all":1},"latencyMs":7}',
    headers: { "content-type": "application/json" },
  });
  expect([quota.status, JSON.parse(await quota.text()).error.field]).toEqual([400, "quota"]);
  expect(JSON.parse((await get("/faults"))[1])).toMatchObject({ latencyMs: 0, quota: {} });
  const token = await gateway.issueToken();
  const refused = await fetch(`${gateway.baseUrl}/v1/workspaces`, { headers: { authorization: `Bearer ${token}` } });
  expect([refused.status, Object.keys(JSON.parse(await refused.text()))]).toEqual([500, ["error"]]);
});
