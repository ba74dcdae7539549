/** What is listed as deleted, and trees that go back to a moment, where a policy has given some of it up. */
import { expect, test } from "vitest";
import { createTestCore } from "../../support/gateway-core.ts";

test("what was given up is neither listed as deleted nor restored; the rest of a tree is", async () => {
  const core = createTestCore();
  await core.file("/d/changed", "old");
  const { id: gone } = await core.file("/d/gone", "old");
  await core.file("/d/moved", "old");
  core.clock.jump(1000);
  const at = new Date(core.clock.wallClock()).toISOString();
  core.clock.jump(1000);
  await core.file("/d/changed", "new");
  await core.call("DELETE", `/v1/nodes/${gone}`);
  const moved = (await core.call("GET", "/v1/files/d/moved")).json.id;
  await core.call("PATCH", `/v1/nodes/${moved}`, { json: { name: "elsewhere" } });
  const folder = (await core.call("GET", "/v1/files/d")).json.id;
  const deleted = async () =>
    (await core.call("GET", "/v1/nodes", { query: { parentId: folder, deleted: "true" } })).json.items.map(
      ({ name }) => name,
    );
  expect(await deleted()).toEqual(["gone"]);
  core.gateway.retention.setPolicy("workspace", { versions: "none", deleted: "0d" });
  core.clock.jump(1000);
  await core.gateway.retention.prune();
  expect(await deleted()).toEqual([]);
  const { status, json } = await core.call("POST", `/v1/nodes/${folder}/restore-tree`, { json: { at } });
  const told = json.items as unknown as readonly { action: string; path: string; reason?: string }[];
  expect([status, told.map(({ action, path }) => `${action} ${path}`).sort()]).toEqual([
    200,
    ["move /d/moved", "skip /d/changed", "skip /d/gone"],
  ]);
  expect(told.flatMap(({ reason }) => reason ?? []).every((reason) => reason.includes("no longer kept"))).toBe(true);
  const changed = (await core.call("GET", "/v1/files/d/changed")).json.id;
  expect((await core.call("GET", `/v1/nodes/${changed}/content`)).bytes.toString()).toBe("new");
});
