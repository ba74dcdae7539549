/**
 * Walks the OpenAPI document as the gateway serves it and calls every operation in it over HTTP:
 * as it should be, without a token, without each scope, with unknown ids, and with every field of
 * query, JSON body and metadata wrong. Each answer is checked against the document.
 */
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { ATTRIBUTES_BYTES_MAX } from "../../src/contract/attributes.ts";
import { openApiDocument } from "../../src/contract/openapi.ts";
import { OVER_QUOTA, problem, THINNED } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import type { AnswerJson } from "../support/answer-json.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import {
  fieldsOf,
  type Schema,
  type WalkedOperation,
  walkDocument,
  withField,
  wrongQueryTexts,
  wrongValues,
} from "../support/openapi.ts";
import { type Example, elsewhere, filledPath, giveUp, makeExamples } from "./support/contract-examples.ts";
import { sendRaw, serveCore } from "./support/gateway-http.ts";

const UNKNOWN_ID = "5ca1ab1e-0000-4000-8000-000000000000";
/** Wrong values of query fields whose schema allows any text. */
const WRONG_TEXTS: Readonly<Record<string, readonly string[]>> = {
  after: ["x", "W10"],
  orderBy: ["nonsense", "-", "+name"],
  path: ["/a//b", "/a/..", "/%00", "/a/"],
  name: ["a/b", ".", "%00"],
};
/** Fields of bodies that hold the id of a node. */
const ID_FIELDS = ["parentId", "copyOf", "with", "nodeId", "engine"];
/** What a path names by its id. */
const BY_ID = /\{(\w+Id)\}/;

interface Read {
  readonly status: number;
  readonly headers: Headers;
  readonly json: AnswerJson;
}

const walked = walkDocument(openApiDocument());
const counts = { operations: walked.operations.length, requests: 0, fieldsWrong: 0, answersChecked: 0 };
/** Statuses each operation has answered with, in the whole walk. */
const met = new Map(walked.operations.map(({ id }) => [id, new Set<string>()]));

let core: TestCore;
let baseUrl: string;
let port: number;
/** Good calls by operation, the usual one first. */
let examples: Readonly<Record<string, readonly Example[]>>;
/** Calls the tree does not allow. */
let conflicts: Readonly<Record<string, Example>>;

beforeEach(async () => {
  core = createTestCore();
  ({ baseUrl, port } = await serveCore(core));
  ({ examples, conflicts } = await makeExamples(core));
});

afterAll(() => {
  process.stdout.write(`contract: ${JSON.stringify(counts)}\n`);
});

function good(operation: WalkedOperation): readonly [Example, ...Example[]] {
  const [first, ...more] = examples[operation.id] ?? [];
  if (first === undefined) throw new Error(`${operation.id} is new: add a good call of it to this test's examples.`);
  return [first, ...more];
}

function bodyOf({ json, metadata, file }: Example): { body?: string | FormData; type?: string } {
  if (json !== undefined) return { body: JSON.stringify(json), type: "application/json" };
  if (file === undefined) return {};
  const form = new FormData();
  if (metadata !== undefined) form.set("metadata", JSON.stringify(metadata));
  form.set("file", new Blob([file]), "name");
  return { body: form };
}

/** Whoever makes a workspace is bound to none. */
const tokenFor = ({ id }: WalkedOperation, scopes: readonly string[] = SCOPES) =>
  core.token(scopes, id === "createWorkspace" ? null : undefined);

/** Calls over HTTP, and checks the answer against the document. */
async function call(operation: WalkedOperation, example: Example, search = ""): Promise<Read> {
  const { query = {}, headers = {}, token = tokenFor(operation), method = operation.method } = example;
  const { body, type } = bodyOf(example);
  const parts = new URLSearchParams(query).toString();
  const filled = filledPath(operation.path, example);
  const answer = await fetch(`${baseUrl}${filled}?${[parts, search].filter((part) => part !== "").join("&")}`, {
    method,
    headers: {
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
      ...(type === undefined ? {} : { "content-type": type }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  counts.requests += 1;
  return checked(operation, method, answer);
}

/** Of an answer without end. */
async function firstBytes(answer: Response): Promise<Buffer> {
  const reader = answer.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return Buffer.from(value ?? []);
}

async function checked(operation: WalkedOperation, method: string, answer: Response): Promise<Read> {
  const type = answer.headers.get("content-type") ?? "";
  const bytes = type === "text/event-stream" ? await firstBytes(answer) : Buffer.from(await answer.arrayBuffer());
  const isJson = /^application\/(problem\+)?json$/.test(type) && answer.status !== 206;
  const json = isJson && bytes.length > 0 ? JSON.parse(bytes.toString()) : {};
  if (method !== operation.method) return { status: answer.status, headers: answer.headers, json };
  const described = operation.responses[String(answer.status)];
  const where = `${operation.id} ${answer.status} ${bytes.subarray(0, 300)}`;
  if (described === undefined) throw new Error(`The document does not know this answer: ${where}`);
  for (const name of Object.keys(described.headers ?? {}))
    expect([where, answer.headers.has(name)]).toEqual([where, true]);
  const [media, { schema } = { schema: {} }] = Object.entries(described.content ?? {})[0] ?? [];
  if (media === undefined) expect([where, bytes.length]).toEqual([where, 0]);
  else if (media !== "*/*") {
    expect([where, type]).toEqual([where, media]);
    if (isJson) expect([where, walked.problemsOf(schema, json)]).toEqual([where, undefined]);
    if (media === "text/event-stream") expect([where, bytes.length > 0]).toEqual([where, true]);
    if (media.startsWith("application/problem")) expect(json.status).toBe(answer.status);
  }
  counts.answersChecked += 1;
  met.get(operation.id)?.add(String(answer.status));
  return { status: answer.status, headers: answer.headers, json };
}

/** A 400 that names the field. */
async function refuses(operation: WalkedOperation, field: string, example: Example, search = ""): Promise<void> {
  const answer = await call(operation, example, search);
  // Of two things that it may be, it is neither.
  const named = field === "on" ? answer.json.field?.split(".")[0] : answer.json.field;
  const shown = JSON.stringify([field, search, example.query, example.json, example.metadata]).slice(0, 300);
  expect([shown, answer.status, named]).toEqual([shown, 400, field]);
}

describe.each(walked.operations)("$method $path ($id)", (operation) => {
  test("answers as the document says", async () => {
    const seen = new Set<number>();
    for (const example of good(operation)) seen.add((await call(operation, example)).status);
    const documented = Object.keys(operation.responses).map(Number);
    expect([...seen].toSorted()).toEqual(documented.filter((status) => status < 400).toSorted());
  });

  test("needs a token that is this gateway's and has not expired", async () => {
    const [example] = good(operation);
    const forged = `${core.token().slice(0, -4)}AAAA`;
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    const unsigned = [none, core.token().split(".")[1], ""].join(".");
    for (const token of ["", "x", forged, unsigned]) {
      const answer = await call(operation, { ...example, token });
      expect([token, answer.status]).toEqual([token, 401]);
    }
    const basic = await call(operation, { ...example, token: "", headers: { authorization: "Basic eDp5" } });
    expect([basic.status, basic.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    const workspace = operation.id === "createWorkspace" ? undefined : core.workspace.id;
    const shortLived = core.gateway.issueToken({ scopes: SCOPES, workspace, ttlSeconds: 60 });
    await core.clock.advance(59_000);
    expect((await call(operation, { ...example, token: shortLived })).status).toBeLessThan(300);
    await core.clock.advance(1000);
    expect((await call(operation, { ...example, token: shortLived })).status).toBe(401);
  });

  test("is refused where another name than the gateway's own is asked", async () => {
    const line = `${operation.method} ${filledPath(operation.path, good(operation)[0])} HTTP/1.1`;
    // fetch lets nobody name another host.
    const lines = [line, "Host: pages.example", `Authorization: Bearer ${core.token()}`, "Connection: close", "", ""];
    const [head = "", body] = (await sendRaw(port, lines.join("\r\n"))).split("\r\n\r\n");
    const headers = { "content-type": /^content-type: (.*)$/im.exec(head)?.[1] ?? "" };
    const answer = new Response(body ?? null, { status: Number(head.slice(9, 12)), headers });
    expect((await checked(operation, operation.method, answer)).status).toBe(421);
  });

  test("needs each of its scopes and no other", async () => {
    const [example] = good(operation);
    expect(operation.scopes.length > 0).toBe(operation.id !== "getAccount");
    for (const scope of operation.scopes.filter((one) => !operation.mayLack.includes(one))) {
      const before = core.blobs.contents.size;
      const token = tokenFor(
        operation,
        SCOPES.filter((other) => other !== scope),
      );
      const answer = await call(operation, { ...example, token });
      expect([answer.status, answer.json.scope]).toEqual([403, scope]);
      expect(core.blobs.contents.size).toBe(before);
    }
    // A key may do no more than the token that makes it.
    const given = operation.id === "createApiKey" ? ["node.file.read"] : [];
    const needed = [...operation.scopes.filter((one) => !operation.mayLack.includes(one)), ...given];
    expect((await call(operation, { ...example, token: tokenFor(operation, needed) })).status).toBeLessThan(300);
  });

  test("refuses every field of the query that is wrong, unknown or there twice", async () => {
    const [example] = good(operation);
    for (const [name, schema] of Object.entries(operation.query)) {
      const { [name]: _, ...query } = example.query ?? {};
      const wrong = [...wrongQueryTexts(schema), ...(WRONG_TEXTS[name] ?? [])];
      if (wrong.length === 0) throw new Error(`The query field ${name} has no wrong value here: add one.`);
      counts.fieldsWrong += 1;
      for (const text of wrong) {
        const value = text.startsWith("%") || text.startsWith("/%") ? text : encodeURIComponent(text);
        await refuses(operation, name, { ...example, query }, `${name}=${value}`);
      }
      await refuses(operation, name, { ...example, query }, `${name}=1&${name}=1`);
      await refuses(operation, name, { ...example, query }, `${name}=%FF`);
    }
    await refuses(operation, "nonsense", example, "nonsense=1");
    await refuses(operation, "__proto__", example, "__proto__=1");
  });

  test("refuses another method", async () => {
    const [example] = good(operation);
    const { headers, ...rest } = example;
    const answer = await call(operation, { ...rest, method: "OPTIONS" });
    expect(answer.status).toBe(405);
    problem.parse(answer.json);
    const named = walked.operations.filter(({ path }) => path === operation.path).map(({ method }) => method);
    const here = named.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
    expect(answer.headers.get("allow")?.split(", ").toSorted()).toEqual(here.toSorted());
  });
});

test.each(walked.operations.filter(({ method }) => method === "GET"))(
  "$id answers HEAD as GET, without the body",
  async (operation) => {
    const headersOf = ({ headers }: Read) =>
      [...headers].filter(
        ([name]) => !["date", "connection", "keep-alive", "transfer-encoding", "x-request-id"].includes(name),
      );
    for (const example of [...good(operation), { ...good(operation)[0], token: "" }]) {
      const head = await call(operation, { ...example, method: "HEAD" });
      // Of GET alone there are parts.
      const { range: _, ...headers } = example.headers ?? {};
      const get = await call(operation, { ...example, headers });
      expect([head.status, headersOf(head), head.json]).toEqual([get.status, headersOf(get), {}]);
    }
  },
);

const byId = walked.operations.filter(({ path }) => BY_ID.test(path));

test.each(byId)("$id of an unknown id is not found, of one of another workspace forbidden", async (operation) => {
  const [example] = good(operation);
  const parameter = BY_ID.exec(operation.path)?.[1] ?? "";
  for (const id of [UNKNOWN_ID, "x".repeat(300), "..%2F..", "%00"]) {
    expect([id, (await call(operation, { ...example, id })).status]).toEqual([id, 404]);
  }
  await refuses(operation, parameter, { ...example, id: "%FF" });
  const id = await elsewhere(core, parameter);
  if (id === undefined) return;
  expect((await call(operation, { ...example, id })).status).toBe(403);
  // A workspace that is named beside it is its own, or the call is refused.
  const named = (workspace: string, token = core.token()) => ({
    ...example,
    token,
    query: { ...example.query, workspace },
  });
  expect((await call(operation, named("other"))).status).toBe(403);
  expect((await call(operation, named("nowhere", core.token(undefined, null)))).status).toBe(404);
  expect((await call(operation, named("other", core.token(undefined, null)))).status).toBe(403);
  expect((await call(operation, named(core.workspace.name, core.token(undefined, null)))).status).toBeLessThan(300);
});

test.each(
  walked.operations.filter(({ path, query, body }) => "workspace" in query && body !== undefined && !BY_ID.test(path)),
)("$id in a workspace nobody has is not found", async (operation) => {
  const [example] = good(operation);
  const query = { ...example.query, workspace: "nowhere" };
  const answer = await call(operation, { ...example, query, token: core.token(undefined, null) });
  expect(answer.status).toBe(404);
});

test.each(walked.operations.filter(({ query, body }) => "account" in query || "account" in (body?.properties ?? {})))(
  "$id of an unknown account is not found",
  async (operation) => {
    const [example] = good(operation);
    const account = "nobody";
    const given =
      "account" in operation.query ? { query: { account } } : { json: { ...Object(example.json), account } };
    expect((await call(operation, { ...example, ...given })).status).toBe(404);
  },
);

test.each(walked.operations.filter(({ query }) => "path" in query || "parentId" in query))(
  "$id of an unknown path or folder is not found",
  async (operation) => {
    const [{ query: _, ...example }] = good(operation);
    if ("path" in operation.query) {
      expect((await call(operation, { ...example, query: { path: "/nowhere" } })).status).toBe(404);
    }
    expect((await call(operation, { ...example, query: { parentId: UNKNOWN_ID } })).status).toBe(404);
  },
);

const WHOLE_LINK = { group: "g", hash: "h", saves: ["s2", "s1"] };

/** Everything a body or a metadata part of this schema may be wrong in; `whole` names itself. */
async function refusesWrongFields(
  schema: Schema,
  sound: unknown,
  whole: string,
  send: (field: string, value: unknown) => Promise<void>,
) {
  for (const value of [null, [], "x", 5, true]) await send(whole, value);
  await send("nonsense", withField(sound, ["nonsense"], 1));
  for (const name of schema.required ?? []) {
    const rest = Object.entries(Object(sound)).filter(([key]) => key !== name);
    await send(name, Object.fromEntries(rest));
  }
  for (const { schema: field, names } of fieldsOf(walked, schema)) {
    const wrong = wrongValues(field, walked.resolve);
    // Any JSON.
    if (names.join() === "input") continue;
    if (wrong.length === 0) throw new Error(`The field ${names.join(".")} has no wrong value here: add one.`);
    counts.fieldsWrong += 1;
    for (const value of wrong) {
      const where = names[0] === "on" ? "on" : names.join(".");
      // A part of a link is wrong within a link that is otherwise whole.
      const around = names[1] === "link" && names.length > 2 ? WHOLE_LINK : undefined;
      const start = around === undefined ? sound : withField(sound, names.slice(0, 2), around);
      await send(where, withField(start, names, value));
    }
  }
}

test.each(walked.operations.filter(({ body }) => body !== undefined))(
  "$id refuses every field of its body that is wrong, unknown or missing",
  async (operation) => {
    const example = good(operation).find(({ json }) => json !== undefined);
    if (example === undefined || operation.body === undefined) throw new Error("No good JSON body.");
    await refusesWrongFields(operation.body, example.json, "body", (field, json) =>
      refuses(operation, field, { ...example, json }),
    );
    const { json: _, ...empty } = example;
    if (operation.bodyRequired) expect((await call(operation, empty)).status).toBe(400);
    expect((await call(operation, example)).status).toBeLessThan(300);
  },
);

test.each(walked.operations.filter(({ body }) => body !== undefined))(
  "$id of an id nobody has is not found",
  async (operation) => {
    const example = good(operation).find(({ json }) => json !== undefined) ?? {};
    const named = ID_FIELDS.filter((name) => name in (operation.body?.properties ?? {}));
    for (const name of named) {
      const { kind: _, ...json } = Object(example.json);
      const whole = operation.id === "createNode" && name === "parentId" ? example.json : json;
      const sent = operation.id === "appendJournal" ? example.json : whole;
      const answer = await call(operation, { ...example, json: withField(sent, [name], UNKNOWN_ID) });
      expect([name, answer.status]).toEqual([name, 404]);
    }
  },
);

test.each(walked.operations.filter(({ metadata }) => metadata !== undefined))(
  "$id refuses every field of its metadata that is wrong or unknown, and keeps nothing",
  async (operation) => {
    const example = good(operation).find(({ file }) => file !== undefined);
    if (example === undefined || operation.metadata === undefined) throw new Error("No good upload.");
    const file = "x".repeat(40_000);
    const before = core.blobs.contents.size;
    await refusesWrongFields(operation.metadata, {}, "metadata", (field, metadata) =>
      refuses(operation, field, { ...example, file, metadata }),
    );
    expect(core.blobs.contents.size).toBe(before);
    expect((await call(operation, example)).status).toBeLessThan(300);
  },
);

const byWorkspace = walked.operations.filter(
  ({ query, path, body }) => "workspace" in query && !BY_ID.test(path) && body === undefined,
);

test.each(byWorkspace)("$id with a token bound to no workspace has to name one", async (operation) => {
  const [example] = good(operation);
  const free = { ...example, token: core.token(undefined, null) };
  const named = (workspace: string) => ({ ...free, query: { ...example.query, workspace } });
  if (operation.id !== "listWorkspaces") {
    await refuses(operation, "workspace", free);
    expect((await call(operation, named("nowhere"))).status).toBe(404);
  }
  for (const name of [core.workspace.name, core.workspace.id]) {
    expect((await call(operation, named(name))).status).toBeLessThan(300);
  }
  core.gateway.ensureWorkspace("other");
  const bound = await call(operation, { ...named("other"), token: core.token() });
  expect(bound.status).toBe(403);
});

const withStatus = (status: number) => walked.operations.filter(({ responses }) => String(status) in responses);

test.each(withStatus(409))(
  "$id of what the tree does not allow is a conflict that shows the node",
  async (operation) => {
    const example = conflicts[operation.id];
    if (example === undefined) throw new Error(`${operation.id} has no conflict here: add one.`);
    const answer = await call(operation, example);
    expect(answer.status).toBe(409);
    if (/^\/v1\/(?:nodes|files)/.test(operation.path)) expect(answer.json.node.path).toMatch(/^\/d/);
  },
);

test.each(withStatus(429))("$id of what too much waits of says when to come again", async (operation) => {
  core.database.exec(`WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < 1000)
    INSERT INTO execution (id, workspace, engine, engine_name, installation, folder, state, position, created_at, input)
    SELECT 'more-' || n, workspace, engine, engine_name, installation, folder, 'queued', position, created_at, input
    FROM execution, more`);
  const answer = await call(operation, good(operation)[0]);
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "5"]);
});

test.each(withStatus(412))("$id with a condition that does not hold shows the node as it is", async (operation) => {
  const [usual, existing = usual] = good(operation);
  const example = operation.id === "upload" ? existing : usual;
  const answer = await call(operation, { ...example, headers: { "if-match": '"0"' } });
  expect([answer.status, answer.json.node.path]).toEqual([412, expect.stringMatching(/^\/d/)]);
  await refuses(operation, "If-Match", { ...example, headers: { "if-match": "bare" } });
});

test.each(withStatus(413))("$id with a body over the limit is refused", async (operation) => {
  core.gateway.setOptions({ maxFileBytes: 1000, maxJsonBytes: 500 });
  for (const example of good(operation)) {
    if (example.file === undefined) {
      const json = withField(example.json, ["idempotencyKey"], "x".repeat(500));
      const answer = await call(operation, { ...example, json });
      expect([answer.status, answer.json.field]).toEqual([413, "body"]);
    } else {
      const whole = await call(operation, { ...example, file: "x".repeat(1001) });
      expect([whole.status, whole.json.field]).toEqual([413, "file"]);
      const metadata = { attributes: { note: "x".repeat(500) } };
      const part = await call(operation, { ...example, metadata });
      expect([part.status, part.json.field]).toEqual([413, "metadata"]);
      expect((await call(operation, { ...example, file: "x".repeat(1000) })).status).toBeLessThan(300);
    }
  }
});

test.each(walked.operations.filter(({ body, metadata }) => "attributes" in ((metadata ?? body)?.properties ?? {})))(
  "$id with more attributes than a node may have is refused",
  async (operation) => {
    const [example] = good(operation);
    const attributes = { note: "x".repeat(ATTRIBUTES_BYTES_MAX) };
    const wrong =
      example.file === undefined
        ? { ...example, json: withField(example.json, ["attributes"], attributes) }
        : { ...example, metadata: { attributes } };
    const answer = await call(operation, wrong);
    expect([answer.status, answer.json.field]).toEqual([413, "attributes"]);
  },
);

test.each([
  ["upload", 0],
  ["upload", 1],
  ["writeContent", 0],
  ["writeReference", 0],
  ["createNode", 1],
  ["restoreNode", 0],
])("%s (%i) of more than the workspace may hold is refused in words of its own", async (id, index) => {
  const operation = withStatus(507).find((one) => one.id === id);
  const example = examples[id]?.[index];
  if (operation === undefined || example === undefined)
    throw new Error(`${id} does not say that it may be refused so.`);
  core.gateway.setOptions({ quota: { all: 0 } });
  const answer = await call(operation, { ...example, ...(example.file === undefined ? {} : { file: "xx" }) });
  expect([answer.status, answer.json.type, answer.json.quota]).toEqual([507, OVER_QUOTA, 0]);
});

test.each(withStatus(410))("$id of what the policy of retention has given up says so", async (operation) => {
  const answer = await call(operation, (await giveUp(core, examples))[operation.id] ?? {});
  expect([answer.status, answer.json.type]).toEqual([410, THINNED]);
});

test.each(withStatus(416))("$id of a range outside says how long it is and which version", async (operation) => {
  const [example] = good(operation);
  const answer = await call(operation, { ...example, headers: { range: "bytes=1-" } });
  expect([answer.status, answer.headers.get("content-range")]).toEqual([416, "bytes */1"]);
  const whole = await call(operation, example);
  expect(answer.headers.get("etag")).toBe(whole.headers.get("etag"));
});

test("every answer the document knows was met on this walk, but for failures of the gateway", () => {
  const missed = walked.operations.flatMap(({ id, responses }) =>
    Object.keys(responses)
      .filter((status) => !["500", "503", "507"].includes(status) && met.get(id)?.has(status) !== true)
      .map((status) => `${id} ${status}`),
  );
  expect(missed).toEqual([]);
});
