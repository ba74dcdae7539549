/** The state of a content is one of five in memory. The three columns on the disk could say more. */
import { expect, test } from "vitest";
import { openDatabase } from "../../src/metadata/database.ts";
import type { InodeChange } from "../../src/metadata/inodes.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { NEW_INODE } from "../support/new-inode.ts";

test.each<[string, InodeChange[], { content: string; hash: string | null; synced: string }]>([
  ["a new one", [], { content: "clean", hash: null, synced: "never" }],
  ["what a writer may have changed", [{ content: "open", hash: "a" }], { content: "open", hash: "a", synced: "never" }],
  [
    "dirty and durable",
    [{ content: "dirty", hash: null }, { synced: "durable" }],
    { content: "dirty", hash: null, synced: "durable" },
  ],
  [
    "with a snapshot it stays durable",
    [{ content: "dirty", synced: "durable" }, { hash: "b" }],
    { content: "dirty", hash: "b", synced: "durable" },
  ],
  [
    "quarantined",
    [{ content: "dirty", hash: null }, { synced: "quarantined" }],
    { content: "dirty", hash: null, synced: "quarantined" },
  ],
  [
    "a hash does not release what is quarantined",
    [{ content: "dirty", hash: null, synced: "quarantined" }, { hash: "c" }],
    { content: "dirty", hash: null, synced: "quarantined" },
  ],
  [
    "what is clean again is not synced",
    [{ content: "dirty", synced: "durable" }, { content: "clean" }],
    { content: "clean", hash: null, synced: "never" },
  ],
])("%s, in memory and after the next start", (_, changes, state) => {
  const database = openDatabase(":memory:");
  const { inodes } = createMetadata<unknown>(database, (value) => value);
  const { id } = inodes.create({ ...NEW_INODE, kind: "file" });
  for (const change of changes) inodes.update(id, change);
  expect(inodes.get(id)).toMatchObject(state);
  const next = createMetadata<unknown>(database, (value) => value);
  expect(next.inodes.get(id)).toMatchObject(state);
});

test("rows that say more than there is are read as what there is", () => {
  const database = openDatabase(":memory:");
  const { id } = createMetadata<unknown>(database, (value) => value).inodes.create({ ...NEW_INODE, kind: "file" });
  database.prepare("UPDATE inode SET content = 'dirty', hash = 'a', synced = -1 WHERE id = ?").run(id);
  const read = () => createMetadata<unknown>(database, (value) => value).inodes.get(id);
  expect(read()).toMatchObject({ content: "dirty", hash: null, synced: "quarantined" });
  database.prepare("UPDATE inode SET content = 'clean', synced = 1 WHERE id = ?").run(id);
  expect(read()).toMatchObject({ content: "clean", hash: "a", synced: "never" });
});
