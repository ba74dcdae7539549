/** The control endpoint: there only where it was asked for, and checked by the schema of the options. */
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { faultOptions } from "../../src/gateway/fault-options.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const problem = z.object({ status: z.number(), field: z.string().optional(), detail: z.string() });

async function start(control: boolean) {
  const gateway = await startGateway({ dataDir: await temporaryFolder(), control, latencyMs: 1 });
  onTestFinished(() => gateway.close());
  const ask = async (method: string, body?: string, query = "") => {
    const response = await fetch(`${gateway.baseUrl}/faults${query}`, {
      method,
      ...(body === undefined ? {} : { body, headers: { "content-type": "application/json" } }),
    });
    const json: unknown = await response.json();
    return { status: response.status, json, allow: response.headers.get("allow") };
  };
  return { gateway, ask };
}

test("without being asked for there is none", async () => {
  const { ask } = await start(false);
  expect((await ask("GET")).status).toBe(404);
  expect((await ask("PATCH", '{"failRate":1}')).status).toBe(404);
});

test("it shows and changes what the gateway does, and what it does not name stays", async () => {
  const { gateway, ask } = await start(true);
  const before = await ask("GET");
  expect(before.json).toEqual({ ...faultOptions.parse({}), latencyMs: 1 });
  const changes = { faults: { listWorkspaces: { throttled: 1 } }, retryAfterSeconds: 3 };
  const changed = await ask("PATCH", JSON.stringify(changes));
  expect([changed.status, changed.json]).toEqual([200, { ...faultOptions.parse({}), latencyMs: 1, ...changes }]);
  expect((await ask("GET")).json).toEqual(changed.json);
  const token = await gateway.issueToken();
  const list = () => fetch(`${gateway.baseUrl}/v1/workspaces`, { headers: { authorization: `Bearer ${token}` } });
  const refused = await list();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "3"]);
  await refused.arrayBuffer();
  // It meets no fault itself.
  await ask("PATCH", '{"faults":{"all":{"resetBefore":1}}}');
  await expect(list()).rejects.toThrow();
  expect((await ask("PATCH", '{"faults":{}}')).status).toBe(200);
  const answer = await list();
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
});

test("what it does not know or cannot be is a 400 naming the field, and nothing is changed", async () => {
  const { ask } = await start(true);
  const field = async (body: string) => {
    const { status, json } = await ask("PATCH", body);
    expect(status).toBe(400);
    return problem.parse(json).field;
  };
  expect(await field('{"latency":5,"failRate":1}')).toBe("latency");
  expect(await field('{"latencyMs":"5"}')).toBe("latencyMs");
  expect(await field('{"failRate":2}')).toBe("failRate");
  expect(await field('{"faults":{"uploads":{}}}')).toBe("faults.uploads");
  expect(await field('{"faults":{"upload":{"reset":1}}}')).toBe("faults.upload.reset");
  expect(await field('{"faults":{"upload":{"error":0.6,"resetAfter":0.6}}}')).toBe("faults.upload");
  expect(await field("[]")).toBe("body");
  expect(await field("{")).toBe("body");
  expect((await ask("PATCH")).status).toBe(400);
  expect((await ask("GET", undefined, "?x=1")).status).toBe(400);
  const other = await ask("POST", "{}");
  expect([other.status, other.allow]).toEqual([405, "GET, PATCH"]);
  expect((await ask("GET")).json).toEqual({ ...faultOptions.parse({}), latencyMs: 1 });
});

test("over HTTP a truncated answer has its whole head and the beginning of its body", async () => {
  const { gateway, ask } = await start(true);
  const token = await gateway.issueToken({ workspace: "workspace" });
  const headers = { authorization: `Bearer ${token}` };
  const body = new FormData();
  body.set("file", new Blob([new Uint8Array(300_000).fill(7)]), "f");
  const made = await fetch(`${gateway.baseUrl}/v1/files/f`, { method: "POST", headers, body });
  const { id } = z.object({ id: z.string() }).parse(await made.json());
  await ask("PATCH", '{"faults":{"getContent":{"truncatedAnswer":1}}}');
  const response = await fetch(`${gateway.baseUrl}/v1/nodes/${id}/content`, { headers });
  expect([response.status, response.headers.get("content-length")]).toEqual([200, "300000"]);
  await expect(response.arrayBuffer()).rejects.toThrow();
});
