/** Folders copied whole, while others change them, and what readers see of it. */
import { beforeEach, expect, test } from "vitest";
import type { Node } from "../../src/contract/resources.ts";
import { COPY_NODES_MAX } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { makeFilledFolder } from "../support/many-nodes.ts";

let core: TestCore;
let root: string;
beforeEach(() => {
  core = createTestCore();
  root = core.workspace.root;
});

const copy = (json: Record<string, unknown>, token = core.token()) =>
  core.call("POST", "/v1/nodes", { json: { parentId: root, ...json }, token });

function fill(name: string, count: number): string {
  const { database, clock, workspace } = core;
  return makeFilledFolder({ database, clock, workspace: workspace.id, parent: root, name, count });
}

async function below(path: string, query: Record<string, string> = {}): Promise<Node[]> {
  const answer = await core.call("GET", "/v1/nodes", {
    query: { path, recursive: "true", orderBy: "path", pageSize: "1000", ...query },
  });
  expect([answer.status, answer.bytes.toString()]).toEqual([200, answer.bytes.toString()]);
  return JSON.parse(answer.bytes.toString()).items;
}

/** What a copy has in common with what it is a copy of. */
const common = ({ kind, path, size, contentHash, mimeType, attributes }: Node, from: string) => ({
  kind,
  path: path.slice(from.length),
  size,
  contentHash,
  mimeType,
  attributes,
});

async function sample(): Promise<string> {
  await core.file("/d/a", "one", { metadata: { attributes: { mode: 0o600, mtime: "5.000000000" } } });
  await core.file("/d/a", "one and a half", { metadata: { attributes: { mode: 0o640 } } });
  await core.file("/d/sub/b", "two", { metadata: { attributes: { link: { group: "g", hash: "" }, mode: 0o444 } } });
  await core.file("/d/sub/deep/c", "three");
  await core.folder(String((await core.call("GET", "/v1/files/d")).json.id), "empty");
  return (await core.call("GET", "/v1/files/d")).json.id;
}

test("a folder is copied with all below it, as new nodes with their own history", async () => {
  const id = await sample();
  await core.call("PATCH", `/v1/nodes/${id}`, { json: { attributes: { mode: 0o700 } } });
  const start = (await core.call("GET", "/v1/journal")).json.asOf;
  const answer = await copy({ copyOf: id, name: "copy", idempotencyKey: "k" });
  expect([answer.status, answer.json.path, answer.json.attributes]).toEqual([201, "/copy", { mode: 0o700 }]);
  const [from, to] = [await below("/d"), await below("/copy")];
  const unlinked = from.map((node) => {
    const { link: _, ...attributes } = node.attributes;
    return common({ ...node, attributes }, "/d");
  });
  expect(to.map((node) => common(node, "/copy"))).toEqual(unlinked);
  expect(from.length).toBe(6);
  const ids = new Set([...from, ...to].map((node) => node.id));
  expect(ids.size).toBe(12);
  for (const node of to) expect([node.revision, node.lastKey]).toEqual([1, "k"]);
  // One entry for each node, a folder before what is in it, the answer's position last.
  const { items } = (await core.call("GET", "/v1/journal", { query: { after: String(start) } })).json;
  expect(items.map(({ nodeId }) => nodeId).sort()).toEqual([answer.json.id, ...to.map((node) => node.id)].sort());
  const seen = new Set([root]);
  for (const entry of items) {
    expect([entry.kind, seen.has(String(entry.parentId)), entry.key]).toEqual(["created", true, "k"]);
    seen.add(entry.nodeId);
  }
  expect(answer.json.position).toBe(items.at(-1)?.position);
  // Contents are read and written on their own.
  const [copied] = to.filter(({ name }) => name === "a");
  expect((await core.call("GET", `/v1/nodes/${copied?.id}/content`)).bytes.toString()).toBe("one and a half");
  await core.upload("/v1/files/copy/a", "changed");
  expect((await core.call("GET", `/v1/nodes/${from[0]?.id}/content`)).bytes.toString()).toBe("one and a half");
  const versions = (await core.call("GET", `/v1/nodes/${copied?.id}/versions`)).json;
  expect(versions.items.map(({ number }) => number)).toEqual([1, 2]);
  const used = (await core.call("GET", "/v1/workspaces")).json.items[0]?.used;
  expect(used).toBe("one and a half".length + 2 * "two".length + 2 * "three".length + "changed".length);
  // And the same again is the same answer, also when the source is gone.
  for (const node of [...from].reverse()) await core.call("DELETE", `/v1/nodes/${node.id}`);
  await core.call("DELETE", `/v1/nodes/${id}`);
  expect((await copy({ copyOf: id, name: "copy", idempotencyKey: "k" })).json).toEqual(answer.json);
});

test("a folder is copied into itself as it was before", async () => {
  const id = await sample();
  const before = (await below("/d")).map(({ path }) => path);
  expect((await copy({ copyOf: id, name: "inside", parentId: id })).status).toBe(201);
  const inside = before.map((path) => path.replace("/d", "/d/inside"));
  expect((await below("/d")).map(({ path }) => path)).toEqual([...before, "/d/inside", ...inside].sort());
});

test("names that are taken, versions, and trees that are too large are refused", { timeout: 300_000 }, async () => {
  const id = await sample();
  const taken = await copy({ copyOf: id, name: "d" });
  expect([taken.status, taken.json.node.id]).toEqual([409, id]);
  expect((await copy({ copyOf: id, name: "x", version: "v" })).json.field).toBe("version");
  const folder = fill("large", COPY_NODES_MAX);
  const large = await copy({ copyOf: folder, name: "x" });
  expect([large.status, large.json.field]).toEqual([413, "copyOf"]);
  expect(large.json.detail).toContain(String(COPY_NODES_MAX - 1));
  const { items } = (await core.call("GET", "/v1/nodes", { query: { parentId: folder, pageSize: "1" } })).json;
  await core.call("DELETE", `/v1/nodes/${items[0]?.id}`);
  expect((await copy({ copyOf: folder, name: "x" })).status).toBe(201);
  expect((await core.call("GET", "/v1/nodes", { query: { path: "/x" } })).json.totalCount).toBe(COPY_NODES_MAX - 1);
  expect(await core.names("/")).toEqual(["d", "large", "x"]);
});

test("what changes while a folder is read is in the copy or is not, never half of it", {
  timeout: 300_000,
}, async () => {
  const COUNT = 3000;
  const folder = fill("d", COUNT);
  // It is among those that are read first.
  const marker = await core.file("/d/a-marker", "start");
  const states = ["start"];
  const copying = copy({ copyOf: folder, name: "copy" });
  let isDone = false;
  void copying.then(() => {
    isDone = true;
  });
  /** Which of the states a copy may show that is made between now and the next change. */
  let since = 0;
  while (!isDone && states.length < 4) {
    const content = `after ${states.length}`;
    await core.upload("/v1/files/d/a-marker", content);
    states.push(content);
    if (!(await core.names("/")).includes("copy")) since = states.length - 1;
    else {
      const { totalCount } = (await core.call("GET", "/v1/nodes", { query: { path: "/copy", pageSize: "1" } })).json;
      expect(totalCount).toBe(COUNT + 1);
    }
    await core.clock.settle();
  }
  expect((await copying).status).toBe(201);
  const shown = (await core.call("GET", "/v1/nodes", { query: { path: "/copy", name: "a-marker" } })).json.items[0];
  const content = (await core.call("GET", `/v1/nodes/${shown?.id}/content`)).bytes.toString();
  // Not what was there when the reading began, if it was changed since.
  expect(states.slice(since)).toContain(content);
  expect((await core.call("GET", "/v1/nodes", { query: { path: "/copy" } })).json.totalCount).toBe(COUNT + 1);
  expect(marker.id).not.toBe(shown?.id);
});

test("the path index shows all of a copy at one moment", async () => {
  const id = await sample();
  core.gateway.setOptions({ pathLagMs: 1000 });
  await copy({ copyOf: id, name: "copy" });
  expect(await core.names("/")).toEqual(["d"]);
  await core.clock.advance(999);
  expect(await core.names("/")).toEqual(["d"]);
  await core.clock.advance(1);
  expect((await below("/copy")).length).toBe(6);
});

test("without node.journal.create the folders of a copy stay unprovisioned", async () => {
  const id = await sample();
  const token = core.token(SCOPES.filter((scope) => scope !== "node.journal.create"));
  const answer = await copy({ copyOf: id, name: "copy" }, token);
  expect(answer.status).toBe(201);
  expect((await core.node(answer.json.id)).path).toBe("/copy");
  expect((await core.call("GET", "/v1/files/copy")).status).toBe(404);
  expect(await core.names("/")).toEqual(["d"]);
  await core.call("POST", "/v1/journal", { json: { nodeId: answer.json.id, kind: "seen" } });
  expect(await core.names("/copy")).toEqual(["a"]);
});
