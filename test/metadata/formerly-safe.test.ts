/** What the rows on the disk may still call safe is known until they are synced, and a sync may begin too early. */
import { expect, test } from "vitest";
import { createFormerlyDurable } from "../../src/metadata/formerly-safe.ts";
import { inodeId } from "../../src/metadata/ids.ts";

test("what was said before a sync began is over with it, what was said again meanwhile is not", () => {
  const formerlySafe = createFormerlyDurable();
  formerlySafe.add(inodeId(1));
  formerlySafe.add(inodeId(2));
  const synced = formerlySafe.beforeSync();
  formerlySafe.add(inodeId(2));
  formerlySafe.add(inodeId(3));
  synced();
  expect([1, 2, 3].map(inodeId).map(formerlySafe.has)).toEqual([false, true, true]);
  formerlySafe.beforeSync()();
  expect([1, 2, 3].map(inodeId).map(formerlySafe.has)).toEqual([false, false, false]);
});

test("of more than can be told apart all count, until a sync began after the last of them", () => {
  const formerlySafe = createFormerlyDurable();
  for (let inode = 0; inode < 20_000; inode += 1) formerlySafe.add(inodeId(inode));
  const synced = formerlySafe.beforeSync();
  formerlySafe.add(inodeId(20_000));
  synced();
  expect([1, 30_000].map(inodeId).map(formerlySafe.has)).toEqual([true, true]);
  formerlySafe.beforeSync()();
  expect([1, 30_000].map(inodeId).map(formerlySafe.has)).toEqual([false, false]);
});
