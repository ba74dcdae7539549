/**
 * Makes committed rows durable: an fdatasync of the database's write-ahead log. Callers that come while a sync runs
 * share the next one, because their rows may have been committed after it began. This file opens the log beside SQLite,
 * which does not lock it, and knows nothing of rows.
 */
import { dirname } from "node:path";
import type { Files, OpenFile } from "../lib/files.ts";
import { shareRuns } from "../lib/shared-run.ts";

interface RowSync {
  /** Resolves when everything committed before the call is on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export function createRowSync(files: Files, databasePath: string): RowSync {
  const path = `${databasePath}-wal`;
  let opened: Promise<OpenFile> | undefined;
  let last: Promise<void> = Promise.resolve();

  async function open(): Promise<OpenFile> {
    const file = await files.open(path, "w+");
    // The names of the log and of the database may be new.
    await files.syncFolder(dirname(path));
    return file;
  }

  async function syncOnce(): Promise<void> {
    opened ??= open();
    opened.catch(() => {
      opened = undefined;
    });
    await (await opened).sync();
  }

  const shared = shareRuns(syncOnce);
  return {
    sync() {
      last = shared();
      return last;
    },
    async close() {
      await last.catch(() => {});
      await (await opened)?.close();
    },
  };
}
