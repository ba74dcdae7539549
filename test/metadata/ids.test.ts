/** Ids of one kind are not taken for those of another: whatever mixes them up does not compile. */
import { expectTypeOf, test } from "vitest";
import type { Layout } from "../../src/content/layout.ts";
import type { HandleId } from "../../src/engine/api/index.ts";
import type { AttemptId, EntryId, InodeId, KernelNodeId, NodeRowId, SnapshotId } from "../../src/metadata/ids.ts";

test("an id is a number, but no number is an id", () => {
  expectTypeOf<InodeId>().toExtend<number>();
  expectTypeOf<number>().not.toExtend<InodeId>();
});

test("no id is one of another kind", () => {
  expectTypeOf<EntryId | NodeRowId | KernelNodeId | SnapshotId | AttemptId | HandleId>().not.toExtend<InodeId>();
  expectTypeOf<Extract<InodeId | NodeRowId | KernelNodeId | SnapshotId | AttemptId | HandleId, EntryId>>().toBeNever();
  expectTypeOf<Extract<InodeId | EntryId | SnapshotId | AttemptId | HandleId, KernelNodeId>>().toBeNever();
  expectTypeOf<Extract<InodeId | EntryId | KernelNodeId | NodeRowId | AttemptId, SnapshotId>>().toBeNever();
});

test("files are named by the ids of their rows, each kind by its own", () => {
  expectTypeOf<Parameters<Layout["cacheFile"]>[0]>().toEqualTypeOf<KernelNodeId>();
  expectTypeOf<Parameters<Layout["snapshot"]>[0]>().toEqualTypeOf<SnapshotId>();
});
