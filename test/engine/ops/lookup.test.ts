/** Lookups that fail: with an error that a program understands. */
import { expect, test } from "vitest";
import { FsError } from "../../../src/engine/api/index.ts";
import { createFileSystem } from "../../../src/engine/ops/index.ts";
import { CALLER, createBytesWorld } from "../support/bytes-world.ts";

test("statfs of a disk that does not tell its room is EIO", async () => {
  const world = await createBytesWorld();
  world.files.fail({ path: /./, code: "EACCES", on: ["space"] });
  const failure = await createFileSystem(world.context)
    .statfs(CALLER)
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(FsError);
  expect(failure).toMatchObject({ code: "EIO" });
});
