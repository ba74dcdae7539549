/** The times of snapshots of a file that stays open: numbers alone. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { SnapshotPacing } from "../../../src/engine/core/index.ts";
import {
  nextSnapshotAt,
  paceAfterSnapshot,
  paceAfterTry,
  type Writes,
} from "../../../src/engine/upload/snapshot-times.ts";
import { elapsedTime, millisecondsOf, plus } from "../../../src/lib/clocks.ts";
import { SEED } from "../../support/seed.ts";

const { pace: NO_SNAPSHOT_YET } = new SnapshotPacing();

const MINUTE = 60;

/** The times of snapshots of a file that is written at these times, in seconds, where each snapshot takes so long. */
function snapshotsOf(writes: readonly number[], tookSeconds = 0): number[] {
  const snapshots: number[] = [];
  let pace = NO_SNAPSHOT_YET;
  let since: Writes | undefined;
  for (const at of [...writes.map((second) => second * 1_000), Number.POSITIVE_INFINITY].map(elapsedTime)) {
    const due = since === undefined ? undefined : nextSnapshotAt(pace, since);
    if (since !== undefined && due !== undefined && due <= at) {
      pace = paceAfterSnapshot(pace, since, due, plus(due, tookSeconds * 1_000));
      snapshots.push(millisecondsOf(due) / 1_000);
      since = undefined;
    }
    since = { first: since?.first ?? at, last: at };
  }
  return snapshots;
}

const each = (seconds: number, times: number) => Array.from({ length: times }, (_, index) => index * seconds);
const gaps = (times: readonly number[]) => times.slice(1).map((time, index) => time - (times[index] ?? 0));

test.each<readonly [string, readonly number[], readonly number[]]>([
  ["one save", [0], [3]],
  ["a save by many writes", [0, 1, 2.5, 4], [7]],
  ["a document that is saved each twenty minutes", each(20 * MINUTE, 10), each(20 * MINUTE, 10).map((at) => at + 3)],
  ["writing that goes on soon after each snapshot", [0, 10, 20, 40, 70, 120], [3, 16, 32, 64, 118, 180]],
  ["one that goes on later: the pause stays", [0, 10, 50, 95], [3, 16, 56, 101]],
  ["after a minute's rest it is the first one again", [0, 10, 20, 80], [3, 16, 32, 83]],
  ["the longest pause", [0, 10, 20, 40, 70, 120, 171, 172], [3, 16, 32, 64, 118, 232]],
])("%s", (_, writes, snapshots) => {
  expect(snapshotsOf(writes)).toEqual(snapshots);
});

test("writing that never pauses has snapshots all the same, ever more seldom", () => {
  const snapshots = snapshotsOf(each(0.5, 40 * 2 * MINUTE));
  expect(snapshots.slice(0, 8)).toEqual([15, 45, 105, 225, 465, 765, 1_065, 1_365]);
});

test("snapshots that take long are taken so much more seldom, also where one came to nothing", () => {
  expect(gaps(snapshotsOf(each(20, 60), 20)).every((gap) => gap >= 220)).toBe(true);
  const pace = paceAfterTry(NO_SNAPSHOT_YET, elapsedTime(1_000), elapsedTime(6_000));
  expect(nextSnapshotAt(pace, { first: elapsedTime(0), last: elapsedTime(6_000) })).toBe(56_000);
});

test("no write waits longer than it may, and who writes after a rest waits for the first pause", () => {
  const gap = fc.oneof(fc.constantFrom(0, 0.25, 1, 2.75, 3, 5, 29, 31, 59, 60, 61), fc.integer({ min: 0, max: 1_000 }));
  fc.assert(
    fc.property(fc.array(gap, { minLength: 1, maxLength: 200 }), (all) => {
      let at = 0;
      const writes = all.map((seconds) => {
        at += seconds;
        return at;
      });
      const snapshots = snapshotsOf(writes);
      for (const [index, write] of writes.entries()) {
        const snapshot = snapshots.find((time) => time >= write) ?? Number.POSITIVE_INFINITY;
        expect(snapshot - write).toBeLessThanOrEqual(5 * MINUTE);
        const [before = Number.NEGATIVE_INFINITY, next = Number.POSITIVE_INFINITY] = [
          writes[index - 1],
          writes[index + 1],
        ];
        if (write - before > MINUTE && next - write > 3) expect(snapshot - write).toBe(3);
      }
    }),
    { seed: SEED },
  );
});
