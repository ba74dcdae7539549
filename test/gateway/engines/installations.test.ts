/** Engines as callers see them, and their installations in workspaces. */
import { beforeEach, expect, test } from "vitest";
import { engine, enginePage, installationPage } from "../../../src/contract/engines.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { addEngine, install } from "./support.ts";

let core: TestCore;
beforeEach(() => {
  core = createTestCore();
});

const post = (json: object) => core.call("POST", "/v1/installations", { json });

test("engines are listed and shown by name or id, without their commands", async () => {
  const made = addEngine(core, "scan", {
    command: ["secret-command"],
    description: "Scans",
    inputSchema: { type: "null" },
  });
  addEngine(core, "resize");
  const list = await core.call("GET", "/v1/engines", { query: { pageSize: "1" } });
  expect(enginePage.parse(list.json)).toMatchObject({ totalCount: 2, items: [{ name: "resize" }] });
  for (const word of ["scan", made.id]) {
    const answer = await core.call("GET", `/v1/engines/${word}`);
    expect(engine.parse(answer.json)).toMatchObject({
      id: made.id,
      description: "Scans",
      inputSchema: { type: "null" },
    });
    expect(answer.bytes.toString()).not.toContain("secret-command");
  }
  expect((await core.call("GET", "/v1/engines/none")).status).toBe(404);
});

test("an installation makes its folder with those above it, and the journal says so", async () => {
  const made = addEngine(core, "scan");
  const installation = await install(core, made.id);
  expect(installation).toMatchObject({
    engine: { id: made.id, name: "scan" },
    workspace: { name: "workspace" },
    by: null,
  });
  expect((await core.node(installation.folderId)).path).toBe("/Engines/scan");
  const { items } = (await core.call("GET", "/v1/journal")).json;
  expect(items.slice(-2).map(({ kind, name }) => `${kind} ${name}`)).toEqual(["created Engines", "created scan"]);
  expect((await core.call("GET", `/v1/installations/${installation.id}`)).json).toEqual(installation);
  const list = installationPage.parse((await core.call("GET", "/v1/installations")).json);
  expect(list.items).toEqual([installation]);
});

test("its folder may be another one, or be there; not the root, and no file may be in the way", async () => {
  for (const name of ["a", "b", "c"]) addEngine(core, name);
  const there = (
    await core.call("POST", "/v1/nodes", { json: { parentId: core.workspace.root, name: "x", kind: "folder" } })
  ).json;
  await core.file("/file", "x");
  expect((await post({ engine: "a", path: "/x" })).json).toMatchObject({ folderId: there.id });
  const made = (await post({ engine: "b", path: "/x/y/z" })).json;
  expect((await core.node(String(Reflect.get(made, "folderId")))).path).toBe("/x/y/z");
  const inTheWay = await post({ engine: "c", path: "/file/x" });
  expect([inTheWay.status, inTheWay.json.detail]).toEqual([409, '"file" on the way is a file.']);
  for (const path of ["//", "/.", "/a/../b"]) expect((await post({ engine: "c", path })).json.field).toBe("path");
});

test("an engine is installed in a workspace once; again is refused, but with the first one's key", async () => {
  addEngine(core, "scan");
  const json = { engine: "scan", idempotencyKey: "k" };
  const first = await post(json);
  core = core.restart();
  expect((await post(json)).bytes).toEqual(first.bytes);
  const again = await post({ engine: "scan" });
  expect([again.status, again.json.detail]).toEqual([409, "The engine scan is installed in the workspace already."]);
  core.gateway.ensureWorkspace("other");
  await install(core, "scan", { token: core.token(undefined, null), query: { workspace: "other" } });
});

test("one that is removed leaves its folder, and the engine can be installed again", async () => {
  addEngine(core, "scan");
  const { id, folderId } = await install(core, "scan");
  const gone = await core.call("DELETE", `/v1/installations/${id}`);
  expect([gone.status, (await core.call("GET", `/v1/installations/${id}`)).status]).toEqual([204, 404]);
  expect((await core.call("DELETE", `/v1/installations/${id}`)).status).toBe(404);
  expect(await install(core, "scan")).toMatchObject({ folderId });
});

test("which workspace it is about is said by the token, else by workspace=, else the answer names that field", async () => {
  addEngine(core, "scan");
  const token = core.token(undefined, null);
  const answer = await core.call("POST", "/v1/installations", { json: { engine: "scan" }, token });
  expect([answer.status, answer.json.field]).toEqual([400, "workspace"]);
});
