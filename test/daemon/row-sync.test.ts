import { expect, it } from "vitest";
import { createRowSync } from "../../src/daemon/row-sync.ts";
import type { Files } from "../../src/lib/files.ts";

/** Files of which only the log can be opened and synced, one sync at a time by hand. */
function logFile() {
  const events: string[] = [];
  const waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const file = {
    sync() {
      events.push("sync");
      return new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }));
    },
    async close() {
      events.push("close");
    },
  };
  const files = {
    async open(path: string, mode: string) {
      events.push(`open ${path} ${mode}`);
      return file;
    },
    async syncFolder(path: string) {
      events.push(`folder ${path}`);
    },
  } as unknown as Files;
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  return { files, events, waiting, settle };
}

it("opens the log once and syncs its folder before its first sync", async () => {
  const { files, events, waiting, settle } = logFile();
  const rows = createRowSync(files, "/s/rows.db");
  for (let time = 0; time < 2; time++) {
    const done = rows.sync();
    await settle();
    waiting.pop()?.resolve();
    await done;
  }
  await rows.close();
  expect(events).toEqual(["open /s/rows.db-wal w+", "folder /s", "sync", "sync", "close"]);
});

it("callers during a sync share the next one, never the one that runs", async () => {
  const { files, events, waiting, settle } = logFile();
  const rows = createRowSync(files, "/s/rows.db");
  const finished: string[] = [];
  const first = rows.sync().then(() => finished.push("first"));
  await settle();
  const others = ["second", "third"].map((name) => rows.sync().then(() => finished.push(name)));
  waiting.shift()?.resolve();
  await first;
  await settle();
  expect(finished).toEqual(["first"]);
  expect(events.filter((event) => event === "sync")).toHaveLength(2);
  waiting.shift()?.resolve();
  await Promise.all(others);
  expect(events.filter((event) => event === "sync")).toHaveLength(2);
});

it("tells a failed sync to those it was for, and tries again for the next", async () => {
  const { files, waiting, settle } = logFile();
  const rows = createRowSync(files, "/s/rows.db");
  const first = rows.sync();
  await settle();
  const second = rows.sync();
  waiting.shift()?.reject(new Error("EIO"));
  await expect(first).rejects.toThrow("EIO");
  await settle();
  waiting.shift()?.resolve();
  await second;
});
