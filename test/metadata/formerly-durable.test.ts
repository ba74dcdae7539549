/** What the rows on the disk may still call safe is known until they are synced, and a sync may begin too early. */
import { expect, test } from "vitest";
import { createFormerlyDurable } from "../../src/metadata/formerly-durable.ts";
import { inodeId } from "../../src/metadata/ids.ts";

test("what was said before a sync began is over with it, what was said again meanwhile is not", () => {
  const formerlyDurable = createFormerlyDurable();
  formerlyDurable.add(inodeId(1));
  formerlyDurable.add(inodeId(2));
  const synced = formerlyDurable.beforeSync();
  formerlyDurable.add(inodeId(2));
  formerlyDurable.add(inodeId(3));
  synced();
  expect([1, 2, 3].map(inodeId).map(formerlyDurable.has)).toEqual([false, true, true]);
  formerlyDurable.beforeSync()();
  expect([1, 2, 3].map(inodeId).map(formerlyDurable.has)).toEqual([false, false, false]);
});

test("of more than can be told apart all count, until a sync began after the last of them", () => {
  const formerlyDurable = createFormerlyDurable();
  for (let inode = 0; inode < 20_000; inode += 1) formerlyDurable.add(inodeId(inode));
  const synced = formerlyDurable.beforeSync();
  formerlyDurable.add(inodeId(20_000));
  synced();
  expect([1, 30_000].map(inodeId).map(formerlyDurable.has)).toEqual([true, true]);
  formerlyDurable.beforeSync()();
  expect([1, 30_000].map(inodeId).map(formerlyDurable.has)).toEqual([false, false]);
});
