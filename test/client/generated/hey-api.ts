/** The main calls by the client that @hey-api/openapi-ts made. Compiled and run by ../generated.test.ts. */
import assert from "node:assert/strict";
import { client } from "./hey/client.gen.js";
import * as api from "./hey/index.js";

const { WSFS_BASE_URL: baseUrl = "", WSFS_TOKEN: token = "" } = process.env;
client.setConfig({ baseUrl, auth: token });

const workspaces = await api.listWorkspaces({ query: { orderBy: "name" }, throwOnError: true });
assert.equal(workspaces.data.items[0]?.name, "hey-api");

const path = "reports/2026/50% ä & more.txt";
const made = await api.upload({
  path: { path },
  body: { file: new Blob(["first"]), metadata: { attributes: { mode: 0o600 } } },
  throwOnError: true,
});
assert.equal(made.response.status, 201);
const node = made.data;
assert.deepEqual([node.path, node.size, node.attributes.mode], [`/${path}`, 5, 0o600]);
const first = node.head;
assert.ok(typeof first === "string");
const nodeId = node.id;

const byPath = await api.getNodeByPath({ path: { path }, throwOnError: true });
assert.equal(byPath.data.id, nodeId);
const byId = await api.getNode({ path: { nodeId }, throwOnError: true });
assert.equal(byId.data.path, `/${path}`);

const headers = { "If-Match": `"${first}"` };
const written = await api.writeContent({ path: { nodeId }, headers, body: { file: new Blob(["second version"]) } });
assert.equal(written.data?.size, 14);
const late = await api.writeContent({ path: { nodeId }, headers, body: { file: new Blob(["late"]) } });
assert.deepEqual([late.response?.status, late.error?.status, late.data], [412, 412, undefined]);

const back = await api.writeReference({ path: { nodeId }, body: { copyOf: nodeId, version: first } });
assert.equal(back.data?.size, 5);
const content = await api.getContent({ path: { nodeId }, parseAs: "text" });
assert.equal(content.data, "first");
const versions = await api.listVersions({ path: { nodeId } });
assert.deepEqual(
  versions.data?.items.map(({ size }) => size),
  [5, 14, 5],
);

const parentId = workspaces.data.items[0].rootId;
const folder = await api.createNode({ body: { parentId, name: "moved here", kind: "folder" }, throwOnError: true });
assert.equal(folder.data.path, "/moved here");
const moved = await api.patchNode({
  path: { nodeId },
  body: { parentId: folder.data.id, name: "report", attributes: { mode: 0o644 } },
});
assert.equal(moved.data?.path, "/moved here/report");
const listed = await api.listNodes({ query: { path: "/moved here", recursive: "true" } });
assert.deepEqual(
  listed.data?.items.map(({ name, attributes }) => [name, attributes.mode]),
  [["report", 0o644]],
);

const removed = await api.deleteNode({ path: { nodeId } });
assert.equal(removed.response?.status, 200);
const gone = await api.getNodeByPath({ path: { path: "moved here/report" } });
assert.equal(gone.error?.status, 404);
const restored = await api.restoreNode({ path: { nodeId } });
assert.equal(restored.data?.path, "/moved here/report");

const entry = await api.appendJournal({ body: { nodeId, kind: "reviewed" } });
const journal = await api.readJournal({ query: { pageSize: 1000 } });
assert.equal(journal.data?.items.at(-1)?.position, entry.data?.position);

// Leaving the loop does not end its connection.
const over = new AbortController();
const after = String((entry.data?.position ?? 1) - 1);
const { stream } = await api.streamJournal({ query: { after }, signal: over.signal });
for await (const event of stream) {
  // A stream of events is text to OpenAPI 3.1; this client reads the JSON in each.
  assert.deepEqual(event as unknown, entry.data);
  break;
}
over.abort();
process.stdout.write("all of it\n");
