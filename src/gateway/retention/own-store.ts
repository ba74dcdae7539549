/**
 * Policies and prunes of a data folder that no gateway serves. A command uses them and holds the lock of the folder
 * meanwhile.
 */
import { systemClock } from "../../lib/system-clock.ts";
import { blobFolder, checkHold, databasePath, lockDataFolder } from "../data-folder.ts";
import { openDiskBlobs } from "../disk-blobs.ts";
import { createStore, openDatabase } from "../store.ts";
import { createRetention, type Retention } from "./index.ts";

/** Rejects with an Error if a gateway serves the folder. */
export async function withOwnStore<T>(dataDir: string, work: (retention: Retention) => Promise<T>): Promise<T> {
  const lock = lockDataFolder(dataDir);
  const hold = checkHold(dataDir);
  const database = openDatabase(databasePath(dataDir));
  try {
    return await work(
      createRetention({
        clock: systemClock,
        store: createStore(database),
        blobs: await openDiskBlobs(blobFolder(dataDir), hold.isHeld),
        // No gateway serves the folder, so there are no uploads and no copies.
        staged: new Set(),
        copying: new Set(),
      }),
    );
  } finally {
    database.close();
    hold.close();
    lock.release();
  }
}
