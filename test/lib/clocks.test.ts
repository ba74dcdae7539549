/** The clocks: what mixes their times up does not compile, and the arithmetic of times is that of numbers. */
import { expect, expectTypeOf, test } from "vitest";
import type { RowClockRuntime } from "../../src/engine/host/index.ts";
import {
  type ElapsedTime,
  earlierOf,
  earliestOf,
  elapsedTime,
  laterOf,
  millisecondsOf,
  minus,
  plus,
  type RowTime,
  rowTime,
  type WallTime,
  wallTime,
} from "../../src/lib/clocks.ts";
import type { NodeRow } from "../../src/metadata/nodes.ts";

const [elapsed, row, wall] = [elapsedTime(5), rowTime(7), wallTime(9)];

/** Never called: each line must fail to compile. */
function mixUps(take: { elapsed(time: ElapsedTime): void; row(time: RowTime): void; wall(time: WallTime): void }) {
  // @ts-expect-error
  take.elapsed(row);
  // @ts-expect-error
  take.elapsed(wall);
  // @ts-expect-error
  take.elapsed(5);
  // @ts-expect-error
  take.row(elapsed);
  // @ts-expect-error
  take.row(wall);
  // @ts-expect-error
  take.row(5);
  // @ts-expect-error
  take.wall(elapsed);
  // @ts-expect-error
  take.wall(row);
  // @ts-expect-error
  take.wall(5);
  // @ts-expect-error
  minus(row, elapsed);
  // @ts-expect-error
  minus(row, wall);
  // @ts-expect-error
  minus(row, 5);
  // @ts-expect-error
  plus(5, 5);
  // @ts-expect-error
  plus(row, elapsed);
  // @ts-expect-error
  laterOf(row, elapsed);
  // @ts-expect-error
  earlierOf(elapsed, wall);
  // @ts-expect-error
  earliestOf([elapsed, row]);
  // @ts-expect-error
  void (row - elapsed);
  // @ts-expect-error
  void (wall - row);
  // @ts-expect-error
  void (row + 5);
  // @ts-expect-error
  void (row < elapsed);
  // @ts-expect-error
  void (wall < row);
  // @ts-expect-error
  void (row < 5);
  // @ts-expect-error
  void (row === elapsed);
  // @ts-expect-error
  Math.max(row, row);
  // @ts-expect-error
  new Date(row);
}

test("times of one clock are compared, and their distance is a number", () => {
  expect([row < plus(row, 1), minus(plus(row, 3), row), minus(row, plus(row, 3))]).toEqual([true, 3, -3]);
  expect([plus(elapsed, -2), laterOf(row, plus(row, 1)), earlierOf(row, plus(row, 1))]).toEqual([3, 8, 7]);
  expect([earliestOf([plus(row, 1), undefined, row]), earliestOf([undefined])]).toEqual([7, undefined]);
  expect([millisecondsOf(row), new Date(wall).getTime()]).toEqual([7, 9]);
});

test("what mixes clocks up does not compile", () => {
  expectTypeOf(mixUps).toBeFunction();
});

test("each clock gives its own times", () => {
  expectTypeOf<ReturnType<RowClockRuntime["now"]>>().toEqualTypeOf<RowTime>();
  expectTypeOf<ReturnType<RowClockRuntime["elapsed"]>>().toEqualTypeOf<ElapsedTime>();
  expectTypeOf<ReturnType<RowClockRuntime["wallClock"]>>().toEqualTypeOf<WallTime>();
  expectTypeOf<NodeRow["due"]>().toEqualTypeOf<RowTime | null>();
});
