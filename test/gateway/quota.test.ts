/** What a workspace holds is counted exactly, and never goes over its quota: refused by a 507 of its own kind. */
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { connect, type RemoteError, staticToken } from "../../src/client/index.ts";
import { OVER_QUOTA, problem, workspacePage } from "../../src/contract/resources.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { forgetColumns } from "./support/older-store.ts";

let core: TestCore;

async function workspace() {
  const { items } = workspacePage.parse((await core.call("GET", "/v1/workspaces")).json);
  return items[0];
}

/** Counted anew, from the rows of history. */
function counted(): unknown {
  return core.database
    .prepare(
      `SELECT coalesce(sum(size), 0) FROM (
         SELECT v.size, row_number() OVER (PARTITION BY v.node, v.branch ORDER BY v.number DESC) AS place
         FROM version v JOIN node n ON n.id = v.node WHERE n.deleted = 0) WHERE place = 1`,
    )
    .pluck()
    .get();
}

const bytes = (count: number) => "x".repeat(count);

describe("what is used", () => {
  afterEach(async () => expect((await workspace())?.used).toBe(counted()));

  test("the heads of what is there, through versions, copies, references, deletion and restoring", async () => {
    core = createTestCore();
    const used = async () => (await workspace())?.used;
    const file = await core.file("/d/f", bytes(100));
    expect(await used()).toBe(100);
    await core.upload(`/v1/nodes/${file.id}/content`, bytes(40_000), { method: "PUT" });
    await core.upload(`/v1/nodes/${file.id}/content`, bytes(30), { method: "PUT" });
    expect(await used()).toBe(30);
    const copyOf = { parentId: core.workspace.root, name: "copy", copyOf: file.id };
    const copy = (await core.call("POST", "/v1/nodes", { json: copyOf })).json;
    expect(await used()).toBe(60);
    // An earlier version by reference, and the folder with all in it.
    const [first] = (await core.call("GET", `/v1/nodes/${file.id}/versions`)).json.items;
    const reference = { copyOf: file.id, version: first?.id };
    expect((await core.call("PUT", `/v1/nodes/${copy.id}/content`, { json: reference })).status).toBe(200);
    expect(await used()).toBe(130);
    const folder = (await core.node(file.id)).parentId;
    const tree = { parentId: core.workspace.root, name: "tree", copyOf: folder };
    expect((await core.call("POST", "/v1/nodes", { json: tree })).status).toBe(201);
    expect(await used()).toBe(160);
    await core.call("DELETE", `/v1/nodes/${copy.id}`);
    expect(await used()).toBe(60);
    await core.call("POST", `/v1/nodes/${copy.id}/restore`);
    expect(await used()).toBe(160);
    await core.call("PATCH", `/v1/nodes/${copy.id}`, { json: { name: "renamed", attributes: { mode: 1 } } });
    expect(await used()).toBe(160);
  });

  test("a head on each branch, of a token that may not write the journal too", async () => {
    core = createTestCore();
    const token = core.token(["node.node.create", "node.node.update", "account.workspace.read", "node.file.read"]);
    const file = await core.file("/f", bytes(10));
    const onBranch = { method: "PUT", metadata: { branch: "b" } };
    await core.upload(`/v1/nodes/${file.id}/content`, bytes(7), onBranch);
    await core.upload(`/v1/nodes/${file.id}/content`, bytes(5), onBranch);
    expect((await workspace())?.used).toBe(15);
    await core.upload("/v1/files/new", bytes(3), { metadata: { branch: "b" } });
    expect((await workspace())?.used).toBe(18);
    const json = { parentId: core.workspace.root, name: "silent", copyOf: file.id };
    await core.call("POST", "/v1/nodes", { json, token });
    await core.call("DELETE", `/v1/nodes/${file.id}`);
    await core.call("POST", `/v1/nodes/${file.id}/restore`);
  });

  test("a store that counted all versions counts anew", async () => {
    core = createTestCore();
    await core.file("/f", bytes(10));
    await core.upload("/v1/files/f", bytes(4));
    await core.upload("/v1/files/f", bytes(6), { metadata: { branch: "b" } });
    const gone = await core.file("/gone", bytes(9));
    await core.call("DELETE", `/v1/nodes/${gone.id}`);
    forgetColumns(core.database);
    core.database.exec("UPDATE workspace SET used = 29; PRAGMA user_version = 3");
    core = core.restart();
    expect((await workspace())?.used).toBe(10);
  });
});

async function refused(answer: Promise<{ status: number; json: unknown }>) {
  const { status, json } = await answer;
  const { type, quota, used, growth, detail } = problem.parse(json);
  expect([status, type]).toEqual([507, OVER_QUOTA]);
  expect(detail).toContain("over its quota by");
  return { quota, used, growth };
}

describe("over quota", () => {
  test("all that would add to it is refused and leaves nothing; what makes it less goes on", async () => {
    core = createTestCore({ quota: { all: 100 } });
    const file = await core.file("/f", bytes(60));
    const gone = await core.file("/gone", bytes(40));
    expect(await workspace()).toMatchObject({ quota: 100, used: 100 });
    await core.call("DELETE", `/v1/nodes/${gone.id}`);
    const position = (await core.call("GET", "/v1/journal")).json.asOf;
    const excess = { quota: 100, used: 60 };
    expect(await refused(core.upload("/v1/files/made/on/the/way", bytes(41)))).toEqual({ ...excess, growth: 41 });
    const put = (count: number, metadata = {}) =>
      core.upload(`/v1/nodes/${file.id}/content`, bytes(count), { method: "PUT", metadata });
    expect(await refused(put(101))).toEqual({ ...excess, growth: 41 });
    expect(await refused(put(41, { branch: "b" }))).toEqual({ ...excess, growth: 41 });
    const copyOf = { parentId: core.workspace.root, name: "copy", copyOf: file.id };
    await refused(core.call("POST", "/v1/nodes", { json: copyOf }));
    expect((await core.call("GET", "/v1/journal")).json.asOf).toBe(position);
    expect([await core.names("/"), core.blobs.contents.size]).toEqual([["f"], 0]);
    // To the byte.
    expect((await put(100)).status).toBe(200);
    expect((await core.upload("/v1/files/empty", "")).status).toBe(201);
    await refused(core.call("POST", `/v1/nodes/${gone.id}/restore`));
    // Less room than is used: nothing may grow, everything may shrink, move and go.
    core.gateway.setOptions({ quota: { all: 10 } });
    expect((await put(50)).status).toBe(200);
    expect((await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { name: "g" } })).status).toBe(200);
    expect(await refused(put(51))).toEqual({ quota: 10, used: 50, growth: 1 });
    core.gateway.setOptions({ quota: {} });
    expect((await put(500)).status).toBe(200);
    expect((await workspace())?.quota).toBeUndefined();
    expect((await workspace())?.used).toBe(counted());
  });

  test("each workspace has its own, by its name", async () => {
    core = createTestCore({ quota: { all: 5, constructor: 7, workspace: 20 } });
    const other = core.gateway.ensureWorkspace("other");
    const token = core.token(undefined, other.id);
    expect((await core.upload("/v1/files/f", bytes(20))).status).toBe(201);
    expect(await refused(core.upload("/v1/files/f", bytes(6), { token }))).toMatchObject({ quota: 5, used: 0 });
    expect((await core.upload("/v1/files/f", bytes(5), { token })).status).toBe(201);
  });

  test("a quota of a workspace that is not there is refused, at the start and while it runs", async () => {
    core = createTestCore();
    core.gateway.ensureWorkspace("other");
    core.gateway.setOptions({ quota: { workspace: 5, all: 7 } });
    const unknown = 'quota: there is no workspace "constructor", only "other", "workspace"';
    expect(() => core.gateway.setOptions({ quota: { workspace: 1, constructor: 7 } })).toThrow(unknown);
    expect((await workspace())?.quota).toBe(5);
    const dataDir = await temporaryFolder();
    await expect(startGateway({ dataDir, workspaces: ["a"], quota: { b: 5 } })).rejects.toThrow('no workspace "b"');
    // It left the folder free.
    const running = await startGateway({ dataDir, workspaces: ["b"], quota: { a: 5, b: 5 } });
    await running.close();
  });

  test("what says its size is refused before it is taken in, but not where it was carried out before", async () => {
    core = createTestCore({ quota: { all: 1_000_000 } });
    let taken = 0;
    const send = (count: number, metadata: object, length?: number) => {
      const content = (async function* () {
        for (let left = count; left > 0; left -= 100_000) {
          taken += 1;
          yield Buffer.alloc(Math.min(left, 100_000));
        }
      })();
      const parts = [part("metadata", JSON.stringify(metadata)), { ...part("file", ""), data: content }];
      return core.call("POST", "/v1/files/big", {
        body: {
          kind: "upload",
          parts: (async function* () {
            yield* parts;
          })(),
        },
        ...(length === undefined ? {} : { headers: { "content-length": String(length) } }),
      });
    };
    await refused(send(5_000_000, {}, 5_000_400));
    expect([taken, core.blobs.contents.size]).toEqual([0, 0]);
    // Without a length as soon as it is too much.
    await refused(send(5_000_000, {}));
    expect([taken, core.blobs.contents.size]).toEqual([11, 0]);

    const metadata = { idempotencyKey: "k" };
    const first = await send(900_000, metadata, 900_400);
    expect(first.status).toBe(201);
    const kept = core.blobs.contents.size;
    await core.call("PATCH", `/v1/nodes/${first.json.id}`, { json: { name: "elsewhere" } });
    expect((await send(900_000, metadata, 900_400)).json).toEqual(first.json);
    await refused(send(900_000, { idempotencyKey: "other" }, 900_400));
    expect(core.blobs.contents.size).toBe(kept);
  });

  test("while it is taken in, what has changed is heard of: room, the file it replaces, its own key", async () => {
    core = createTestCore({ quota: { all: 1_000_000 } });
    let taken = 0;
    const send = (path: string, metadata: object, inTheMiddle = async () => {}) => {
      const content = (async function* () {
        for (let count = 0; count < 9; count += 1) {
          if (count === 2) await inTheMiddle();
          taken = count + 1;
          yield Buffer.alloc(100_000);
        }
      })();
      const parts = [part("metadata", JSON.stringify(metadata)), { ...part("file", ""), data: content }];
      return core.call("POST", `/v1/files/${path}`, {
        body: {
          kind: "upload",
          parts: (async function* () {
            yield* parts;
          })(),
        },
      });
    };
    const other = () => core.call("POST", "/v1/files/other", { body: uploadBody(part("file", "x".repeat(600_000))) });
    // Room goes: it is refused before all of it has come.
    await refused(
      send("a", {}, async () => {
        expect((await other()).status).toBe(201);
      }),
    );
    expect([taken < 9, taken > 2]).toEqual([true, true]);
    const { id } = (await core.call("GET", "/v1/files/other")).json;
    await core.call("DELETE", `/v1/nodes/${id}`);
    // Carried out meanwhile by a request with its key: it gets that one's answer, though there is no room for both.
    let first: unknown;
    const second = await send("b", { idempotencyKey: "k" }, async () => {
      const { json } = await send("b", { idempotencyKey: "k" });
      first = json;
      await core.call("PATCH", `/v1/nodes/${json.id}`, { json: { name: "elsewhere" } });
    });
    expect([second.status, second.json]).toEqual([201, first]);
    // The file it replaces came meanwhile.
    await core.call("DELETE", `/v1/nodes/${second.json.id}`);
    const third = await send("c", {}, async () => {
      expect((await send("c", {})).status).toBe(201);
    });
    expect(third.status).toBe(200);
  });

  test("many at once over HTTP, whose commits are shared: as many as fit, and the client can tell why not", async () => {
    const dataDir = await temporaryFolder();
    const running = await startGateway({ dataDir, quota: { all: 700_000 }, control: true });
    onTestFinished(() => running.close());
    const gateway = connect({
      baseUrl: running.baseUrl,
      credentials: staticToken(await running.issueToken({ workspace: "workspace" })),
    });
    onTestFinished(() => gateway.close());
    const sizes = [100_000, 20_000];
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) =>
        gateway.files.upload(`/n-${index}`, Buffer.alloc(sizes[index % 2] ?? 0)),
      ),
    );
    let used = 0;
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled") used += sizes[index % 2] ?? 0;
      else {
        const error: RemoteError = outcome.reason;
        expect([error.code, error.status, error.isTransient]).toEqual(["overQuota", 507, false]);
        expect(error.excess?.quota).toBe(700_000);
      }
    }
    expect(used).toBeLessThanOrEqual(700_000);
    // What is left would not have taken the smallest of those refused.
    expect(700_000 - used).toBeLessThan(100_000);
    expect((await gateway.workspaces.find("workspace"))?.used).toBe(used);
    await expect(gateway.files.upload("/late", Buffer.alloc(8_000_000))).rejects.toMatchObject({ code: "overQuota" });

    const control = (quota: unknown) =>
      fetch(`${running.baseUrl}/faults`, {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ quota }),
      });
    expect((await control({ all: -1 })).status).toBe(400);
    expect((await control({ workspace: 9_000_000 })).status).toBe(200);
    await gateway.files.upload("/late", Buffer.alloc(8_000_000));
  });
});
