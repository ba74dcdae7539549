/** Ids of one kind are not taken for those of another: whatever mixes them up does not compile. */
import { expectTypeOf, test } from "vitest";
import type { Layout } from "../../src/content/layout.ts";
import type { HandleId } from "../../src/engine/api/index.ts";
import type { AttemptId, EntryId, GenerationId, InodeId, Lineage, NodeRowId } from "../../src/metadata/ids.ts";

test("an id is a number, but no number is an id", () => {
  expectTypeOf<InodeId>().toExtend<number>();
  expectTypeOf<number>().not.toExtend<InodeId>();
});

test("no id is one of another kind", () => {
  expectTypeOf<EntryId | NodeRowId | Lineage | GenerationId | AttemptId | HandleId>().not.toExtend<InodeId>();
  expectTypeOf<Extract<InodeId | NodeRowId | Lineage | GenerationId | AttemptId | HandleId, EntryId>>().toBeNever();
  expectTypeOf<Extract<InodeId | EntryId | GenerationId | AttemptId | HandleId, Lineage>>().toBeNever();
  expectTypeOf<Extract<InodeId | EntryId | Lineage | NodeRowId | AttemptId, GenerationId>>().toBeNever();
});

test("files are named by the ids of their rows, each kind by its own", () => {
  expectTypeOf<Parameters<Layout["live"]>[0]>().toEqualTypeOf<Lineage>();
  expectTypeOf<Parameters<Layout["generation"]>[0]>().toEqualTypeOf<GenerationId>();
});
