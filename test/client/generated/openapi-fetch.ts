/** The main calls by openapi-fetch, over types that openapi-typescript made. Compiled and run by ../generated.test.ts. */
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const { WSFS_BASE_URL: baseUrl = "", WSFS_TOKEN: token = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

/** An upload goes as a form. */
const form = {
  bodySerializer(body: { metadata?: unknown; file: string }) {
    const data = new FormData();
    if (body.metadata !== undefined) data.append("metadata", JSON.stringify(body.metadata));
    data.append("file", new Blob([body.file]), "file");
    return data;
  },
};

const workspaces = await client.GET("/v1/workspaces", { params: { query: { orderBy: "name" } } });
assert.equal(workspaces.data?.items[0]?.name, "openapi-fetch");

const path = "reports/2026/50% ä & more.txt";
const made = await client.POST("/v1/files/{path}", {
  params: { path: { path } },
  body: { file: "first", metadata: { attributes: { mode: 0o600 } } },
  ...form,
});
assert.equal(made.response.status, 201);
const node = made.data;
assert.ok(node);
assert.deepEqual([node.path, node.size, node.attributes.mode], [`/${path}`, 5, 0o600]);
const first = node.head;
assert.ok(typeof first === "string");
const nodeId = node.id;

const byPath = await client.GET("/v1/files/{path}", { params: { path: { path } } });
assert.equal(byPath.data?.id, nodeId);
const byId = await client.GET("/v1/nodes/{nodeId}", { params: { path: { nodeId } } });
assert.equal(byId.data?.path, `/${path}`);

const written = await client.PUT("/v1/nodes/{nodeId}/content", {
  params: { path: { nodeId }, header: { "If-Match": `"${first}"` } },
  body: { file: "second version" },
  ...form,
});
assert.equal(written.data?.size, 14);
const late = await client.PUT("/v1/nodes/{nodeId}/content", {
  params: { path: { nodeId }, header: { "If-Match": `"${first}"` } },
  body: { file: "late" },
  ...form,
});
assert.deepEqual([late.response.status, late.error?.status, late.data], [412, 412, undefined]);

const back = await client.POST("/v1/nodes/{nodeId}/versions", {
  params: { path: { nodeId } },
  body: { copyOf: nodeId, version: first },
});
assert.equal(back.data?.size, 5);
const content = await client.GET("/v1/nodes/{nodeId}/content", { params: { path: { nodeId } }, parseAs: "text" });
assert.equal(content.data, "first");
const versions = await client.GET("/v1/nodes/{nodeId}/versions", { params: { path: { nodeId } } });
assert.deepEqual(
  versions.data?.items.map(({ size }) => size),
  [5, 14, 5],
);

const rootId = workspaces.data.items[0].rootId;
const folder = await client.POST("/v1/nodes", { body: { parentId: rootId, name: "moved here", kind: "folder" } });
assert.equal(folder.data?.path, "/moved here");
const moved = await client.PATCH("/v1/nodes/{nodeId}", {
  params: { path: { nodeId } },
  body: { parentId: folder.data.id, name: "report", attributes: { mode: 0o644 } },
});
assert.equal(moved.data?.path, "/moved here/report");
const listed = await client.GET("/v1/nodes", { params: { query: { path: "/moved here", recursive: "true" } } });
assert.deepEqual(
  listed.data?.items.map(({ name, attributes }) => [name, attributes.mode]),
  [["report", 0o644]],
);

const removed = await client.DELETE("/v1/nodes/{nodeId}", { params: { path: { nodeId } } });
assert.equal(removed.response.status, 200);
const gone = await client.GET("/v1/files/{path}", { params: { path: { path: "moved here/report" } } });
assert.equal(gone.error?.status, 404);
const restored = await client.POST("/v1/nodes/{nodeId}/restore", { params: { path: { nodeId } } });
assert.equal(restored.data?.path, "/moved here/report");

const entry = await client.POST("/v1/journal", { body: { nodeId, kind: "reviewed" } });
const journal = await client.GET("/v1/journal", { params: { query: { pageSize: 1000 } } });
assert.equal(journal.data?.items.at(-1)?.position, entry.data?.position);
process.stdout.write("all of it\n");
