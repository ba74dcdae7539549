/**
 * The clocks, each with a type of its own for its times. At run time all times are numbers of milliseconds.
 * - Wall time and the gateway's time are numbers to the compiler too, because `Date` takes and gives them.
 * - Elapsed time and row time are no numbers to the compiler. So no operator, no comparison and no `Math.max` takes
 *   times of two clocks, or a time and a duration.
 * - A duration is a plain number of milliseconds.
 */
import type { Brand } from "./brand.ts";

/** `Clock.wallClock()`: the clock that people see, since 1970. */
export type WallTime = number & Brand<"WallTime">;
/** The gateway's wall clock (client/gateway-clock.ts), since 1970. */
export type GatewayTime = number & Brand<"GatewayTime">;
/** `Clock.elapsed()`: the monotonic clock, the same for all processes of one boot. */
export type ElapsedTime = Brand<"ElapsedTime">;
/** The clock of the rows (engine/host/row-clock.ts). */
export type RowTime = Brand<"RowTime">;

export type SteadyTime = ElapsedTime | RowTime;

export const wallTime = (milliseconds: number): WallTime => milliseconds as WallTime;
export const gatewayTime = (milliseconds: number): GatewayTime => milliseconds as GatewayTime;
export const elapsedTime = (milliseconds: number): ElapsedTime => milliseconds as unknown as ElapsedTime;
export const rowTime = (milliseconds: number): RowTime => milliseconds as unknown as RowTime;

/** The time as a number, to store or show it, and for the difference of two clocks. */
export const millisecondsOf = (time: SteadyTime): number => time as unknown as number;

/** The time that is this many milliseconds later; with a negative number earlier. */
export const plus = <Time extends SteadyTime>(time: Time, milliseconds: number): Time =>
  (millisecondsOf(time) + milliseconds) as unknown as Time;

/** Milliseconds from `since` to `time`; negative when `time` is earlier. */
export const minus = <Time extends SteadyTime>(time: Time, since: Time): number =>
  millisecondsOf(time) - millisecondsOf(since);

export const laterOf = <Time extends SteadyTime>(a: Time, b: Time): Time => (a > b ? a : b);
export const earlierOf = <Time extends SteadyTime>(a: Time, b: Time): Time => (a < b ? a : b);

/** The earliest of the times. Undefined: all are undefined. */
export function earliestOf(times: readonly (RowTime | undefined)[]): RowTime | undefined;
export function earliestOf(times: readonly (ElapsedTime | undefined)[]): ElapsedTime | undefined;
export function earliestOf<Time extends SteadyTime>(times: readonly (Time | undefined)[]): Time | undefined {
  let first: Time | undefined;
  for (const time of times) if (time !== undefined && (first === undefined || time < first)) first = time;
  return first;
}
