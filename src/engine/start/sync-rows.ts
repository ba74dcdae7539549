/** Makes committed rows durable, with one sync for all who ask at the same time. */
import { shareRuns } from "../../lib/shared-run.ts";
import type { Metadata } from "../../metadata/metadata.ts";

export function createSyncRows(metadata: Pick<Metadata<unknown>, "inodes">, sync: () => Promise<void>) {
  return shareRuns(async () => {
    const synced = metadata.inodes.formerlyDurable.beforeSync();
    await sync();
    synced();
  });
}
