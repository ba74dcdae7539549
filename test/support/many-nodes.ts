/** Many nodes in few transactions, by the gateway's own writer: for tests and measures of large folders. */
import { DEFAULT_OPTIONS } from "../../src/gateway/context.ts";
import { lastChange } from "../../src/gateway/lag.ts";
import { createStore } from "../../src/gateway/store.ts";
import { createTreeRows, type NewTreeRow } from "../../src/gateway/tree-rows.ts";
import type { Clock } from "../../src/lib/runtime.ts";
import type { Connection } from "../../src/lib/sqlite/index.ts";

/** Nodes in one transaction. */
const CHUNK = 10_000;

export interface FilledFolder {
  readonly database: Connection;
  readonly clock: Pick<Clock, "wallClock" | "uuid">;
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
  const own = { id, kind: "folder", parent, name, attributes: {}, head: null, content: undefined } as const;
  const { lastInsertRowid } = store.transaction(() =>
    store.prepare("INSERT INTO content (blob, bytes) VALUES (NULL, ?)").run(Buffer.from("x")),
  );
  const fileOf = (index: number): NewTreeRow => ({
    id: clock.uuid(),
    kind: "file",
    parent: id,
    name: nameOf(index),
    attributes: {},
    head: clock.uuid(),
    content: { content: Number(lastInsertRowid), size: sizeOf(index), hash: "0".repeat(64), mimeType: "text/plain" },
  });
  for (let start = 0; start === 0 || start < count; start += CHUNK) {
    const files = Array.from({ length: Math.min(CHUNK, count - start) }, (_, index) => fileOf(start + index));
    store.transaction(() => {
      const time = Math.max(Math.floor(clock.wallClock()), lastChange(store).time);
      const change = { time, key: null, by: null, journaled: true };
      createTreeRows(
        { store, options: DEFAULT_OPTIONS, withNews: new Set() },
        change,
        workspace,
        start === 0 ? [own, ...files] : files,
      );
    });
  }
  return id;
}
