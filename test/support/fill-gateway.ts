/** Very many nodes in the store of a gateway that does not run, by the gateway's own writer. */
import { join } from "node:path";
import { createGateway } from "../../src/gateway/core.ts";
import { openDatabase } from "../../src/gateway/store.ts";
import { SILENT } from "../../src/lib/log.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { makeFilledFolder } from "./many-nodes.ts";
import { createMemoryBlobs } from "./memory-blobs.ts";
import type { TestGateway } from "./wsfs.ts";

/** `folder-0`, `folder-1`, …: folders of the root, each with so many files but for the last. */
export function fillGateway(
  { data, workspace }: TestGateway,
  { count, perFolder }: { readonly count: number; readonly perFolder: number },
): void {
  const database = openDatabase(join(data, "gateway.db"));
  try {
    const needs = { clock: systemClock, database, blobs: createMemoryBlobs(), log: SILENT };
    const gateway = createGateway({ ...needs, signingKey: Buffer.alloc(32, 1) });
    const { id, root } = gateway.ensureWorkspace(workspace);
    for (let done = 0; done < count; done += perFolder) {
      const size = Math.min(perFolder, count - done);
      const name = `folder-${done / perFolder}`;
      makeFilledFolder({ database, clock: systemClock, workspace: id, parent: root, name, count: size });
    }
  } finally {
    database.close();
  }
}
