/** Walks the operations table: no token, each scope missing, unknown ids, unknown and wrong fields. */
import { beforeEach, describe, expect, test } from "vitest";
import { INPUTS } from "../../src/contract/inputs.ts";
import { OPERATIONS, type Operation, type OperationName, operationPath } from "../../src/contract/operations.ts";
import {
  journalEntry,
  journalPage,
  node,
  nodePage,
  problem,
  versionPage,
  workspacePage,
  writtenNode,
} from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { type CallOptions, createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";

interface Example extends CallOptions {
  readonly nodeId?: string;
  readonly path?: string;
  readonly status?: number;
  readonly shape?: { parse(value: unknown): unknown };
}

let core: TestCore;
/** A good call of each operation. */
let examples: Readonly<Record<OperationName, () => Example>>;

beforeEach(async () => {
  core = createTestCore();
  const root = core.workspace.root;
  const file = await core.file("/d/f", "x");
  const other = await core.file("/d/g", "x");
  const gone = await core.file("/d/h", "x");
  await core.call("DELETE", `/v1/nodes/${gone.id}`);
  const body = () => uploadBody(part("metadata", "{}"), part("file", "x"));
  examples = {
    listWorkspaces: () => ({ shape: workspacePage }),
    listNodes: () => ({ query: { path: "/d" }, shape: nodePage }),
    getNode: () => ({ nodeId: file.id, shape: node }),
    getNodeByPath: () => ({ path: "d/f", shape: node }),
    getContent: () => ({ nodeId: file.id }),
    upload: () => ({ path: "d/new", body: body(), status: 201, shape: writtenNode }),
    writeContent: () => ({ nodeId: file.id, body: body(), shape: writtenNode }),
    createNode: () => ({ json: { parentId: root, name: "n", kind: "folder" }, status: 201, shape: writtenNode }),
    patchNode: () => ({ nodeId: file.id, json: { name: "n" }, shape: writtenNode }),
    exchangeNodes: () => ({ nodeId: file.id, json: { with: other.id }, shape: writtenNode }),
    deleteNode: () => ({ nodeId: file.id, shape: writtenNode }),
    restoreNode: () => ({ nodeId: gone.id, json: { idempotencyKey: "k" }, shape: writtenNode }),
    listVersions: () => ({ nodeId: file.id, shape: versionPage }),
    appendJournal: () => ({ json: { nodeId: file.id, kind: "seen" }, status: 201, shape: journalEntry }),
    readJournal: () => ({ shape: journalPage }),
    streamJournal: () => ({}),
  };
});

const names = Object.keys(OPERATIONS) as OperationName[];

function call(name: OperationName, changes: Example = {}) {
  const { nodeId = "", path = "", ...options } = { ...examples[name](), ...changes };
  return core.call(OPERATIONS[name].method, operationPath(name, { nodeId, path }), options);
}

describe.each(names)("%s", (name) => {
  const operation: Operation = OPERATIONS[name];

  test("answers in the contract's shape", async () => {
    const { status = 200, shape } = examples[name]();
    const answer = await call(name);
    expect(answer.status).toBe(status);
    shape?.parse(answer.json);
    if (shape !== undefined) expect(answer.headers["content-type"]).toBe("application/json");
  });

  test("needs a token that is this gateway's and has not expired", async () => {
    const forged = `${core.token().slice(0, -4)}AAAA`;
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    const unsigned = [none, core.token().split(".")[1], ""].join(".");
    for (const authorization of ["", "Basic eDp5", "Bearer", "Bearer x", `Bearer ${forged}`, `Bearer ${unsigned}`]) {
      const answer = await call(name, { headers: { authorization } });
      expect([answer.status, authorization]).toEqual([401, authorization]);
      expect(answer.headers["www-authenticate"]).toBe("Bearer");
      problem.parse(answer.json);
    }
    const shortLived = core.gateway.issueToken({ scopes: SCOPES, workspace: core.workspace.id, ttlSeconds: 60 });
    await core.clock.advance(59_000);
    expect((await call(name, { token: shortLived })).status).toBeLessThan(300);
    await core.clock.advance(1000);
    expect((await call(name, { token: shortLived })).status).toBe(401);
  });

  test("needs each of its scopes and no other", async () => {
    expect((await call(name, { token: core.token(operation.scopes) })).status).toBeLessThan(300);
    for (const scope of operation.scopes.filter((scope) => !operation.mayLack?.includes(scope))) {
      const before = core.blobs.contents.size;
      const answer = await call(name, { token: core.token(SCOPES.filter((other) => other !== scope)) });
      expect([answer.status, answer.json.scope]).toEqual([403, scope]);
      expect(core.blobs.contents.size).toBe(before);
    }
  });

  test("refuses unknown query fields by name", async () => {
    const answer = await call(name, { query: { ...examples[name]().query, nonsense: "1" } });
    expect([answer.status, answer.json.field]).toEqual([400, "nonsense"]);
  });

  test("refuses another method", async () => {
    const path = operationPath(name, { nodeId: "x", path: "x" });
    const answer = await core.call("OPTIONS", path);
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toContain(operation.method);
  });
});

const byId = names.filter((name) => OPERATIONS[name].path.includes("{nodeId}"));

test.each(byId)("%s of an unknown id is not found, of another workspace's node forbidden", async (name) => {
  const unknown = await call(name, { nodeId: "5ca1ab1e-0000-4000-8000-000000000000" });
  expect(unknown.status).toBe(404);
  problem.parse(unknown.json);
  const other = core.gateway.ensureWorkspace("other");
  expect((await call(name, { nodeId: other.root })).status).toBe(403);
});

const withBody = names.filter((name) => "body" in INPUTS[name]);

test.each(withBody)("%s refuses a body that is no object or has wrong or unknown fields", async (name) => {
  const good = examples[name]().json ?? { copyOf: examples[name]().nodeId };
  const send = async (json: unknown) => {
    const { body: _, ...example } = examples[name]();
    const { nodeId = "", path = "" } = example;
    return core.call(OPERATIONS[name].method, operationPath(name, { nodeId, path }), { json });
  };
  for (const json of [null, [], "x", 5]) expect([(await send(json)).status, json]).toEqual([400, json]);
  for (const field of Object.keys(good)) {
    const answer = await send({ ...good, [field]: { wrong: true } });
    expect([answer.status, answer.json.field]).toEqual([400, field]);
  }
  const answer = await send({ ...good, nonsense: 1 });
  expect([answer.status, answer.json.field]).toEqual([400, "nonsense"]);
  expect((await send(good)).status).toBeLessThan(300);
});

test("what is not in the table is not found", async () => {
  for (const path of [
    "/",
    "/v1",
    "/v1/",
    "/v2/nodes",
    "/v1/nodes/",
    "/v1/nodes/x/y",
    "/v1/nodes/x/content/y",
    "/v1/nodesx",
  ]) {
    expect([path, (await core.call("GET", path)).status]).toEqual([path, 404]);
  }
  expect((await core.call("GET", "/v1/nodes/%FF")).json.field).toBe("nodeId");
});
