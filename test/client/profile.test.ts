/** Profiles: what is wrong with a file is said line by line, and a client with one speaks another gateway's words. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/create-client.ts";
import { staticToken } from "../../src/client/credentials.ts";
import { OWN_PROFILE, type Profile, parseProfile } from "../../src/client/profile.ts";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import type { ContentSource, HttpRequest, Transport } from "../../src/contract/http.ts";
import { createBareGateway } from "../../src/gateway/bare.ts";
import { BARE_PROFILE } from "../../src/gateway/start.ts";
import { SILENT } from "../../src/lib/log.ts";
import { createCoreTransport } from "../support/core-transport.ts";
import { PLAIN, PLAINEST, without } from "../support/features.ts";
import { createTestCore } from "../support/gateway-core.ts";

const faultsOf = (value: unknown): string => {
  try {
    parseProfile(typeof value === "string" ? value : JSON.stringify(value), "p.json");
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "none";
};

describe("a profile file is checked, one line for each fault", () => {
  test.each<[string, unknown, string]>([
    ["no JSON", "{", "p.json: expected JSON: "],
    ["a text of several lines that is no JSON", '{\n"a\nb', "p.json: expected JSON: Bad control character"],
    ["no name", {}, "p.json: name: "],
    ["an unknown part", { name: "x", operation: {} }, 'p.json: unknown "operation"'],
    ["an unknown feature", { name: "x", features: { speed: true } }, "p.json: features"],
    ["an unknown operation", { name: "x", operations: { fly: null } }, "p.json: operations"],
    ["a field nobody has", { name: "x", fields: { node: { nam: "n" } } }, "p.json: fields.node.nam: unknown field"],
    ["a path without its slash", { name: "x", operations: { getNode: { path: "v1" } } }, "p.json: operations.getNode"],
    [
      "an unknown word in a path",
      { name: "x", operations: { getNode: { path: "/n/{id}" } } },
      "p.json: operations.getNode.path: unknown {id}, expected one of nodeId,",
    ],
    [
      "a mount without deletions",
      { name: "x", operations: { deleteNode: null } },
      "p.json: operations.deleteNode: expected an operation",
    ],
    ["an unknown tier", { name: "x", tier: "middle" }, "p.json: tier"],
    [
      "a full gateway without exchanges",
      { name: "x", operations: { exchangeNodes: null } },
      'p.json: operations.exchangeNodes: expected an operation, without it the gateway is plain ("tier": "plain")',
    ],
    ["a node without id", { name: "x", fields: { node: { id: null } } }, "p.json: fields.node.id: expected a field"],
    [
      "an upload that says nothing",
      { name: "x", operations: { upload: { answer: "none" } } },
      'p.json: operations.upload.answer: expected "full"',
    ],
  ])("%s", (_, value, expected) => {
    const said = faultsOf(value);
    expect(said.startsWith(expected), said).toBe(true);
    expect(said.split("\n")).toHaveLength(1);
  });

  test("two faults are two lines", () => {
    const value = { name: "x", operations: { deleteNode: null, getNode: null } };
    expect(faultsOf(value).split("\n")).toHaveLength(2);
  });

  test("what differs is all it needs to say", () => {
    expect(parseProfile('{"name":"same"}', "p.json")).toEqual({ ...OWN_PROFILE, name: "same" });
  });

  test.each<[object, Features, string | undefined]>([
    [{ tier: "plain", features: { ranges: false } }, { ...PLAIN, ranges: false }, undefined],
    [{ features: { hashes: false } }, without("hashes"), undefined],
    [{ features: { versions: true } }, ALL_FEATURES, '"tier": "full"'],
    [{ tier: "full", features: { journal: false } }, PLAIN, '"tier": "plain"'],
    [{ features: { exchanges: false }, operations: { exchangeNodes: null } }, PLAIN, '"tier": "plain"'],
    [
      { otherFeatures: false, features: { uploadKeys: true } },
      PLAINEST,
      '"tier": "plain", "features": { "ranges": false, "hashes": false, "attributes": false }',
    ],
  ])(
    "%j: a tier and three features; of what earlier releases wrote it is said what was taken",
    (value, features, taken) => {
      const profile = parseProfile(JSON.stringify({ name: "x", ...value }), "p.json");
      expect(profile.features).toEqual(features);
      const words = "profile x: its features are those of an earlier release; taken as";
      expect(profile.warning).toBe(taken === undefined ? undefined : `${words} ${taken}`);
    },
  );

  test("what was taken is logged once", () => {
    const lines: string[] = [];
    const log = { ...SILENT, warn: (_: object, line: string) => void lines.push(line) };
    const profile = parseProfile('{"name":"x","otherFeatures":true}', "p.json");
    const transport = { send: () => Promise.reject(new Error("nothing is sent")), async close() {} };
    createClient({ transport, credentials: staticToken("token"), profile, log });
    expect(lines).toEqual([profile.warning]);
  });
});

const contentOf = (text: string): ContentSource => ({
  size: Buffer.byteLength(text),
  async *read() {
    yield Buffer.from(text);
  },
});

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** A client of a gateway in memory, and the requests that reach it. */
function start(profile: Profile, isBare: boolean) {
  const core = createTestCore();
  const gateway = isBare ? createBareGateway(core.gateway) : core.gateway;
  const inner = createCoreTransport(() => gateway);
  const requests: HttpRequest[] = [];
  const transport: Transport = {
    async send(request) {
      requests.push(request);
      return inner.send(request);
    },
    close: () => inner.close(),
  };
  const { wallClock: now } = core.clock;
  const client = createClient({ transport, credentials: staticToken(core.token()), now, profile });
  return { core, client, requests };
}

const bare = parseProfile(readFileSync(BARE_PROFILE, "utf8"), BARE_PROFILE);

test("a bare gateway is used through its profile: all that a mount asks", async () => {
  const { client, core } = start(bare, true);
  const workspace = await client.findWorkspace("workspace");
  const root = workspace?.rootId ?? "";
  const folder = await client.createFolder(root, "d é", { attributes: { mode: 0o700 }, idempotencyKey: "k" });
  expect(folder).toMatchObject({ kind: "folder", name: "d é", parentId: root, attributes: {}, revision: 0 });
  expect(folder.position).toBe(core.clock.wallClock());
  const file = await client.upload(folder.id, "a b", contentOf("one"), {
    idempotencyKey: "u",
    attributes: { mode: 1 },
  });
  expect(file).toMatchObject({ kind: "file", path: "/d é/a b", parentId: folder.id, size: 3, contentHash: null });
  const written = await client.writeContent(file.id, contentOf("two!"), { ifHead: file.head ?? "" });
  expect(written.head).not.toBe(file.head);
  const got = await client.getContent(file.id, { version: written.head ?? "", range: { start: 1, end: 2 } });
  expect(got).toMatchObject({ version: written.head, start: 0, size: 4 });
  expect(await textOf(got.bytes)).toBe("two!");
  await expect(client.getContent(file.id, { version: file.head ?? "" })).rejects.toMatchObject({ code: "notFound" });
  const moved = await client.patchNode(file.id, { parentId: root, name: "c" }, { ifRevision: 7 });
  expect(moved).toMatchObject({ path: "/c", parentId: root });
  expect((await client.listFolder(root)).items.map(({ name }) => name)).toEqual(["c", "d é"]);
  expect((await client.listFolder(root, { name: "c" })).items.map(({ id }) => id)).toEqual([file.id]);
  await client.deleteNode(file.id, { ifRevision: 7 });
  await expect(client.getNode(file.id)).rejects.toMatchObject({ code: "notFound" });
});

test("conditions a gateway does not keep are looked at before the request", async () => {
  const { client, core } = start(bare, true);
  const file = await client.upload(core.workspace.root, "a", contentOf("one"));
  const again = client.upload(core.workspace.root, "a", contentOf("two"));
  await expect(again).rejects.toMatchObject({ code: "changed", details: { node: { id: file.id } } });
  const head = client.writeContent(file.id, contentOf("two"), { ifHead: "another" });
  await expect(head).rejects.toMatchObject({ code: "changed", details: { node: { head: file.head } } });
  const folder = client.createFolder(core.workspace.root, "a");
  await expect(folder).rejects.toMatchObject({ code: "conflict", details: { node: { id: file.id } } });
  await expect(client.restoreNode(file.id)).rejects.toThrow("restoreNode: the gateway does not have it (profile bare)");
});

test("numbered pages are walked by after=, and an old upload key is answered again", async () => {
  const { client, core, requests } = start(bare, true);
  const root = core.workspace.root;
  for (let index = 0; index < 5; index += 1) await client.upload(root, `f${index}`, contentOf(`${index}`));
  const names: string[] = [];
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page = await client.listFolder(root, { pageSize: 2, after });
    names.push(...page.items.map(({ name }) => name));
    after = page.next ?? undefined;
  }
  expect(names).toEqual(["f0", "f1", "f2", "f3", "f4"]);
  const sent = requests.filter(({ path }) => path.startsWith("/v1/folders/")).at(-1);
  expect(sent?.query).toEqual({ pageNo: "3", pageSize: "2" });
});

test("nested fields, other words, times and headers both ways", async () => {
  const profile = parseProfile(
    JSON.stringify({
      name: "nested",
      operations: { getNode: { path: "/n/{nodeId}" }, patchNode: { method: "POST", path: "/n/{nodeId}" } },
      fields: {
        node: {
          name: "at.title",
          kind: { at: "is", values: { file: 1, folder: 2 } },
          modifiedAt: { at: "at.time", format: "seconds" },
        },
        nodePatch: { name: "to.title" },
      },
      headers: { "If-Match": "X-Was" },
    }),
    "p.json",
  );
  const requests: HttpRequest[] = [];
  const told = {
    ...{ id: "n", is: 1, at: { title: "a", time: 1_700_000_000 }, path: "/a", parentId: "r", mimeType: null, size: 1 },
    ...{ head: "v", contentHash: null, lastKey: null, revision: 3, createdAt: "2026-01-01T00:00:00+01:00" },
    ...{ attributes: {}, position: 9 },
  };
  const transport: Transport = {
    async send(request) {
      requests.push(request);
      const body = (async function* () {
        yield Buffer.from(JSON.stringify(told));
      })();
      return { status: 200, headers: {}, body };
    },
    async close() {},
  };
  const client = createClient({ transport, credentials: staticToken("token"), profile });
  const node = await client.patchNode("n", { name: "b" }, { ifRevision: 3 });
  expect(node).toMatchObject({ kind: "file", name: "a", modifiedAt: "2023-11-14T22:13:20.000Z", revision: 3 });
  expect(node.createdAt).toBe("2025-12-31T23:00:00.000Z");
  expect(requests[0]).toMatchObject({ method: "POST", path: "/n/n", headers: { "x-was": '"3"' } });
  expect(requests[0]?.body).toEqual({ kind: "json", value: { to: { title: "b" } } });
});

test("a feature that is switched off reaches the gateway in no request and the engine in no answer", async () => {
  const { client, core, requests } = start({ ...OWN_PROFILE, features: { ...PLAIN, attributes: false } }, false);
  const file = await client.createFolder(core.workspace.root, "a", {
    attributes: { mode: 0o600 },
    idempotencyKey: "k",
  });
  expect(file).toMatchObject({ revision: 0, attributes: {} });
  expect(JSON.stringify(requests)).not.toMatch(/"k"|mode/);
  await client.patchNode(file.id, { name: "b" }, { ifRevision: 99 });
  expect(requests.at(-1)?.headers).not.toHaveProperty("if-match");
});

test("the bare gateway has nothing of ours", async () => {
  const core = createTestCore();
  const gateway = createBareGateway(core.gateway);
  const headers = { authorization: `Bearer ${core.token()}` };
  const statusOf = async (method: string, path: string, query = {}) =>
    (await gateway.handle({ method, path, query, headers })).status;
  expect(await statusOf("GET", "/v1/workspaces")).toBe(200);
  for (const path of ["/v1/nodes", "/v1/journal", `/v1/nodes/${core.workspace.root}/versions`, "/openapi.json"]) {
    expect(await statusOf("GET", path), path).toBe(404);
  }
  expect(await statusOf("GET", `/v1/folders/${core.workspace.root}/entries`, { name: "a" })).toBe(400);
  const file = await core.file("/a", "text");
  const answer = await gateway.handle({
    method: "GET",
    path: `/v1/nodes/${file.id}/content`,
    query: {},
    headers: { ...headers, range: "bytes=0-0" },
  });
  expect(answer.status).toBe(200);
  expect(Object.keys(answer.headers)).not.toContain("etag");
});

test("the profile that docs/gateway/profiles.md shows is one", () => {
  const page = readFileSync(new URL("../../docs/gateway/profiles.md", import.meta.url), "utf8");
  const shown = page.split("```").find((block) => block.includes('"name": "theirs"'));
  expect(faultsOf(shown)).toBe("none");
});
