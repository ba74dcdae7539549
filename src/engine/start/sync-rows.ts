/** Makes committed rows survive power loss, for all who ask at the same time with one sync. */
import { shareRuns } from "../../lib/shared-run.ts";
import type { Metadata } from "../../metadata/metadata.ts";

export function createSyncRows(metadata: Pick<Metadata<unknown>, "inodes">, sync: () => Promise<void>) {
  return shareRuns(async () => {
    const synced = metadata.inodes.formerlyDurable.beforeSync();
    await sync();
    synced();
  });
}
