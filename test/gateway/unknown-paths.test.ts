/** Paths the gateway's document does not name. */
import { expect, test } from "vitest";
import { createTestCore } from "../support/gateway-core.ts";

test("what the document does not name is not found", async () => {
  const core = createTestCore();
  const paths = ["/", "/v1", "/v1/", "/v2/nodes", "/v1/nodes/", "/v1/nodes/x/y", "/v1/nodes/x/content/y", "/v1/nodesx"];
  for (const path of paths) expect([path, (await core.call("GET", path)).status]).toEqual([path, 404]);
  expect((await core.call("GET", "/v1/nodes/%FF")).json.field).toBe("nodeId");
});
