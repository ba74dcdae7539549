/** What is read twice is asked once, and never older than the last change; parts of a transaction. */
import { beforeEach, expect, test } from "vitest";
import { rowTime } from "../../src/lib/clocks.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { entryId } from "../../src/metadata/ids.ts";
import { createMetadata, type Metadata, ROOT_INODE } from "../../src/metadata/metadata.ts";
import { unborn } from "../../src/metadata/nodes.ts";
import { NEW_INODE } from "../support/new-inode.ts";
import { recordedRows } from "../support/recorded-rows.ts";

const NEW = { ...NEW_INODE, kind: "file" } as const;

let metadata: Metadata<unknown>;
beforeEach(() => {
  metadata = createMetadata(openDatabase(":memory:"), (value) => value);
  metadata.transaction(() => {
    metadata.inodes.create({ ...NEW, kind: "folder" });
    metadata.createRootEntry();
  });
});

function makeFile() {
  const inode = metadata.inodes.create(NEW);
  const entry = metadata.entries.create(ROOT_INODE, "a", inode.id);
  const node = metadata.nodes.create(unborn(entry.id, "file", rowTime(1), rowTime(2)));
  return { inode: inode.id, entry: entry.id, node: node.id };
}

test("what was read before a change is not what is read after it", () => {
  const { inode, entry, node } = makeFile();
  expect(metadata.nodes.ofNodeId("n")).toBeUndefined();
  expect(metadata.inodes.get(inode)?.size).toBe(0);
  expect(metadata.entries.ofInode(inode)).toHaveLength(1);
  metadata.inodes.update(inode, { size: 7 });
  metadata.nodes.update(node, { nodeId: "n", due: rowTime(9) });
  metadata.entries.move(entry, ROOT_INODE, "b");
  expect(metadata.inodes.get(inode)?.size).toBe(7);
  expect(metadata.nodes.ofNodeId("n")?.due).toBe(9);
  expect(metadata.entries.get(entry)?.name).toBe("b");
  // By a statement that names no row of what was read, …
  metadata.nodes.expedite(rowTime(3), 10);
  expect(metadata.nodes.get(node)?.due).toBe(3);
  // … and by another table.
  metadata.entries.remove(entry);
  expect(metadata.nodes.get(node)?.entry).toBeNull();
  expect(metadata.nodes.ofEntry(entry)).toBeUndefined();
  expect(metadata.entries.links(inode)).toBe(0);
});

test("a change of nothing leaves what was read", () => {
  let reads = 0;
  const rows = recordedRows(openDatabase(":memory:"), (sql) => {
    if (/^SELECT .* FROM attempt WHERE id/s.test(sql)) reads += 1;
  });
  const { nodes, attempts } = createMetadata(rows, (value) => value);
  const node = nodes.create({ ...unborn(entryId(0), "file", rowTime(1), rowTime(2)), entry: null }).id;
  const { id } = attempts.create({
    node,
    key: "k",
    request: { do: "folder" },
    snapshot: null,
    nextAt: rowTime(5),
    createdAt: rowTime(1),
  });
  expect(attempts.ofKey("k")?.nextAt).toBe(5);
  attempts.expedite(rowTime(9), 10);
  attempts.removeAbandonedBefore(rowTime(9));
  expect([attempts.ofKey("k")?.nextAt, reads]).toEqual([5, 0]);
  attempts.expedite(rowTime(3), 10);
  expect([attempts.ofKey("k")?.nextAt, reads]).toEqual([3, 1]);
  attempts.remove(id);
  expect([attempts.ofKey("k"), reads]).toEqual([undefined, 1]);
});

test("what a transaction read of its own changes is forgotten when it is undone", () => {
  const { inode } = makeFile();
  const change = () => {
    metadata.inodes.update(inode, { size: 5 });
    expect(metadata.inodes.get(inode)?.size).toBe(5);
    throw new Error("undone");
  };
  expect(() => metadata.transaction(change)).toThrow("undone");
  expect(metadata.inodes.get(inode)?.size).toBe(0);
  metadata.transaction(() => {
    expect(metadata.part(change)).toEqual({ error: new Error("undone") });
    expect(metadata.inodes.get(inode)?.size).toBe(0);
    metadata.part(() => metadata.inodes.update(inode, { hash: "h" }));
  });
  expect(metadata.inodes.get(inode)).toMatchObject({ size: 0, hash: "h" });
});
