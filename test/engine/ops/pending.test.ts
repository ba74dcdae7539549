/** What people are told of what waits: where it is. */
import { expect, test } from "vitest";
import { pathOfEntry } from "../../../src/engine/ops/queue-list.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { entryId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born, unborn } from "../../../src/metadata/nodes.ts";
import { createBytesWorld } from "../support/bytes-world.ts";
import { nodeOf } from "../support/rows-world.ts";

test("a file that is gone, and whose birth was given up and may still arrive, is named by where it would be", async () => {
  const { context } = await createBytesWorld();
  const { metadata } = context;
  const [root] = metadata.entries.ofInode(ROOT_INODE);
  metadata.nodes.create(born(root?.id ?? null, nodeOf("root", { kind: "folder", parentId: null, name: "" })));
  const row = metadata.nodes.create({ ...unborn(entryId(0), "file", rowTime(1), rowTime(1)), entry: null });
  expect(pathOfEntry(context, row)).toBe("…/?");
  const request = { do: "upload", parent: "root", name: "new", hash: "h", size: 1, attributes: {} } as const;
  const sent = { node: row.id, key: "k", request, snapshot: null, nextAt: rowTime(1), createdAt: rowTime(1) };
  const { id } = metadata.attempts.create(sent);
  expect(pathOfEntry(context, row)).toBe("/new");
  metadata.attempts.abandon(id, rowTime(2));
  expect(pathOfEntry(context, row)).toBe("/new");
});
