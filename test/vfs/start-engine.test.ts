/** What a start leaves behind that does not come about. */
import { expect, test } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { RemoteError } from "../../src/client/errors.ts";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import { SILENT } from "../../src/lib/log.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { startEngine } from "../../src/vfs/start-engine.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

test("a state dir that nothing came into belongs to no profile", async () => {
  const { context } = await createBytesWorld();
  const database = openDatabase(":memory:");
  const start = (features: Features) => {
    const client: Client = {
      ...context.client,
      features,
      findWorkspace: async () => {
        throw new RemoteError("forbidden", "no grant");
      },
    };
    const { runtime, paths, settings } = context;
    const rest = { syncRows: async () => {}, workspace: "workspace", scopes: undefined, log: SILENT };
    return startEngine({ runtime, client, paths, database, settings, ...rest });
  };
  await expect(start(ALL_FEATURES)).rejects.toThrow("no grant");
  await expect(start({ ...ALL_FEATURES, revisions: false })).rejects.toThrow("no grant");
});
