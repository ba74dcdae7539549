/** Everything below a folder: as a stream where the gateway has one, in pages where not, with the same nodes. */
import { expect, test } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import type { HttpRequest, Transport } from "../../../src/contract/http.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { createCoreTransport } from "../../support/core-transport.ts";
import { createTestCore } from "../../support/gateway-core.ts";
import { makeFilledFolder } from "../../support/many-nodes.ts";
import { failureOf } from "../support/server.ts";

type Cut = (request: HttpRequest, lines: readonly string[]) => readonly string[] | RemoteError | number;

/** A real gateway with a small tree and a folder of several parts; `cut` says what arrives of each stream. */
async function treeOf(cut: Cut = (_, lines) => lines) {
  const core = createTestCore();
  for (const path of ["/a/1/x", "/a/2", "/b"]) await core.file(path, path);
  await core.folder(core.workspace.root, "empty");
  const { database, clock, workspace } = core;
  makeFilledFolder({ database, clock, workspace: workspace.id, parent: workspace.root, name: "many", count: 1200 });
  const network = createCoreTransport(() => core.gateway);
  const requests: HttpRequest[] = [];
  const transport: Transport = {
    async send(request) {
      requests.push(request);
      const answer = await network.send(request);
      if (answer.headers["content-type"] !== "application/x-ndjson") return answer;
      const chunks: Uint8Array[] = [];
      for await (const chunk of answer.body) chunks.push(chunk);
      const lines = Buffer.concat(chunks).toString().trimEnd().split("\n");
      const told = cut(request, lines);
      if (told instanceof RemoteError) throw told;
      if (typeof told === "number") {
        return { status: told, headers: { "content-type": "application/json" }, body: textOf("{}") };
      }
      return { ...answer, body: textOf(told.map((line) => `${line}\n`).join("")) };
    },
    async close() {},
  };
  const retries = { tries: 3, firstDelayMs: 0, maxDelayMs: 0 };
  const credentials = staticToken(core.token());
  const gateway = connect({ baseUrl: "http://core.invalid", transport, credentials, retries });
  const all = async () => {
    const nodes: Node[] = [];
    for await (const node of gateway.nodes.list({ recursive: true, pageSize: 1000 })) nodes.push(node);
    return nodes;
  };
  return { core, gateway, requests, all, count: 1207 };
}

async function* textOf(text: string): AsyncGenerator<Uint8Array> {
  // Characters of several bytes are cut as well.
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += 10_007) yield bytes.subarray(start, start + 10_007);
}

const byId = (nodes: readonly Node[]) => [...nodes].sort((a, b) => (a.id < b.id ? -1 : 1));
const pathsOf = (requests: readonly HttpRequest[]) => requests.map(({ path }) => path);

test("one request has all of it", async () => {
  const { gateway, requests, all, count } = await treeOf();
  const nodes = await all();
  expect(pathsOf(requests)).toEqual(["/v1/tree"]);
  expect(nodes).toHaveLength(count);
  const ordered = await gateway.nodes.list({ recursive: true, orderBy: "id", pageSize: 1000 }).all();
  expect(pathsOf(requests.slice(1))).toEqual(["/v1/nodes", "/v1/nodes"]);
  expect(byId(nodes)).toStrictEqual(byId(ordered));
  expect(await gateway.nodes.list({ recursive: true }).all()).toHaveLength(count);
  expect((await gateway.nodes.list({ recursive: true }).page(1)).items).toHaveLength(50);
});

test.each([404, 405, 406, 501])("a gateway that answers %i is asked for pages", async (status) => {
  const { requests, all, count } = await treeOf(() => status);
  expect(await all()).toHaveLength(count);
  expect(pathsOf(requests)).toEqual(["/v1/tree", "/v1/nodes", "/v1/nodes"]);
});

test("so is one that answers something else", async () => {
  const { requests, all, count } = await treeOf(() => 200);
  expect(await all()).toHaveLength(count);
  expect(pathsOf(requests)).toEqual(["/v1/tree", "/v1/nodes", "/v1/nodes"]);
});

test("cut at any line it goes on there, without loss or doubling", async () => {
  for (let at = 0; at < 1214; at += at < 20 ? 1 : 97) {
    let asked = 0;
    const { requests, all, core } = await treeOf((_, lines) => {
      asked += 1;
      return asked === 1 ? lines.slice(0, at) : lines;
    });
    const nodes = all();
    // A change that comes meanwhile comes after the stream's position.
    void core.file("/new", "x");
    const read = await nodes;
    expect(new Set(read.map(({ id }) => id)).size).toBe(read.length);
    // Cut before the first part, the stream begins anew.
    expect([1207, 1208]).toContain(read.length);
    expect(requests).toHaveLength(2);
  }
});

test("every part counts as progress: only tries in vain are limited", async () => {
  const { requests, all, count } = await treeOf((_, lines) => {
    // Two parts of each answer arrive: one that is known, and the next.
    const begins = lines.flatMap((line, index) => (line.startsWith('{"folder"') ? [index] : []));
    return lines.slice(0, (begins[2] ?? lines.length - 1) + 1);
  });
  expect(await all()).toHaveLength(count);
  expect(requests.length).toBeGreaterThan(3);
});

test.each([1, 2])("a stream that never gets further fails: cut after line %i that begins a folder", async (begin) => {
  const { requests, gateway } = await treeOf((_, lines) => {
    const begins = lines.flatMap((line, index) => (line.startsWith('{"folder"') ? [index] : []));
    return lines.slice(0, (begins[begin - 1] ?? 0) + 1);
  });
  expect(await failureOf(gateway.nodes.list({ recursive: true }).all())).toMatchObject({
    code: "server",
    message: expect.stringContaining("cut off"),
  });
  expect(requests).toHaveLength(3);
});

test("lines that do not fit are refused, once nodes have come", async () => {
  const wrong: Readonly<Record<string, (lines: readonly string[]) => readonly string[]>> = {
    "a count that is not right": (lines) => lines.filter((_, index) => index !== lines.length - 3),
    "a node among those of another folder": (lines) => [...lines.slice(0, -1), lines[1] ?? "", ...lines.slice(-1)],
    "what is no JSON": (lines) => [...lines.slice(0, -1), "{", ...lines.slice(-1)],
  };
  for (const change of Object.values(wrong)) {
    const { gateway } = await treeOf((_, lines) => change(lines));
    const failure = await failureOf(gateway.nodes.list({ recursive: true }).all());
    expect(failure).toMatchObject({ code: "malformed" });
  }
});
