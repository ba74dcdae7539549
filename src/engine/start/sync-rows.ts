/** Makes committed rows durable. Callers that ask at the same time share one sync. Rejects as `sync` does. */
import { shareRuns } from "../../lib/shared-run.ts";
import type { Metadata } from "../../metadata/metadata.ts";

export function createSyncRows(metadata: Pick<Metadata<unknown>, "inodes">, sync: () => Promise<void>) {
  return shareRuns(async () => {
    const synced = metadata.inodes.formerlyDurable.beforeSync();
    await sync();
    synced();
  });
}
