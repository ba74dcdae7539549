/** What waits is added up while uploads end and programs write: each byte counts once. */
import { expect, test } from "vitest";
import { createQuota } from "../../../src/engine/sync/index.ts";
import { sleep } from "../../../src/lib/runtime.ts";
import { attemptId, nodeRowId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { pattern, withParts } from "../support/bytes-world.ts";
import { make, makeWorld, nodeOf } from "../support/rows-world.ts";

/** More than are added up in one go. */
const MANY = 600;

/** So many files of ten bytes each wait, after one of a thousand, in a workspace for so many bytes. */
async function waiting(limit: number) {
  const world = await makeWorld();
  const { metadata } = world.context;
  // The first that waits.
  const open = await world.create();
  await world.clock.advance(1);
  const rows = Array.from({ length: MANY }, (_, index) => {
    const row = make(world, ROOT_INODE, `f${index}`);
    const entry = row.entry === null ? undefined : metadata.entries.get(row.entry);
    if (entry !== undefined) metadata.inodes.update(entry.inode, { size: index === 0 ? 1_000 : 10 });
    return row;
  });
  const [first] = rows;
  if (first === undefined) throw new Error("no rows");
  const quota = createQuota(world.context, { ...world.context.workspace, quota: limit, used: 0 }, true);
  const context = withParts(world.context, { quota });
  const require = (bytes: number) =>
    quota.require(bytes).then(
      () => "done",
      (error: unknown) => String(error),
    );
  /** The upload of the first one ends. */
  const end = () => {
    const now = context.runtime.now();
    const request = { do: "upload", parent: "root", name: "f0", hash: "hash", size: 1_000, attributes: {} } as const;
    const attempt = metadata.attempts.create({
      node: first.id,
      key: "key",
      request,
      snapshot: null,
      nextAt: now,
      createdAt: now,
    });
    context.answers.acknowledge(attempt, nodeOf("sent", { name: "f0", size: 1_000, contentHash: "hash" }), 1);
  };
  return { world, context, open, quota, require, end, sum: 1_000 + (MANY - 1) * 10 };
}

test.each([
  { over: 0, answer: "done" },
  { over: 1, answer: "over quota by 1 bytes" },
])("an upload that ends while all is added up counts once ($answer)", async ({ over, answer }) => {
  const { world, quota, require, end, sum } = await waiting(8_000);
  const asked = require(8_000 - sum + over);
  // The first of two slices is added up.
  await world.clock.settle();
  end();
  expect(quota.used).toBe(1_000);
  await world.clock.advance(10_000);
  expect(await asked).toContain(answer);
});

test.each([
  { over: 0, answer: "done" },
  { over: 1, answer: "over quota by 1 bytes" },
])("what is written and closed while all is added up counts once ($answer)", async ({ over, answer }) => {
  const { world, open, require, sum } = await waiting(8_000);
  await world.write(open.handle, 0, pattern(900));
  const asked = require(8_000 - sum - 900 + over);
  await world.clock.settle();
  await world.close(open.handle);
  await world.clock.advance(10_000);
  expect(await asked).toContain(answer);
});

test("of two that ask at a time, the second counts what the first was let add", async () => {
  const { world, context, open, require } = await waiting(8_000);
  const save = async (at: number) => {
    const answer = await require(600);
    // The disk is not that fast.
    await sleep(context.runtime, 10);
    if (answer === "done") await world.write(open.handle, at, pattern(600));
    return answer;
  };
  const saved = [save(0), save(600)];
  await world.clock.advance(10_000);
  expect((await Promise.all(saved)).map((answer) => answer === "done")).toEqual([true, false]);
});

test("what a deletion frees counts once, if the gateway tells what it holds before it answers the deletion", async () => {
  const world = await makeWorld();
  const { workspace, client } = world.context;
  const told = { ...workspace, quota: 2_000, used: 1_500 };
  const context = withParts(world.context, {
    client: { ...client, findWorkspace: async () => ({ ...told, used: 500 }) },
  });
  const quota = createQuota(context, told, true);
  const [counted, later] = [
    { id: attemptId(1), node: nodeRowId(1) },
    { id: attemptId(2), node: nodeRowId(2) },
  ];
  context.sending.set(counted.id, () => {});
  await quota.look();
  quota.grew(counted, -1_000);
  await world.clock.settle();
  expect(quota.used).toBe(500);
  // No request is in flight when the gateway tells it again.
  context.sending.clear();
  await quota.look();
  quota.grew(later, -100);
  await world.clock.settle();
  expect(quota.used).toBe(400);
});
