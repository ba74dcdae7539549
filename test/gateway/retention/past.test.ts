/** What a policy has given up is not listed as deleted, and stays away where a tree goes back. */
import { expect, test } from "vitest";
import { createTestCore } from "../../support/gateway-core.ts";
import { momentOf, removeAll, restoreTree } from "../support/tree-histories.ts";

test("of a tree what is given up is skipped with all below it, and what is kept comes back", async () => {
  const core = createTestCore();
  const { root } = core.workspace;
  const gone = await core.file("/gone/a", "a");
  const thinned = await core.file("/kept", "then");
  const moved = await core.file("/gone/b", "b");
  const at = momentOf(core);
  await core.clock.advance(1000);
  await core.upload(`/v1/nodes/${thinned.id}/content`, "now", { method: "PUT" });
  await core.call("PATCH", `/v1/nodes/${moved.id}`, { json: { parentId: root } });
  await removeAll(core, String(gone.parentId));
  const listed = async () =>
    (await core.call("GET", "/v1/nodes", { query: { path: "/", deleted: "true", recursive: "true", orderBy: "path" } }))
      .json;
  expect((await listed()).items.map(({ path }) => path)).toEqual(["/gone", "/gone/a"]);
  core.gateway.retention.setPolicy("workspace", { versions: "none", deleted: "0d" });
  await core.clock.advance(1000);
  await core.gateway.retention.prune();
  expect([(await listed()).items, (await listed()).totalCount]).toEqual([[], 0]);
  const items = await restoreTree(core, root, { at });
  expect(items.map(({ action, path, reason }) => [action, path, reason])).toEqual([
    ["skip", "/kept", "the version of then is no longer kept"],
    ["skip", "/gone", "it is no longer kept"],
  ]);
  expect(await core.names("/")).toEqual(["b", "kept"]);
});
