/** Many nodes in one transaction, by the gateway's own writer: for tests and measures of large folders. */
import type { Database } from "better-sqlite3";
import { lastChange } from "../../src/gateway/lag.ts";
import { createStore } from "../../src/gateway/store.ts";
import { createTreeRows } from "../../src/gateway/tree-rows.ts";
import type { Clock } from "../../src/lib/runtime.ts";

export interface FilledFolder {
  readonly database: Database;
  readonly clock: Pick<Clock, "now" | "uuid">;
  readonly workspace: string;
  readonly parent: string;
  readonly name: string;
  readonly count: number;
  readonly nameOf?: (index: number) => string;
  readonly sizeOf?: (index: number) => number;
}

/** A new folder with that many files; answers its id. Their contents are all the same byte, whatever their size says. */
export function makeFilledFolder(folder: FilledFolder): string {
  const { database, clock, workspace, parent, name, count } = folder;
  const { nameOf = (index) => `file-${String(index).padStart(7, "0")}`, sizeOf = () => 1 } = folder;
  const store = createStore(database);
  const id = clock.uuid();
  store.transaction(() => {
    const { lastInsertRowid } = store
      .prepare("INSERT INTO content (blob, bytes) VALUES (NULL, ?)")
      .run(Buffer.from("x"));
    const time = Math.max(Math.floor(clock.now()), lastChange(store).time);
    const own = { id, kind: "folder", parent, name, attributes: {}, head: null, content: undefined } as const;
    const files = Array.from({ length: count }, (_, index) => ({
      id: clock.uuid(),
      kind: "file" as const,
      parent: id,
      name: nameOf(index),
      attributes: {},
      head: clock.uuid(),
      content: {
        content: Number(lastInsertRowid),
        size: sizeOf(index),
        hash: "0".repeat(64),
        mimeType: "text/plain",
      },
    }));
    createTreeRows({ store }, { time, key: null, journaled: true }, workspace, [own, ...files]);
  });
  return id;
}
